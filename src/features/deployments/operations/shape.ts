// What the operations on one deployment have in common.

import type { ComposeModel } from '../../../adapters/compose/model.ts'
import { fail } from '../../../core/failure.ts'
import type { Ask } from '../../../core/operation.ts'
import { Type } from '../../../core/schema.ts'

export const ServiceName = Type.String({
  pattern: '^[a-zA-Z0-9._-]{1,100}$',
  'x-hint': 'must be the name of a service',
})
export const resource = { type: 'deployment', id: ({ name }: { name: string }) => name }
export const lock = ({ name }: { name: string }) => [`deployment:${name}`]
export const engineFails = [
  'ENGINE_UNAVAILABLE',
  'DEPLOY_FAILED',
  'UPSTREAM_FAILED',
  'TIMEOUT',
  'COMPOSE_INVALID',
] as const

export const at =
  (level: 'read' | 'write' | 'admin') =>
  ({ name }: { name: string }) => [{ deployment: name, level }]

export function engineOf({ deployments, registries }: Pick<Ask, 'deployments' | 'registries'>) {
  return {
    readySeconds: deployments.readySeconds,
    existing: deployments.existing(),
    engine: deployments.engine,
    credentialFor: (image: string, deployment: string) => registries.credentialFor(image, { deployment }),
  }
}

/** Null means all of them. */
export function chosen(model: ComposeModel, name: string, services: readonly string[] | undefined): string[] | null {
  const unknown = (services ?? []).find(service => !Object.hasOwn(model.services, service))
  if (unknown !== undefined) fail('NOT_FOUND', `Deployment "${name}" has no service "${unknown}".`)
  return services?.length ? [...new Set(services)] : null
}
