// The runner: performs decided steps one after the other, and on failure undoes them in reverse, the failing one included.

import type { Readable } from 'node:stream'
import type { Database } from '../store/database.ts'
import { asFailure, Failure } from './failure.ts'
import { isRecordStep } from './record.ts'
import type { Run, Runs, StoredStep } from './run.ts'
import { EACH, type EachResult, type Kinds, plain, type Results, resolve, type Step, type World } from './step.ts'

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

export interface RunnerParts {
  db: Database
  runs: Runs
  kinds: Kinds
  world: World
  /** For what a caller is not told: the causes of what failed aside. */
  report(message: string, details: object): void
}

export class Runner {
  readonly #parts: RunnerParts

  constructor(parts: RunnerParts) {
    this.#parts = parts
  }

  /** Refuses steps that could not be carried out as they were decided. */
  check(steps: readonly Step[]): void {
    this.#parts.kinds.check(steps)
    if (!halves(steps).records.every(isRecordStep)) throw new Error('Records are written last, in one transaction')
  }

  /** All of it, or a Failure after everything that can be undone was undone. */
  async perform(run: Run, performance: Performance): Promise<Results> {
    const { runs } = this.#parts
    this.check(run.steps)
    const { acting, records } = halves(run.steps)
    const stored = acting.length > 0 || run.isJob
    if (stored) runs.start(run)
    const act = new Acting(run, this.#parts, performance)
    try {
      for (const placed of place(acting)) {
        performance.signal.throwIfAborted()
        await act.perform(placed)
      }
      // Past what cannot be undone a cancel comes too late: the records shall say what was done.
      if (!act.cannotGoBack) performance.signal.throwIfAborted()
      this.#commit(run, records, act.results, stored, performance.commit)
    } catch (thrown) {
      const failure = performance.signal.aborted ? cancelled(performance.signal) : storeFailure(thrown)
      const final = withUndo(failure, await act.undoAll(), act.performed)
      const status = performance.signal.aborted ? 'cancelled' : 'failed'
      if (stored) runs.owe(() => runs.finish(run.id, status, final.message))
      throw final
    }
    act.tellOf(records)
    return act.results
  }

  /** After a crash: finishes what is past undoing where its kinds allow it, undoes the rest, and says which it was. */
  async recover(
    run: Run,
    stored: readonly StoredStep[],
    commit: Performance['commit'],
  ): Promise<{ finished: boolean; undone: Undone }> {
    const { acting, records } = halves(run.steps)
    const act = new Acting(run, this.#parts, { signal: new AbortController().signal, commit }, stored)
    if (!act.cannotGoBack || !act.canGoOn) return { finished: false, undone: await act.undoAll() }
    try {
      for (const placed of place(acting)) await act.perform(placed)
      this.#commit(run, records, act.results, true, commit)
      return { finished: true, undone: { failed: [], untouched: false } }
    } catch (thrown) {
      this.#parts.report('a run could not be finished after the last stop', { run: run.id, cause: causeOf(thrown) })
      return { finished: false, undone: await act.undoAll() }
    }
  }

  /** Records, audit event and the end of the run: in one transaction, or not at all. */
  #commit(run: Run, records: Step[], results: Results, stored: boolean, commit: Performance['commit']): void {
    const { db, runs } = this.#parts
    db.transaction(() => {
      for (const step of records) this.#write(step, results)
      if (!stored) runs.insert(run, 'running')
      const failure = commit(results)
      runs.finish(run.id, failure ? 'failed' : 'completed', failure?.message ?? null)
    })
  }

  #write(step: Step, results: Results): void {
    const now = new Date()
    const performing = {
      before: undefined,
      signal: new AbortController().signal,
      upload: undefined,
      now,
      progress: () => {},
    }
    const { kinds, world } = this.#parts
    const result = kinds.of(step).perform(world, resolve(step.data, results, now), performing)
    if (step.as) results[step.as] = result
  }
}

export interface Undone {
  /** What is not as it was before, by name, and why. */
  failed: { step: string; error: string }[]
  /** True when a step that cannot be undone had begun, so nothing was. */
  untouched: boolean
}

/** The acting half of one run: remembers what was begun, so that it can be undone. */
class Acting {
  readonly results: Results = {}
  performed = 0
  readonly #begun: Begun[] = []
  readonly #of: number
  readonly #run: Run
  readonly #parts: RunnerParts
  readonly #performance: Performance
  /** What a run that was interrupted had come to, by position. */
  readonly #known: ReadonlyMap<number, StoredStep>

  constructor(run: Run, parts: RunnerParts, performance: Performance, known: readonly StoredStep[] = []) {
    this.#run = run
    this.#parts = parts
    this.#performance = performance
    this.#known = new Map(known.map(step => [step.position, step]))
    const leaves = place(run.steps).flatMap(placed => placed.inner ?? [placed])
    this.#of = leaves.length
    for (const placed of leaves) {
      const step = this.#known.get(placed.position)
      if (step && step.state !== 'undone') this.#begun.push({ placed, ...step.kept })
    }
  }

  /** A step that cannot be undone has begun. */
  get cannotGoBack(): boolean {
    return this.#begun.some(({ placed }) => isFinal(this.#parts.kinds, placed.step))
  }

  /** Nothing had failed, and what was under way may be performed again. */
  get canGoOn(): boolean {
    const inEach = new Set(
      place(this.#run.steps)
        .flatMap(({ inner }) => inner ?? [])
        .map(({ position }) => position),
    )
    return this.#begun.every(({ placed }) => {
      const state = this.#known.get(placed.position)?.state
      if (state === 'started') return this.#isRepeatable(placed)
      return state === 'done' || inEach.has(placed.position)
    })
  }

  async perform(placed: Placed): Promise<void> {
    const result = placed.inner ? await this.#performEach(placed.inner) : await this.#performOne(placed)
    if (placed.step.as) this.results[placed.step.as] = result
  }

  async undoAll(): Promise<Undone> {
    const { kinds } = this.#parts
    if (this.cannotGoBack) {
      const left = this.#begun.filter(({ placed }) => kinds.of(placed.step).end !== 'harmless')
      const why = ({ placed }: Begun) =>
        isFinal(kinds, placed.step)
          ? 'It cannot be undone.'
          : 'It was left as it is, because a later step cannot be undone.'
      return { failed: left.map(one => ({ step: this.#what(one.placed.step), error: why(one) })), untouched: true }
    }
    const failed: Undone['failed'] = []
    for (const one of this.#begun.toReversed()) {
      const error = await this.#undo(one)
      if (error) failed.push({ step: this.#what(one.placed.step), error })
    }
    return { failed, untouched: false }
  }

  /** Records are told of when they are written, which is all at once. */
  tellOf(records: readonly Step[]): void {
    for (const [index, step] of records.entries()) {
      this.#tell({ step, position: this.#of - records.length + index, inner: null }, 'done')
    }
  }

  async #performOne(placed: Placed): Promise<unknown> {
    const { kinds, world, runs } = this.#parts
    const known = this.#known.get(placed.position)
    if (known?.state === 'done') return known.kept.result
    const { data, before } = known ? known.kept : await this.#begin(placed)
    try {
      const result = await kinds.of(placed.step).perform(world, data, this.#performing(placed, before))
      runs.stepIs(this.#run.id, placed.position, 'done', { data, before, result })
      this.performed++
      this.#tell(placed, 'done')
      return result
    } catch (error) {
      this.#note(placed, 'failed')
      throw error
    }
  }

  /** On record before anything is touched, with all that its undo will need. */
  async #begin(placed: Placed): Promise<Begun> {
    const { kinds, world, runs } = this.#parts
    const data = resolve(placed.step.data, this.results, new Date())
    const before = plain(await kinds.of(placed.step).before?.(world, data))
    runs.stepIs(this.#run.id, placed.position, 'started', { data, before })
    const begun = { placed, data, before }
    this.#begun.push(begun)
    this.#tell(placed, 'started')
    runs.progress(this.#run.id, (placed.position / this.#of) * 100, this.#what(placed.step))
    return begun
  }

  async #performEach(inner: Placed[]): Promise<EachResult[]> {
    const outcomes: EachResult[] = []
    for (const placed of inner) {
      this.#performance.signal.throwIfAborted()
      const state = this.#known.get(placed.position)?.state
      if (state !== undefined && state !== 'started' && state !== 'done') {
        outcomes.push({ ok: false, error: 'It failed before the agent was stopped.', code: 'INTERNAL' })
        continue
      }
      try {
        outcomes.push({ ok: true, result: await this.#performOne(placed) })
      } catch (thrown) {
        if (this.#performance.signal.aborted) throw thrown
        outcomes.push(await this.#failedAlone(placed, thrown))
      }
    }
    return outcomes
  }

  /** Of an `each` only the one that failed is undone; what cannot be stays on the list of what was begun. */
  async #failedAlone(placed: Placed, thrown: unknown): Promise<EachResult> {
    const { code, message, details, cause } = storeFailure(thrown)
    if (code === 'INTERNAL')
      this.#parts.report('a step failed', { run: this.#run.id, step: placed.step.kind, cause: causeOf(cause) })
    const begun = this.#begun.findIndex(one => one.placed === placed)
    const one = this.#begun[begun]
    const error = one && (await this.#undo(one))
    if (one && error === undefined && !isFinal(this.#parts.kinds, placed.step)) this.#begun.splice(begun, 1)
    return { ok: false, error: message, code, details, ...(error === undefined ? {} : { not_undone: error }) }
  }

  async #undo({ placed, data, before }: Begun): Promise<string | undefined> {
    const { kinds, world, report } = this.#parts
    const { end } = kinds.of(placed.step)
    if (typeof end !== 'object') return undefined
    try {
      await end.undo(world, data, before, { signal: AbortSignal.timeout(UNDO_LIMIT_MS) })
    } catch (thrown) {
      report('a step could not be undone', { run: this.#run.id, step: placed.step.kind, cause: causeOf(thrown) })
      this.#note(placed, 'undo_failed')
      return asFailure(thrown).message
    }
    this.#note(placed, 'undone')
    return undefined
  }

  #isRepeatable(placed: Placed): boolean {
    const { end } = this.#parts.kinds.of(placed.step)
    return end === 'repeatable' || end === 'harmless'
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
        const overall = Math.min(99, ((placed.position + bounded / 100) / this.#of) * 100)
        if (Math.floor(overall) <= last) return
        last = Math.floor(overall)
        this.#parts.runs.progress(this.#run.id, overall, phase)
      },
    }
  }

  /** A store that cannot be written must not keep the rest from being undone. */
  #note(placed: Placed, state: 'failed' | 'undone' | 'undo_failed'): void {
    const { runs } = this.#parts
    runs.owe(() => runs.stepState(this.#run.id, placed.position, state))
    this.#tell(placed, state)
  }

  #tell(placed: Placed, status: 'started' | 'done' | 'failed' | 'undone' | 'undo_failed'): void {
    this.#performance.onEvent?.({
      type: 'step',
      step: placed.position,
      of: this.#of,
      status,
      what: this.#what(placed.step),
    })
  }

  #what(step: Step): string {
    const [first] = this.#parts.kinds.describe([step])
    return first ? `${first.action} ${first.type} ${first.id}` : step.kind
  }
}

const UNDO_LIMIT_MS = 300_000

/** What acts, and the records that end the run. */
function halves(steps: readonly Step[]): { acting: Step[]; records: Step[] } {
  const from = steps.findIndex(isRecordStep)
  return from < 0 ? { acting: [...steps], records: [] } : { acting: steps.slice(0, from), records: steps.slice(from) }
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
  const { errcode, errstr, code } = (thrown ?? {}) as { errcode?: number; errstr?: string; code?: string }
  if (errcode === 13 || code === 'ENOSPC') {
    return new Failure(
      'SERVICE_UNAVAILABLE',
      'The disk that holds the data folder is full, so this could not be done. Free some space and try again.',
      undefined,
      thrown,
    )
  }
  if (errcode !== undefined && UNWRITABLE.has(errcode % 256)) {
    return new Failure(
      'SERVICE_UNAVAILABLE',
      `The data folder cannot be written (${errstr}), so this could not be done.`,
      undefined,
      thrown,
    )
  }
  if (errcode === 2067 || errcode === 1555) {
    return new Failure('ALREADY_EXISTS', 'A record with this name or id exists already.', undefined, thrown)
  }
  return asFailure(thrown)
}

/** What SQLite calls READONLY, IOERR and CANTOPEN. */
const UNWRITABLE: ReadonlySet<number> = new Set([8, 10, 14])

const causeOf = (thrown: unknown): string => String((thrown as { cause?: unknown } | undefined)?.cause ?? thrown)

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
