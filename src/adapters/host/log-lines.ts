// Lines out of an open file, forwards and backwards, a chunk at a time.

import type { FileHandle } from 'node:fs/promises'

/** The lines between two offsets, in batches. A line longer than 1 MiB is cut there. */
export async function* linesBetween(handle: FileHandle, from: number, to: number): AsyncGenerator<string[]> {
  const lines = lineSplitter()
  for await (const chunk of readChunks(handle, from, to)) yield lines.push(chunk)
  yield lines.end()
}

export interface LineSplitter {
  /** The lines that this chunk completes. */
  push(chunk: Buffer): string[]
  /** The last line, when it has no line break. */
  end(): string[]
}

export function lineSplitter(): LineSplitter {
  let rest: Buffer[] = []
  let length = 0
  const keep = (piece: Buffer) => {
    if (length < LONGEST) rest.push(Buffer.from(piece.subarray(0, LONGEST - length)))
    length += piece.length
  }
  const take = (): string => {
    const whole = Buffer.concat(rest)
    rest = []
    length = 0
    return textOf(whole, 0, whole.length)
  }
  return {
    push(chunk) {
      const lines: string[] = []
      let start = 0
      for (let end = chunk.indexOf(LINE_BREAK); end >= 0; end = chunk.indexOf(LINE_BREAK, start)) {
        if (length === 0) lines.push(textOf(chunk, start, end))
        else {
          keep(chunk.subarray(start, end))
          lines.push(take())
        }
        start = end + 1
      }
      if (start < chunk.length) keep(chunk.subarray(start))
      return lines
    },
    end: () => (length > 0 ? [take()] : []),
  }
}

/** The bytes between two offsets, or to the end of the file; each chunk is valid until the next is asked for. */
export async function* readChunks(handle: FileHandle, from: number, to: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(CHUNK)
  for (let at = from; at < to; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(CHUNK, to - at), at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

export interface TailStart {
  offset: number
  found: number
  /** A line said that nothing before it is wanted. */
  stopped: boolean
}

/** Where the last `wanted` lines that count begin, found from the end. Without `judge` every line counts. */
export async function tailStart(
  handle: FileHandle,
  size: number,
  wanted: number,
  judge?: (line: string) => 'counts' | 'other' | 'stop',
): Promise<TailStart> {
  let found = 0
  let position = size
  /** The end of the line whose beginning is still to come, first piece first. */
  let rest: Buffer[] = []
  const verdict = (chunk: Buffer, start: number, end: number) => {
    if (!judge) return 'counts'
    const whole = Buffer.concat([chunk.subarray(start, end), ...rest])
    return judge(textOf(whole, 0, Math.min(whole.length, LONGEST)))
  }
  let lineEnd = size
  while (position > 0) {
    const length = Math.min(CHUNK, position)
    position -= length
    const chunk = await readWhole(handle, position, length)
    let end = chunk.length
    if (position + end === size && chunk[end - 1] === LINE_BREAK) end--
    while (end > 0) {
      const breakAt = chunk.lastIndexOf(LINE_BREAK, end - 1)
      if (breakAt < 0) break
      const said = verdict(chunk, breakAt + 1, end)
      if (said === 'stop') return { offset: lineEnd, found, stopped: true }
      if (said === 'counts' && ++found === wanted) return { offset: position + breakAt + 1, found, stopped: false }
      rest = []
      end = breakAt
      lineEnd = position + breakAt + 1
    }
    if (judge) rest = bounded([chunk.subarray(0, end), ...rest])
  }
  if (size === 0) return { offset: 0, found, stopped: false }
  const said = verdict(Buffer.alloc(0), 0, 0)
  if (said === 'stop') return { offset: lineEnd, found, stopped: true }
  return { offset: 0, found: said === 'counts' ? found + 1 : found, stopped: false }
}

/** Keeps what the beginning of the longest line can need. */
function bounded(pieces: Buffer[]): Buffer[] {
  let length = 0
  return pieces.filter(piece => {
    const needed = length < LONGEST
    length += piece.length
    return needed
  })
}

async function readWhole(handle: FileHandle, from: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, from + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return buffer.subarray(0, filled)
}

function textOf(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('utf8', start, end > start && bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end)
}

const CHUNK = 64 * 1024
const LONGEST = 1024 * 1024
const LINE_BREAK = 10
const CARRIAGE_RETURN = 13
