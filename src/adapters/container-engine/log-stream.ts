// The output of several containers as one log: merged by time when it is read, as it comes when it is followed.

import { Funnel, lastOf, mergeInOrder } from '../../lib/merge.ts'
import type { Engine } from './engine.ts'
import type { ContainerEntry } from './entries.ts'
import type { EngineMirror } from './mirror.ts'

export interface LogEntry {
  time: string
  service: string
  stream: 'stdout' | 'stderr'
  line: string
}

export interface LogAsk {
  /** The last so many lines over all containers; 0 is all. */
  tail: number
  filter?: string | undefined
  since?: Date | undefined
  until?: Date | undefined
  signal?: AbortSignal | undefined
}

type Source = Pick<ContainerEntry, 'id' | 'tty' | 'name' | 'compose'>

/** More lines than this are not held: they are counted first, and then sent as they are read again. */
const HELD_LINES = 5000

/** Filtered first, then merged by time, then the last `tail`, in batches, in constant memory whatever is asked for. */
export async function readLogs(
  engine: Engine,
  containers: readonly Source[],
  ask: LogAsk,
): Promise<AsyncIterable<readonly LogEntry[]>> {
  const { tail, filter, since, until, signal } = ask
  // Without a filter no container can contribute more than the last `tail` of its own.
  const each = tail > 0 && filter === undefined ? { tail } : {}
  const sources = () => containers.map(one => entries(engine, one, { ...each, since, until, signal }, filter))
  const merged = () => mergeInOrder(sources(), (a, b) => a.time < b.time)
  if (tail === 0) return merged()
  if (tail > HELD_LINES) return skipping(merged(), (await count(sources())) - tail)
  const last = await lastOf(merged(), tail)
  return (async function* () {
    yield* last
  })()
}

async function count(sources: readonly AsyncIterable<readonly unknown[]>[]): Promise<number> {
  let lines = 0
  for (const source of sources) for await (const batch of source) lines += batch.length
  return lines
}

async function* skipping<T>(batches: AsyncIterable<readonly T[]>, skip: number): AsyncGenerator<readonly T[]> {
  let left = Math.max(0, skip)
  for await (const batch of batches) {
    if (left < batch.length) yield batch.slice(left)
    left = Math.max(0, left - batch.length)
  }
}

/** What was, then what comes; containers that start later, or again, join, and it ends when none runs any more. */
export async function* followLogs(
  engine: Engine,
  mirror: EngineMirror,
  pick: () => readonly ContainerEntry[],
  ask: LogAsk,
): AsyncGenerator<readonly LogEntry[]> {
  // This moment parts what was from what comes, so that nothing is told twice or left out.
  const now = new Date()
  yield* await readLogs(engine, pick(), { ...ask, until: now })
  const following = new Following(engine, pick, ask, now)
  const stop = mirror.onChange(() => following.join())
  ask.signal?.addEventListener('abort', () => following.end(), { once: true })
  try {
    following.join()
    yield* following.funnel
  } finally {
    stop()
  }
}

/** The engine ends a stream with the container's run; the next run, also one that was over in a moment, is read from the last line on. */
class Following {
  readonly funnel = new Funnel<readonly LogEntry[]>()
  readonly #engine: Engine
  readonly #pick: () => readonly ContainerEntry[]
  readonly #ask: LogAsk
  readonly #from: Date
  readonly #over = Promise.withResolvers<void>()
  readonly #open = new Set<string>()
  /** By container, the run whose stream was opened last, and the time of the last line with how many lines it had. */
  readonly #runs = new Map<string, string | null>()
  readonly #lasts = new Map<string, { time: string; lines: number }>()

  constructor(engine: Engine, pick: () => readonly ContainerEntry[], ask: LogAsk, from: Date) {
    this.#engine = engine
    this.#pick = pick
    this.#ask = ask
    this.#from = from
    this.funnel.holdUntil(this.#over.promise)
  }

  /** Takes in what has begun to run, and ends it all when nothing does. */
  join(): void {
    try {
      const all = this.#pick()
      for (const one of all) if (this.#isNew(one)) this.#add(one)
      if (this.#open.size === 0 && !all.some(isLiving)) this.end()
    } catch (error) {
      this.#over.reject(error)
    }
  }

  end(): void {
    this.#over.resolve()
  }

  #isNew(one: ContainerEntry): boolean {
    if (this.#open.has(one.id)) return false
    return this.#runs.has(one.id) ? this.#runs.get(one.id) !== one.startedAt : isLiving(one)
  }

  #add(one: ContainerEntry): void {
    this.#open.add(one.id)
    this.#runs.set(one.id, one.startedAt)
    this.funnel.add(this.#stream(one))
  }

  async *#stream(one: ContainerEntry): AsyncGenerator<readonly LogEntry[]> {
    const last = this.#lasts.get(one.id)
    const { filter, signal } = this.#ask
    const since = last === undefined ? this.#from : new Date(last.time)
    let told = last?.lines ?? 0
    const isFresh = ({ time }: LogEntry) =>
      last === undefined || time > last.time || (time === last.time && told-- <= 0)
    for await (const batch of entries(this.#engine, one, { since, follow: true, signal }, filter)) {
      const fresh = batch.filter(isFresh)
      if (fresh.length === 0) continue
      this.#note(one.id, fresh)
      yield fresh
    }
    this.#open.delete(one.id)
    this.join()
  }

  /** An engine may stamp whole seconds, so that many lines have one time. */
  #note(id: string, lines: readonly LogEntry[]): void {
    const { time } = lines.at(-1) as LogEntry
    const before = this.#lasts.get(id)
    const same = lines.filter(line => line.time === time).length
    this.#lasts.set(id, { time, lines: same + (before?.time === time ? before.lines : 0) })
  }
}

const isLiving = ({ state }: ContainerEntry): boolean =>
  state === 'running' || state === 'restarting' || state === 'paused'

async function* entries(
  engine: Engine,
  one: Source,
  query: Omit<Parameters<Engine['containers']['logs']>[1], 'tty'>,
  filter: string | undefined,
): AsyncGenerator<LogEntry[]> {
  const service = serviceOf(one)
  const wanted = filter?.toLowerCase()
  for await (const batch of engine.containers.logs(one.id, { ...query, tty: one.tty })) {
    const kept = wanted === undefined ? batch : batch.filter(({ line }) => line.toLowerCase().includes(wanted))
    if (kept.length > 0) yield kept.map(({ time, stream, line }) => ({ time, service, stream, line }))
  }
}

const serviceOf = (one: Source): string => one.compose?.service ?? one.name
