// The runner: performs decided steps one after the other, and on failure undoes them in reverse, the failing one included.

import type { Readable } from 'node:stream'
import type { Database } from '../store/database.ts'
import { asFailure, Failure } from './failure.ts'
import { isRecordStep } from './record.ts'
import type { KeptStep, Run, Runs, StoredStep } from './run.ts'
import { EACH, type EachResult, type Kinds, type Results, resolve, type Step, type World } from './step.ts'

/** What a watcher of a run is told as it happens. */
export type RunEvent =
  | {
      type: 'step'
      step: number
      of: number
      status: 'started' | 'done' | 'failed' | 'undone' | 'undo_failed'
      what: string
    }
  | { type: 'progress'; step: number; percent: number; phase: string }

export interface Performance {
  signal: AbortSignal
  upload?: Readable | undefined
  onEvent?(event: RunEvent): void
  /** Called inside the transaction that ends the run, together with its records; says whether it failed all the same. */
  commit(results: Results): Failure | undefined
}

/** A step with its place in the run; the steps of an `each` have places of their own. */
interface Placed {
  step: Step
  position: number
  inner: Placed[] | null
}

interface Begun {
  placed: Placed
  data: unknown
  before: unknown
}

export class Runner {
  readonly #db: Database
  readonly #runs: Runs
  readonly #kinds: Kinds
  readonly #world: World

  constructor(db: Database, runs: Runs, kinds: Kinds, world: World) {
    this.#db = db
    this.#runs = runs
    this.#kinds = kinds
    this.#world = world
  }

  /** All of it, or a Failure after everything that can be undone was undone. */
  async perform(run: Run, performance: Performance): Promise<Results> {
    this.#kinds.check(run.steps)
    const recordsFrom = run.steps.findIndex(isRecordStep)
    const acting = recordsFrom < 0 ? run.steps : run.steps.slice(0, recordsFrom)
    const records = recordsFrom < 0 ? [] : run.steps.slice(recordsFrom)
    if (!records.every(isRecordStep)) throw new Error(`${run.operation}: records are written last, in one transaction`)
    const stored = acting.length > 0 || run.isJob
    if (stored) this.#runs.start(run)

    const results: Results = {}
    const act = new Acting(run, this.#kinds, this.#world, this.#runs, performance, results)
    try {
      for (const placed of place(acting)) {
        performance.signal.throwIfAborted()
        await act.perform(placed)
      }
      performance.signal.throwIfAborted()
      this.#db.transaction(() => {
        for (const step of records) this.#write(step, results)
        if (!stored) this.#runs.insert(run, 'running')
        const failure = performance.commit(results)
        this.#runs.finish(run.id, failure ? 'failed' : 'completed', failure?.message ?? null)
      })
      return results
    } catch (thrown) {
      const failure = performance.signal.aborted ? cancelled(performance.signal) : storeFailure(thrown)
      const undone = await act.undoAll()
      const final = withUndo(failure, undone, act.performed)
      if (stored) this.#runs.finish(run.id, performance.signal.aborted ? 'cancelled' : 'failed', final.message)
      throw final
    }
  }

  /** After a crash: finishes what says it can be repeated, undoes the rest, and says which it was. */
  async recover(run: Run, stored: StoredStep[]): Promise<{ finished: boolean; undone: Undone }> {
    const results: Results = {}
    const nobody: Performance = { signal: new AbortController().signal, commit: () => undefined }
    const act = new Acting(run, this.#kinds, this.#world, this.#runs, nobody, results)
    const places = place(run.steps.filter(step => !isRecordStep(step))).flatMap(placed => placed.inner ?? [placed])
    const begun = stored.flatMap(step => {
      const placed = places.find(one => one.position === step.position)
      return placed ? [{ placed, ...step }] : []
    })
    const finals = begun.filter(({ placed }) => isFinal(this.#kinds, placed.step))
    const mayFinish =
      finals.length > 0 &&
      finals.every(one => one.state === 'done' || this.#kinds.of(one.placed.step).end === 'repeatable')
    if (!mayFinish) {
      act.resume(begun)
      return { finished: false, undone: finals.length > 0 ? { failed: [], untouched: true } : await act.undoAll() }
    }
    for (const { placed, state, kept } of begun) await act.repeat(placed, kept, state === 'done')
    for (const placed of places.filter(one => !begun.some(({ placed }) => placed === one))) await act.perform(placed)
    this.#db.transaction(() => {
      for (const step of run.steps.filter(isRecordStep)) this.#write(step, results)
      this.#runs.finish(run.id, 'completed', null)
    })
    return { finished: true, undone: { failed: [], untouched: false } }
  }

  #write(step: Step, results: Results): void {
    const data = resolve(step.data, results, new Date())
    const performing = {
      before: undefined,
      signal: new AbortController().signal,
      upload: undefined,
      now: new Date(),
      progress: () => {},
    }
    const result = this.#kinds.of(step).perform(this.#world, data, performing)
    if (step.as) results[step.as] = result
  }
}

export interface Undone {
  failed: { step: string; error: string }[]
  /** True when a step that cannot be undone had begun, so nothing was. */
  untouched: boolean
}

/** The acting half of one run: remembers what was begun, so that it can be undone. */
class Acting {
  performed = 0
  readonly #begun: Begun[] = []
  readonly #of: number

  readonly #run: Run
  readonly #kinds: Kinds
  readonly #world: World
  readonly #runs: Runs
  readonly #performance: Performance
  readonly #results: Results

  constructor(run: Run, kinds: Kinds, world: World, runs: Runs, performance: Performance, results: Results) {
    this.#run = run
    this.#kinds = kinds
    this.#world = world
    this.#runs = runs
    this.#performance = performance
    this.#results = results
    this.#of = run.steps.filter(step => !isRecordStep(step)).length
  }

  async perform(placed: Placed): Promise<void> {
    const result = placed.inner ? await this.#performEach(placed.inner) : await this.#performOne(placed)
    if (placed.step.as) this.#results[placed.step.as] = result
  }

  async repeat(placed: Placed, kept: KeptStep, done: boolean): Promise<void> {
    const again = () =>
      this.#kinds.of(placed.step).perform(this.#world, kept.data, this.#performing(placed, kept.before))
    const result = done ? kept.result : await again()
    this.#runs.stepState(this.#run.id, placed.position, 'done')
    if (placed.step.as) this.#results[placed.step.as] = result
  }

  resume(begun: { placed: Placed; kept: KeptStep; state: string }[]): void {
    for (const { placed, kept, state } of begun) {
      if (state !== 'undone') this.#begun.push({ placed, data: kept.data, before: kept.before })
    }
  }

  async undoAll(): Promise<Undone> {
    if (this.#begun.some(({ placed }) => isFinal(this.#kinds, placed.step))) return { failed: [], untouched: true }
    const failed: Undone['failed'] = []
    for (const one of this.#begun.toReversed()) {
      const error = await this.#undo(one)
      if (error) failed.push({ step: this.#what(one.placed.step), error })
    }
    return { failed, untouched: false }
  }

  async #performOne(placed: Placed): Promise<unknown> {
    const { step, position } = placed
    const kind = this.#kinds.of(step)
    const data = resolve(step.data, this.#results, new Date())
    const before = await kind.before?.(this.#world, data)
    this.#runs.stepIs(this.#run.id, position, 'started', { data, before })
    this.#begun.push({ placed, data, before })
    this.#tell(placed, 'started')
    try {
      const result = await kind.perform(this.#world, data, this.#performing(placed, before))
      this.#runs.stepIs(this.#run.id, position, 'done', { data, before, result })
      this.performed++
      this.#tell(placed, 'done')
      return result
    } catch (error) {
      this.#runs.stepState(this.#run.id, position, 'failed')
      this.#tell(placed, 'failed')
      throw error
    }
  }

  async #performEach(inner: Placed[]): Promise<EachResult[]> {
    const outcomes: EachResult[] = []
    for (const placed of inner) {
      this.#performance.signal.throwIfAborted()
      try {
        outcomes.push({ ok: true, result: await this.#performOne(placed) })
      } catch (thrown) {
        if (this.#performance.signal.aborted) throw thrown
        const failure = asFailure(thrown)
        outcomes.push({ ok: false, error: failure.message, code: failure.code, details: failure.details })
        const begun = this.#begun.findIndex(one => one.placed === placed)
        if (begun >= 0) await this.#undo(this.#begun.splice(begun, 1)[0] as Begun)
      }
    }
    return outcomes
  }

  async #undo({ placed, data, before }: Begun): Promise<string | undefined> {
    const { end } = this.#kinds.of(placed.step)
    if (typeof end !== 'object') return undefined
    try {
      await end.undo(this.#world, data, before, { signal: AbortSignal.timeout(300_000) })
      this.#runs.stepState(this.#run.id, placed.position, 'undone')
      this.#tell(placed, 'undone')
      return undefined
    } catch (thrown) {
      this.#runs.stepState(this.#run.id, placed.position, 'undo_failed')
      this.#tell(placed, 'undo_failed')
      return asFailure(thrown).message
    }
  }

  #performing(placed: Placed, before: unknown) {
    let last = -1
    return {
      before,
      signal: this.#performance.signal,
      upload: this.#performance.upload,
      now: new Date(),
      progress: (percent: number, phase = this.#what(placed.step)) => {
        const bounded = Math.min(100, Math.max(0, percent))
        this.#performance.onEvent?.({ type: 'progress', step: placed.position, percent: bounded, phase })
        const overall = ((Math.min(placed.position, this.#of - 1) + bounded / 100) / Math.max(1, this.#of)) * 100
        if (Math.floor(overall) === last) return
        last = Math.floor(overall)
        this.#runs.progress(this.#run.id, Math.min(99, overall), phase)
      },
    }
  }

  #tell(placed: Placed, status: 'started' | 'done' | 'failed' | 'undone' | 'undo_failed'): void {
    const what = this.#what(placed.step)
    this.#performance.onEvent?.({ type: 'step', step: placed.position, of: this.#of, status, what })
    if (status === 'started')
      this.#runs.progress(this.#run.id, (Math.min(placed.position, this.#of - 1) / Math.max(1, this.#of)) * 100, what)
  }

  #what(step: Step): string {
    const [first] = this.#kinds.describe([step])
    return first ? `${first.action} ${first.type} ${first.id}` : step.kind
  }
}

function place(steps: readonly Step[]): Placed[] {
  let position = 0
  return steps.map(step => {
    if (step.kind !== EACH) return { step, position: position++, inner: null }
    return {
      step,
      position,
      inner: (step.data as Step[]).map(one => ({ step: one, position: position++, inner: null })),
    }
  })
}

function isFinal(kinds: Kinds, step: Step): boolean {
  const { end } = kinds.of(step)
  return end === 'final' || end === 'repeatable'
}

function cancelled(signal: AbortSignal): Failure {
  const reason = signal.reason instanceof Failure ? signal.reason.message : 'The work was cancelled.'
  return new Failure('CONFLICT', reason, { cancelled: true })
}

/** The store itself may fail: a full disk is not a defect of ours, and says so. */
export function storeFailure(thrown: unknown): Failure {
  const { errcode, errstr } = thrown as { errcode?: number; errstr?: string }
  if (errcode === 13 || (thrown as NodeJS.ErrnoException)?.code === 'ENOSPC') {
    return new Failure(
      'SERVICE_UNAVAILABLE',
      'The disk that holds the data folder is full; nothing was changed. Free some space and try again.',
      undefined,
      thrown,
    )
  }
  if (errcode !== undefined && errcode % 256 === 10) {
    return new Failure(
      'SERVICE_UNAVAILABLE',
      `The data folder cannot be written (${errstr}); nothing was changed.`,
      undefined,
      thrown,
    )
  }
  if (errcode === 2067 || errcode === 1555) {
    return new Failure('ALREADY_EXISTS', 'A record with this name or id exists already.', undefined, thrown)
  }
  return asFailure(thrown)
}

/** The answer says what was put back, and by name what could not be. */
function withUndo(failure: Failure, undone: Undone, performed: number): Failure {
  if (performed === 0 && undone.failed.length === 0 && !undone.untouched) return failure
  const known = failure.details !== null && typeof failure.details === 'object' && !Array.isArray(failure.details)
  const details = {
    ...(known ? (failure.details as object) : failure.details === undefined ? {} : { reason: failure.details }),
    rolled_back: !undone.untouched && undone.failed.length === 0,
    ...(undone.failed.length > 0 ? { not_undone: undone.failed } : {}),
  }
  return new Failure(failure.code, failure.message, details, failure.cause)
}
