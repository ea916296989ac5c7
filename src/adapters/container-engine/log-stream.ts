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

/** What was, then what comes; containers that start later join, and it ends when none runs any more. */
export async function* followLogs(
  engine: Engine,
  mirror: EngineMirror,
  pick: () => readonly ContainerEntry[],
  ask: LogAsk,
): AsyncGenerator<readonly LogEntry[]> {
  // This moment parts what was from what comes, so that nothing is told twice or left out.
  const now = new Date()
  const funnel = new Funnel<readonly LogEntry[]>()
  const followed = new Set<string>()
  const join = () => {
    for (const one of pick()) {
      if (followed.has(one.id) || (one.state !== 'running' && one.state !== 'restarting' && one.state !== 'paused'))
        continue
      followed.add(one.id)
      funnel.add(entries(engine, one, { since: now, follow: true, signal: ask.signal }, ask.filter))
    }
  }
  yield* await readLogs(engine, pick(), { ...ask, until: now })
  join()
  const stop = mirror.onChange(join)
  try {
    yield* funnel
  } finally {
    stop()
  }
}

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
