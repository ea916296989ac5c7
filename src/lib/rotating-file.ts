// A file of lines that is appended to in batches and turned over by size: `log`, `log.1` (the one before), `log.2`, …

import { closeSync, fstatSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

export interface RotatingFile {
  /** One line with its line break. Costs a string append; a batch reaches the file within 100 ms. */
  write(line: string): void
  /** Everything written so far is in the file when this returns. */
  flush(): void
  close(): void
}

export interface RotatingFileOptions {
  maxBytes?: number
  /** How many files there are at most, the current one included; at least 2. */
  keep?: number
  /** The line by which the file says how many are missing, after the disk was full for long. */
  lostLine?: (count: number) => string
}

/**
 * A batch goes whole into one file, and turning over happens between two batches in one go, so that neither a writer nor
 * a reader that knows the old file sees a line lost or split. Trouble with the disk is never thrown at the writer: up to
 * 1 MiB is held until it is over.
 */
export function openRotatingFile(path: string, options: RotatingFileOptions = {}): RotatingFile {
  const { maxBytes = 10 * 1024 * 1024, keep = 5, lostLine } = options
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  let fd = openToAppend(path)
  let size = fstatSync(fd).size
  let turnAt = maxBytes
  let pending = ''
  /** What could not be written yet; it begins within a line when a write stopped half-way. */
  let held: Buffer = Buffer.alloc(0)
  let torn = false
  let lost = 0
  let timer: NodeJS.Timeout | undefined
  let lookedAt = 0

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (pending === '' && held.length === 0) return
    held = held.length === 0 ? Buffer.from(pending) : Buffer.concat([held, Buffer.from(pending)])
    pending = ''
    try {
      reopenWhenMoved()
      if (!torn && size > 0 && size + held.length > turnAt) turnOver()
      while (held.length > 0) {
        const written = writeSync(fd, held)
        torn = held[written - 1] !== LINE_BREAK
        size += written
        held = held.subarray(written)
      }
      lost = 0
    } catch {
      if (held.length > MOST_HELD) dropOldest()
    }
  }

  const dropOldest = (): void => {
    const cut = held.indexOf(LINE_BREAK, held.length - MOST_HELD / 2) + 1
    // The note of an earlier drop goes too: it is a line, but not one of the writer's.
    const noted = lost > 0 && lostLine ? 1 : 0
    lost += held.subarray(0, cut).filter(byte => byte === LINE_BREAK).length - noted
    const note = `${torn ? '\n' : ''}${lostLine?.(lost) ?? ''}`
    held = Buffer.concat([Buffer.from(note), held.subarray(cut)])
  }

  /** Somebody may have moved or removed the file: then lines go to a new one under its name. */
  const reopenWhenMoved = (): void => {
    const now = Date.now()
    if (Math.abs(now - lookedAt) < 1000) return
    lookedAt = now
    const [named, ours] = [statSync(path, { throwIfNoEntry: false }), fstatSync(fd)]
    if (named?.ino === ours.ino && named.dev === ours.dev) {
      size = ours.size
      return
    }
    replaceDescriptor()
  }

  const turnOver = (): void => {
    try {
      for (let older = keep - 1; older >= 1; older--) {
        const from = older === 1 ? path : `${path}.${older - 1}`
        if (statSync(from, { throwIfNoEntry: false })) renameSync(from, `${path}.${older}`)
      }
      replaceDescriptor()
      turnAt = maxBytes
    } catch {
      turnAt = size + maxBytes
    }
  }

  const replaceDescriptor = (): void => {
    const next = openToAppend(path)
    closeSync(fd)
    fd = next
    size = fstatSync(fd).size
  }

  process.on('exit', flush)
  return {
    write(line) {
      pending += line
      if (pending.length >= BATCH) flush()
      else timer ??= setTimeout(flush, 100).unref()
    },
    flush,
    close() {
      process.off('exit', flush)
      flush()
      closeSync(fd)
    },
  }
}

const BATCH = 16 * 1024
const MOST_HELD = 1024 * 1024
const LINE_BREAK = 10

const openToAppend = (path: string): number => openSync(path, 'a', 0o600)
