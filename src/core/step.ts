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
  end:
    | 'harmless'
    | 'final'
    | 'repeatable'
    | { undo(world: World, data: D, before: B, performing: { signal: AbortSignal }): Promise<void> | void }
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
  end:
    | 'harmless'
    | 'final'
    | 'repeatable'
    | { undo(world: World, data: unknown, before: unknown, performing: { signal: AbortSignal }): Promise<void> | void }
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

export type EachResult =
  | { ok: true; result: unknown }
  | {
      ok: false
      error: string
      code: string
      details?: unknown /** Why it is not as it was before. */
      not_undone?: string
    }

/** A value that is known only when its step is performed. Data of a caller never becomes one, whatever it looks like. */
class Placeholder {
  readonly from: { $result: [step: string, field: string] } | { $now: number }

  constructor(from: Placeholder['from']) {
    this.from = from
  }
}

/** What an earlier step returned; a plan shows it as *known after apply*. */
export function resultOf<R, K extends keyof R & string>(step: Step<R>, field: K): R[K] {
  if (!step.as) throw new Error(`A step whose result is used needs a name: ${step.kind}`)
  return new Placeholder({ $result: [step.as, field] }) as unknown as R[K]
}

/** The moment of performing, in RFC 3339, some seconds later or earlier. Deciding has no clock. */
export const momentOf = (secondsLater = 0): string => new Placeholder({ $now: secondsLater }) as unknown as string

export const KNOWN_AFTER_APPLY = '(known after apply)'

export type Results = Record<string, unknown>

/** Puts the values in place of the placeholders, or the words that a plan shows. */
export function resolve(data: unknown, results: Results | 'shown', now: Date): unknown {
  return mapped(data, ({ from }) => {
    if (results === 'shown') return KNOWN_AFTER_APPLY
    if ('$now' in from) return new Date(now.getTime() + from.$now * 1000).toISOString()
    const [step, field] = from.$result
    return (results[step] as Record<string, unknown>)[field]
  })
}

/** Steps as text keeps them: a placeholder becomes what it is from, and a `$` of the data's own is doubled. */
export function toStored(data: unknown): unknown {
  return mapped(
    data,
    ({ from }) => from,
    key => (key.startsWith('$') ? `$${key}` : key),
  )
}

export function fromStored(data: unknown): unknown {
  if (Array.isArray(data)) return data.map(fromStored)
  if (data === null || typeof data !== 'object') return data
  if ('$result' in data || '$now' in data) return new Placeholder(data as Placeholder['from'])
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key.startsWith('$$') ? key.slice(1) : key, fromStored(value)]),
  )
}

/** A copy, free of placeholders. */
export const plain = (data: unknown): unknown => mapped(data, ({ from }) => from)

/** A copy of plain data. What text cannot keep would be something else after a crash, so it is refused here. */
function mapped(data: unknown, placeholder: (found: Placeholder) => unknown, rename = (key: string) => key): unknown {
  if (Array.isArray(data)) return data.map(item => mapped(item, placeholder, rename))
  if (data instanceof Placeholder) return placeholder(data)
  if (data === null || typeof data !== 'object') return data
  const prototype = Object.getPrototypeOf(data)
  if (prototype !== null && prototype !== Object.prototype) {
    throw new Error(`The data of a step must be plain, but holds a ${prototype.constructor.name}`)
  }
  const entries = Object.entries(data).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries.map(([key, value]) => [rename(key), mapped(value, placeholder, rename)]))
}

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
      return [this.of(step).describe(shown)]
        .flat()
        .map(change => (step.cause && !change.reason ? { ...change, reason: step.cause } : change))
    })
  }

  /** Refuses what could not be carried out as it was decided: a defect of the operation, found when it is planned. */
  check(steps: readonly Step[]): void {
    const named = new Set<string>()
    let final: string | undefined
    for (const step of steps) {
      for (const one of step.kind === EACH ? (step.data as Step[]) : [step]) {
        const { end, name } = this.of(one)
        // The undo of this one would rest on what is gone.
        if (final && typeof end === 'object')
          throw new Error(`${name} can be undone but follows ${final}, which cannot`)
        if (end === 'final' || end === 'repeatable') final = name
        if (one !== step && one.as)
          throw new Error(`${name} is called ${one.as}, but stands in an each, whose result tells of it`)
        mapped(one.data, ({ from }) => {
          if ('$result' in from && !named.has(from.$result[0]))
            throw new Error(`${name} uses the result of ${from.$result[0]}, which does not come before it`)
        })
      }
      if (step.as && named.has(step.as)) throw new Error(`Two steps are called ${step.as}`)
      if (step.as) named.add(step.as)
    }
  }
}

export function summarise(changes: readonly Change[]): Record<(typeof changeActions)[number], number> {
  const counts = { create: 0, update: 0, replace: 0, delete: 0, run: 0 }
  for (const change of changes) counts[change.action]++
  return counts
}
