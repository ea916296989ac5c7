// Whose a volume, network, container name or image name is: what the engine's labels say, and what other files claim.

import type { ComposeModel, ComposeResource } from '../../../adapters/compose/model.ts'
import { familiarName } from '../../../adapters/container-engine/lookup.ts'

/**
 * The project it belongs to; null when it is there and belongs to none, undefined when nobody has it. What exists counts
 * before what a file claims that was never started.
 */
export interface Owners {
  network(name: string): string | null | undefined
  volume(name: string): string | null | undefined
  container(name: string): string | null | undefined
  /** The project of another file that runs this image; an image of that name would be run there. */
  image(reference: string): string | undefined
}

interface Named {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

export interface EngineNames {
  readonly networks: Iterable<Named>
  readonly volumes: Iterable<Named>
  readonly containers: Iterable<Named>
}

/** `others` are the models of all other deployments, running or not. */
export function ownersOf(engine: EngineNames, others: Iterable<ComposeModel>): Owners {
  const models = [...others]
  const claims = (namesOf: (model: ComposeModel) => string[]) =>
    models.flatMap(model => namesOf(model).map(name => [name, model.project] as const))
  const networks = new Map([...claims(model => resourceNames(model, model.networks)), ...labelled(engine.networks)])
  const volumes = new Map([...claims(model => resourceNames(model, model.volumes)), ...labelled(engine.volumes)])
  const containers = new Map([...claims(containerNames), ...labelled(engine.containers)])
  const images = new Map(claims(imageNames))
  return {
    network: name => networks.get(name),
    volume: name => volumes.get(name),
    container: name => containers.get(name),
    image: reference => images.get(familiarName(reference)),
  }
}

/** The names the containers of a model will have. */
export function containerNames(model: ComposeModel): string[] {
  return Object.keys(model.services).flatMap(name => containerNamesOf(model, name))
}

export function containerNamesOf(model: ComposeModel, service: string): string[] {
  const { container_name, deploy, scale } = model.services[service] ?? {}
  if (container_name) return [container_name]
  const count = Math.min(Number(deploy?.replicas ?? scale ?? 1) || 1, maxReplicas)
  return Array.from({ length: count }, (_, index) => `${model.project}-${service}-${index + 1}`)
}

/** More of one service are not looked at one by one. */
const maxReplicas = 100

function labelled(entries: Iterable<Named>): (readonly [string, string | null])[] {
  return [...entries].map(({ name, labels }) => [name, labels['com.docker.compose.project'] ?? null])
}

const resourceNames = (model: ComposeModel, resources: Readonly<Record<string, ComposeResource>>): string[] =>
  Object.entries(resources).flatMap(([key, { name = `${model.project}_${key}`, external }]) => (external ? [] : [name]))

const imageNames = (model: ComposeModel): string[] =>
  Object.entries(model.services).map(([name, { image }]) => familiarName(image ?? `${model.project}-${name}`))
