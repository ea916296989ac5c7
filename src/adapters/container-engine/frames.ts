// Takes apart the byte streams of the engine: its 8-byte frames of stdout and stderr, log lines with times, JSON lines.

export type OutputStream = 'stdout' | 'stderr'
export type LogLine = { readonly time: string; readonly stream: OutputStream; readonly line: string }
export type Frame = { readonly stream: OutputStream; readonly data: Buffer }

/** The frames of each chunk together, so that a reader awaits once per chunk and not once per frame. */
export async function* frames(source: AsyncIterable<Buffer>): AsyncGenerator<Frame[]> {
  const parser = new FrameParser()
  for await (const chunk of source) {
    const batch: Frame[] = []
    parser.push(chunk, (stream, bytes, from, to) => batch.push({ stream, data: bytes.subarray(from, to) }))
    if (batch.length) yield batch
  }
}

/**
 * The lines of a log that was asked for with times, one batch per chunk. A reader that stops reading stops the source.
 * A line longer than `longestLine` is cut into several, so that memory stays flat whatever a container prints.
 */
export async function* logLines(source: AsyncIterable<Buffer>, tty: boolean): AsyncGenerator<LogLine[]> {
  const lines = new LineJoiner()
  const parser = tty ? undefined : new FrameParser()
  const message: FrameTaker = (stream, bytes, from, to) => lines.message(stream, bytes, from, to)
  for await (const chunk of source) {
    if (parser) parser.push(chunk, message)
    else lines.bytes('stdout', chunk)
    const batch = lines.take()
    if (batch.length) yield batch
  }
  const rest = lines.end()
  if (rest.length) yield rest
}

export async function* jsonLines(source: AsyncIterable<Buffer>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of source) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) if (part.trim()) yield JSON.parse(part)
  }
  if (rest.trim()) yield JSON.parse(rest)
}

export const longestLine = 256 * 1024

const headerBytes = 8
const newline = 10

/** The place of a frame in the bytes it came with: a view of its own for each would cost more than all else. */
type FrameTaker = (stream: OutputStream, bytes: Buffer, from: number, to: number) => void

/** Frames may begin and end anywhere in a chunk; only an incomplete one is copied. */
class FrameParser {
  #held: Buffer[] = []
  #heldBytes = 0
  #needed = headerBytes

  push(chunk: Buffer, take: FrameTaker): void {
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    if (this.#heldBytes < this.#needed) return
    this.#parse(this.#held.length === 1 ? chunk : Buffer.concat(this.#held), take)
  }

  #parse(whole: Buffer, take: FrameTaker): void {
    let at = 0
    this.#needed = headerBytes
    while (whole.length - at >= headerBytes) {
      const length = whole.readUInt32BE(at + 4)
      const end = at + headerBytes + length
      if (end > whole.length) {
        this.#needed = headerBytes + length
        break
      }
      take(whole[at] === 2 ? 'stderr' : 'stdout', whole, at + headerBytes, end)
      at = end
    }
    const rest = whole.subarray(at)
    this.#held = rest.length ? [rest] : []
    this.#heldBytes = rest.length
  }
}

type Pending = { time: string; parts: Buffer[]; size: number }

class LineJoiner {
  #done: LogLine[] = []
  #pending: Record<OutputStream, Pending | undefined> = { stdout: undefined, stderr: undefined }

  /** One message of the engine: a time, then a line or, without an end of line, the next piece of one. */
  message(stream: OutputStream, bytes: Buffer, from: number, to: number): void {
    const timeEnd = timeEndOf(bytes, from, to)
    const time = timeOf(bytes, from, timeEnd)
    if (time === undefined) this.#add(stream, this.#pending[stream]?.time ?? '', bytes, from, to)
    else this.#add(stream, time, bytes, timeEnd + 1, to)
  }

  /** Bytes of a terminal: nothing but the ends of lines tells where a time stands. */
  bytes(stream: OutputStream, bytes: Buffer): void {
    this.#add(stream, this.#pending[stream]?.time ?? '', bytes, 0, bytes.length)
  }

  take(): LogLine[] {
    const batch = this.#done
    this.#done = []
    return batch
  }

  end(): LogLine[] {
    for (const stream of ['stdout', 'stderr'] as const) if (this.#pending[stream]) this.#finish(stream)
    return this.take()
  }

  #add(stream: OutputStream, time: string, bytes: Buffer, from: number, to: number): void {
    let at = from
    for (let end = bytes.indexOf(newline, at); end !== -1 && end < to; end = bytes.indexOf(newline, at)) {
      if (this.#pending[stream]) {
        this.#hold(stream, time, bytes.subarray(at, end))
        this.#finish(stream)
      } else this.#emit(stream, time, bytes, at, end)
      at = end + 1
      if (at === to) return
    }
    if (at < to) this.#hold(stream, time, bytes.subarray(at, to))
  }

  #hold(stream: OutputStream, time: string, part: Buffer): void {
    const pending = this.#pending[stream] ?? { time, parts: [], size: 0 }
    this.#pending[stream] = pending
    pending.parts.push(Buffer.from(part))
    pending.size += part.length
    if (pending.size >= longestLine) this.#finish(stream)
  }

  #finish(stream: OutputStream): void {
    const pending = this.#pending[stream]
    this.#pending[stream] = undefined
    if (!pending) return
    const whole = Buffer.concat(pending.parts)
    this.#emit(stream, pending.time, whole, 0, whole.length)
  }

  #emit(stream: OutputStream, time: string, bytes: Buffer, from: number, to: number): void {
    const end = to > from && bytes[to - 1] === carriageReturn ? to - 1 : to
    if (time) {
      this.#done.push({ time, stream, line: bytes.toString('utf8', from, end) })
      return
    }
    const timeEnd = timeEndOf(bytes, from, end)
    const own = timeOf(bytes, from, timeEnd)
    const start = own === undefined ? from : timeEnd + 1
    this.#done.push({ time: own ?? '', stream, line: bytes.toString('utf8', start, end) })
  }
}

const space = 32
const carriageReturn = 13
/** `2026-11-15T01:45:12.123456789Z`, as Docker writes it; sorts as text. */
const fixedTimeBytes = 30
const longestTimeBytes = 40
const zulu = 90

/** Where the first word ends, if it is short enough to be a time; otherwise `from`. */
function timeEndOf(bytes: Buffer, from: number, to: number): number {
  const limit = Math.min(to, from + longestTimeBytes + 1)
  for (let at = from; at < limit; at++) if (bytes[at] === space) return at
  return from
}

/** The time at the beginning, in UTC with nine decimals whatever the engine writes; undefined when it is none. */
function timeOf(bytes: Buffer, from: number, end: number): string | undefined {
  if (end === from || bytes[from + 4] !== 45 || bytes[from + 10] !== 84) return undefined
  const text = bytes.toString('latin1', from, end)
  return end - from === fixedTimeBytes && bytes[end - 1] === zulu ? text : utcTime(text)
}

function utcTime(text: string): string | undefined {
  const parts = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text)
  if (!parts) return undefined
  const [, seconds, fraction = '', zone] = parts
  const utc = new Date(`${seconds}${zone}`).toISOString().slice(0, 19)
  return `${utc}.${fraction.padEnd(9, '0')}Z`
}
