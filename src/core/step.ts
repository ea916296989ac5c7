// Steps: what a command decides and the runner acts on. A step is plain data; its kind knows how to show, do and undo it.

import type { Readable } from 'node:stream'
import type { Database } from '../store/database.ts'

/** What the kinds act upon. Each adapter adds itself here by declaration merging; the wiring fills it. */
export interface World {
  db: Database
}

export const changeTypes = [
  'file', 'container', 'image', 'network', 'volume', 'domain', 'vhost', 'certificate', 'dns', 'database', 'object', 'record',
  'job', 'process',
] as const // biome-ignore format: a table of words
export const changeActions = ['create', 'update', 'replace', 'delete', 'run'] as const

/** One line of a plan: what a person would call the thing, and what happens to it. */
export interface Change {
  type: (typeof changeTypes)[number]
  id: string
  action: (typeof changeActions)[number]
  reason?: string
  before?: unknown
  after?: unknown
  diff?: string
  sensitive?: boolean
}

/** Plain data: it can be stored, compared and printed. `R` is what performing it returns. */
export interface Step<R = unknown> {
  readonly kind: string
  readonly data: unknown
  readonly cause?: string
  /** The name under which later steps and the reply use its result. */
  readonly as?: string
  readonly returns?: R
}

export interface Performing<B> {
  before: B
  signal: AbortSignal
  upload: Readable | undefined
  now: Date
  /** 0-100 within this step, and what is being done, in a person's words. */
  progress(percent: number, phase?: string): void
}

export interface Kind<D, B, R> {
  /** Pure: the change, or changes, that a plan shows. */
  describe(data: D): Change | Change[]
  /** What undo will need, stored before anything is touched. */
  before?(world: World, data: D): Promise<B> | B
  perform(world: World, data: D, performing: Performing<B>): Promise<R> | R
  /**
   * How it ends: it can be undone (also when half done), it left nothing to undo, or it cannot be undone.
   * A final kind that is `repeatable` is performed again after a crash, and the run goes on to its end.
   */
  end: 'harmless' | 'final' | 'repeatable' | { undo(world: World, data: D, before: B, performing: { signal: AbortSignal }): Promise<void> | void }
}

export interface StepKind<D = never, B = never, R = unknown> extends Kind<D, B, R> {
  readonly name: string
  (data: D, options?: { cause?: string; as?: string }): Step<R>
}

/** A kind as the runner sees it: it only ever gives back to a kind the data that this kind made. */
export interface AnyKind {
  readonly name: string
  describe(data: unknown): Change | Change[]
  before?(world: World, data: unknown): unknown
  perform(world: World, data: unknown, performing: Performing<unknown>): unknown
  end: 'harmless' | 'final' | 'repeatable' | { undo(world: World, data: unknown, before: unknown, performing: { signal: AbortSignal }): Promise<void> | void }
}

/** Declares a kind once; the value is also the maker of its steps. */
export function stepKind<D, B = undefined, R = void>(name: string, kind: Kind<D, B, R>): StepKind<D, B, R> {
  const make = (data: D, options: { cause?: string; as?: string } = {}): Step<R> => ({ kind: name, data, ...options })
  const { describe, before, perform, end } = kind
  Object.defineProperty(make, 'name', { value: name })
  return Object.assign(make, { describe, perform, end, ...(before ? { before } : {}) }) as StepKind<D, B, R>
}

export const EACH = 'each'

/** Independent steps: one may fail and the others go on; the result tells of each. */
export function each(steps: Step[], options: { as?: string } = {}): Step<EachResult[]> {
  return { kind: EACH, data: steps, ...options }
}

export type EachResult = { ok: true; result: unknown } | { ok: false; error: string; code: string; details?: unknown }

/** What an earlier step returned; a plan shows it as *known after apply*. */
export function resultOf<R, K extends keyof R>(step: Step<R>, field: K): R[K] {
  if (!step.as) throw new Error(`A step whose result is used needs a name: ${step.kind}`)
  return { $result: [step.as, field] } as unknown as R[K]
}

/** The moment of performing, in RFC 3339, some seconds later or earlier. Deciding has no clock. */
export const momentOf = (secondsLater = 0): string => ({ $now: secondsLater }) as unknown as string

export const KNOWN_AFTER_APPLY = '(known after apply)'

/** Puts the values in place of the placeholders, or the words that a plan shows. */
export function resolve(data: unknown, results: Results | 'shown', now: Date): unknown {
  if (Array.isArray(data)) return data.map(item => resolve(item, results, now))
  if (data === null || typeof data !== 'object' || Buffer.isBuffer(data)) return data
  const { $result, $now } = data as { $result?: [string, string]; $now?: number }
  if ($now !== undefined) {
    return results === 'shown' ? KNOWN_AFTER_APPLY : new Date(now.getTime() + $now * 1000).toISOString()
  }
  if ($result !== undefined) {
    return results === 'shown' ? KNOWN_AFTER_APPLY : (results[$result[0]] as Record<string, unknown> | undefined)?.[$result[1]]
  }
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, resolve(value, results, now)]))
}

export type Results = Record<string, unknown>

/** All kinds of the agent by name. */
export class Kinds {
  readonly #kinds = new Map<string, AnyKind>()

  constructor(kinds: readonly unknown[]) {
    for (const kind of kinds as AnyKind[]) {
      if (this.#kinds.has(kind.name)) throw new Error(`Two step kinds are called ${kind.name}`)
      this.#kinds.set(kind.name, kind)
    }
  }

  of(step: Step): AnyKind {
    const kind = this.#kinds.get(step.kind)
    if (!kind) throw new Error(`No step kind is called ${step.kind}`)
    return kind
  }

  describe(steps: readonly Step[]): Change[] {
    return steps.flatMap(step => {
      if (step.kind === EACH) return this.describe(step.data as Step[])
      const shown = resolve(step.data, 'shown', new Date(0))
      return [this.of(step).describe(shown)].flat().map(change => (step.cause && !change.reason ? { ...change, reason: step.cause } : change))
    })
  }

  /** No undoable step may follow one that cannot be undone: its undo would rest on what is gone. */
  check(steps: readonly Step[]): void {
    let final: string | undefined
    for (const step of steps.flatMap(one => (one.kind === EACH ? (one.data as Step[]) : [one]))) {
      const { end, name } = this.of(step)
      if (final && typeof end === 'object') throw new Error(`${name} can be undone but follows ${final}, which cannot`)
      if (end === 'final' || end === 'repeatable') final = name
    }
  }
}

export function summarise(changes: readonly Change[]): Record<(typeof changeActions)[number], number> {
  const counts = { create: 0, update: 0, replace: 0, delete: 0, run: 0 }
  for (const change of changes) counts[change.action]++
  return counts
}
