// One call of an operation, and what it is about as far as can be told from it.

import type { Readable } from 'node:stream'
import type { Origin } from './audit.ts'
import type { Command, RawInput } from './operation.ts'
import type { Actor } from './permission.ts'
import type { RunEvent } from './runner.ts'

/** One call of an operation, by whatever way it came. */
export interface Call {
  actor: Actor
  raw: RawInput
  origin: Origin
  method: string
  /** The path as it was asked for, parameters filled in. */
  path: string
  plan?: boolean
  respondAsync?: boolean
  idempotencyKey?: string | undefined
  ifMatch?: string | undefined
  upload?: Readable | undefined
  onEvent?: ((event: RunEvent) => void) | undefined
  /** Filled in at the door: the deployment it is about. */
  deployment?: string | undefined
}

/** The thing a refused request named, as well as it can be told. */
export function refusedId(command: Command | undefined, call: Call): string | null {
  const { params, body } = call.raw
  const first = Object.values(params)[0]
  if (first !== undefined) return first.slice(0, 200)
  try {
    return text(command?.resource.id?.((body ?? {}) as never, {}))?.slice(0, 200) ?? null
  } catch {
    return null
  }
}

/** The deployment a change is about; one that it makes is in no scope yet. */
export function deploymentOf({ scope, resource }: Command, input: unknown): string | null {
  const made = resource.type === 'deployment' ? text(resource.id?.(input as never, {})) : null
  return scope?.(input as never)[0]?.deployment ?? made
}

export const text = (id: string | number | null | undefined): string | null =>
  id === null || id === undefined ? null : String(id)
