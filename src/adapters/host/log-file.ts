// Reading and following a file of lines that is turned over by size, in constant memory whatever its length.

import { type FileHandle, stat } from 'node:fs/promises'
import { closeAll, type Generation, openGenerations, openPlain } from './log-generations.ts'
import { type LineSplitter, lineSplitter, linesBetween, readChunks, type TailStart, tailStart } from './log-lines.ts'
import { watchFile } from './watch-file.ts'

export interface LogLine {
  line: string
  /** The time the line begins with, or `"time"` of a JSON line; otherwise that of the line before it. */
  time?: Date
}

export interface LogQuery {
  /** The last so many lines that match; 0 is all. */
  tail?: number | undefined
  /** A text the line must contain, in upper or lower case, or what decides. */
  filter?: string | ((line: string) => boolean) | undefined
  /** Lines before it are left out; a line without a time goes with the one before it. */
  since?: Date | undefined
  /** How a file is opened; undefined when it is not there. Files of a user are opened through their confined folder. */
  open?: (path: string) => Promise<FileHandle | undefined>
}

export interface LogFollow extends LogQuery {
  signal?: AbortSignal | undefined
  /** How often to look without being told (1000), for file systems that tell nothing. */
  pollMilliseconds?: number
}

/** The lines of `file.N` … `file.1`, `file` as they are at the call, oldest first, in batches. A missing file has none. */
export async function* readLog(file: string, query: LogQuery = {}): AsyncGenerator<LogLine[]> {
  const generations = await openGenerations(file, query.open ?? openPlain)
  try {
    const accept = acceptor(query)
    for (const { handle, from, size } of await placeTail(generations, query)) {
      for await (const lines of linesBetween(handle, from, size)) yield accept(lines)
    }
  } finally {
    await closeAll(generations)
  }
}

/**
 * The same, and then each line as it is written, through turning over and truncation. A line is given once its line
 * break is there. Ends when the signal says so, or soon after the file went away for good. Nothing is read ahead: a
 * consumer that stops taking lines stops the reading.
 */
export async function* followLog(file: string, query: LogFollow = {}): AsyncGenerator<LogLine[]> {
  const accept = acceptor(query)
  for await (const lines of followLines(file, query)) yield accept(lines)
}

async function* followLines(file: string, query: LogFollow): AsyncGenerator<string[]> {
  const { signal, open = openPlain, pollMilliseconds = 1000 } = query
  const changes = watchFile(file, signal)
  let spans: Span[] = []
  let rest: LineSplitter = lineSplitter()
  let goneSince: number | undefined
  try {
    const opened = await openGenerations(file, open)
    spans = await placeTail(opened, query)
    await closeAll(opened.filter(one => !spans.some(span => span.handle === one.handle)))
    while (!signal?.aborted) {
      const [current, next] = spans
      if (current) yield* newLines(current, rest)
      if (current && next) {
        yield rest.end()
        spans.shift()
        await current.handle.close()
        continue
      }
      const named = await stat(file).catch(() => undefined)
      if (!named) {
        goneSince ??= performance.now()
        if (performance.now() - goneSince > GRACE) break
        await changes.next(GRACE / 10)
        continue
      }
      goneSince = undefined
      if (!current || current.ino !== named.ino || current.dev !== named.dev) {
        const successors = await successorsOf(current, file, open)
        // Once more through the old one: what was written to it before it was turned over.
        if (successors.length > 0) spans = [...spans, ...successors]
        else await changes.next(pollMilliseconds)
      } else if (named.size < current.from) {
        current.from = 0
        rest = lineSplitter()
      } else if (named.size === current.from) {
        await changes.next(pollMilliseconds)
      }
    }
    yield rest.end()
  } finally {
    changes.close()
    await closeAll(spans)
  }
}

/** A generation and where in it reading goes on. */
interface Span extends Generation {
  from: number
}

async function* newLines(span: Span, lines: LineSplitter): AsyncGenerator<string[]> {
  for await (const chunk of readChunks(span.handle, span.from, Number.POSITIVE_INFINITY)) {
    span.from += chunk.length
    yield lines.push(chunk)
  }
}

/** The generations after the one that was read so far, oldest first. */
async function successorsOf(current: Span | undefined, file: string, open: Opener): Promise<Span[]> {
  const generations = await openGenerations(file, open)
  const index = generations.findIndex(one => one.ino === current?.ino && one.dev === current.dev)
  // Turned over so often that ours fell off the end, or removed: then what was written to after it.
  const readUntil = current ? (await current.handle.stat()).mtimeMs : 0
  const later =
    index >= 0 ? generations.slice(0, index) : generations.filter((one, n) => n === 0 || one.mtimeMs > readUntil)
  await closeAll(generations.filter(one => !later.includes(one)))
  return later.reverse().map(one => ({ ...one, from: 0 }))
}

type Opener = NonNullable<LogQuery['open']>

/** Where each generation is to be read from, oldest first. */
async function placeTail(generations: Generation[], { tail = 0, filter, since }: LogQuery): Promise<Span[]> {
  const spans: Span[] = []
  let wanted = tail
  for (const [index, generation] of generations.entries()) {
    if (index > 0 && since && generation.mtimeMs < since.getTime()) break
    const start: TailStart =
      tail > 0 ? await tailStart(generation.handle, generation.size, wanted, judge(filter, since)) : ALL
    spans.unshift(Object.assign(generation, { from: start.offset }))
    wanted -= start.found
    if (tail > 0 && (wanted <= 0 || start.stopped)) break
  }
  return spans
}

/** What a scan from the end makes of a line; without anything to look at it only counts. */
function judge(
  filter: LogQuery['filter'],
  since: Date | undefined,
): ((line: string) => 'counts' | 'other' | 'stop') | undefined {
  if (!filter && !since) return undefined
  const matches = matcher(filter)
  return line => {
    const time = since && timeOf(line)
    if (time && time < since) return 'stop'
    return matches(line) ? 'counts' : 'other'
  }
}

function acceptor({ filter, since }: LogQuery): (lines: readonly string[]) => LogLine[] {
  const matches = matcher(filter)
  let time: Date | undefined
  const accept = (line: string): LogLine[] => {
    time = timeOf(line) ?? time
    if ((since && time && time < since) || !matches(line)) return []
    return [time ? { line, time } : { line }]
  }
  return lines => lines.flatMap(accept)
}

function matcher(filter: LogQuery['filter']): (line: string) => boolean {
  if (typeof filter === 'function') return filter
  if (!filter) return () => true
  const wanted = filter.toLowerCase()
  return line => line.toLowerCase().includes(wanted)
}

function timeOf(line: string): Date | undefined {
  const [, text] = (line.startsWith('{') ? IN_JSON : LEADING).exec(line) ?? []
  const time = text === undefined ? undefined : new Date(text)
  return time && !Number.isNaN(time.getTime()) ? time : undefined
}

const IN_JSON = /"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))"/
const LEADING = /^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))/

const ALL: TailStart = { offset: 0, found: 0, stopped: false }
/** How long a file may be away, between being turned over and made anew, before it counts as gone. */
const GRACE = 1000
