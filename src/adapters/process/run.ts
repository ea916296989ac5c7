// Runs outside programs: the one place that starts a process.

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { Failure } from '../../core/failure.ts'

export type ProgramOutput = {
  readonly code: number
  /** The beginning of what the program said, cut at `maxOutput`. */
  readonly stdout: string
  /** The end of what the program complained, cut at `maxOutput`. */
  readonly stderr: string
  readonly truncated: boolean
}

export type ProgramStream = 'stdout' | 'stderr'

export type ProgramOptions = {
  readonly cwd: string
  /** Exactly these variables: nothing of the agent's own environment is passed on. */
  readonly env: Readonly<Record<string, string>>
  readonly input?: string | Uint8Array
  readonly deadlineMs: number
  readonly signal?: AbortSignal | undefined
  readonly maxOutput?: number
  readonly onLine?: ((stream: ProgramStream, line: string) => void) | undefined
}

/**
 * Runs a program to its end. A code other than 0 is an answer, not an error.
 * Late or cancelled, its whole process group is ended before this throws: a Failure `TIMEOUT`, or the signal's reason.
 */
export async function runProgram(
  file: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<ProgramOutput> {
  options.signal?.throwIfAborted()
  const child = spawn(file, args, { cwd: options.cwd, env: options.env, detached: true, stdio: 'pipe' })
  const stdout = collect(child, 'stdout', options)
  const stderr = collect(child, 'stderr', options)
  // A program that does not read its input is no error of ours.
  child.stdin?.on('error', () => {})
  child.stdin?.end(options.input)

  const stop = stopper(file, options)
  try {
    const ended = closed(child, file, options.cwd)
    const code = await Promise.race([ended, stop.asked])
    return { code, stdout: stdout.text(), stderr: stderr.text(), truncated: stdout.truncated() }
  } catch (reason) {
    await endGroup(child)
    throw reason
  } finally {
    stop.release()
  }
}

const defaultMaxOutput = 1024 * 1024
const longestLine = 64 * 1024
const graceMs = 2000
/** How long pipes may stay open, held by something left behind, after the program itself has ended. */
const lingerMs = 500

type Stopper = { readonly asked: Promise<never>; release(): void }

function stopper(file: string, { deadlineMs, signal }: ProgramOptions): Stopper {
  const { promise: asked, reject } = Promise.withResolvers<never>()
  asked.catch(() => {})
  const sentence = `"${basename(file)}" did not end within ${Math.ceil(deadlineMs / 1000)} s and was stopped.`
  const late = () => reject(new Failure('TIMEOUT', sentence))
  const abort = () => reject(signal?.reason)
  const timer = setTimeout(late, deadlineMs)
  signal?.addEventListener('abort', abort, { once: true })
  return {
    asked,
    release() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    },
  }
}

function closed(child: ChildProcess, file: string, cwd: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', error => reject(startFailure(error, file, cwd)))
    child.once('close', (code, signal) => resolve(code ?? signalCode(signal)))
    child.once('exit', () => setTimeout(() => endLeftovers(child), lingerMs).unref())
  })
}

function startFailure(error: Error, file: string, cwd: string): Error {
  if (!('code' in error) || error.code !== 'ENOENT') return error
  if (!existsSync(cwd))
    return new Failure('NOT_FOUND', 'The folder to work in is not there any more.', undefined, error)
  return new Failure('SERVICE_UNAVAILABLE', `The program "${basename(file)}" is not installed.`, undefined, error)
}

/** A shell's way to tell an end by signal: 128 and its number; the number is of no use to us. */
const signalCode = (signal: NodeJS.Signals | null): number => (signal === 'SIGKILL' ? 137 : 143)

function endLeftovers(child: ChildProcess): void {
  if (child.stdout?.closed !== false && child.stderr?.closed !== false) return
  signalGroup(child, 'SIGKILL')
  child.stdout?.destroy()
  child.stderr?.destroy()
}

/** SIGTERM to the group, SIGKILL to what is left of it two seconds later; resolves when nothing is left. */
async function endGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return
  signalGroup(child, 'SIGTERM')
  if (await groupGone(child, graceMs)) return
  signalGroup(child, 'SIGKILL')
  await groupGone(child, graceMs)
  child.stdout?.destroy()
  child.stderr?.destroy()
}

async function groupGone(child: ChildProcess, withinMs: number): Promise<boolean> {
  const until = performance.now() + withinMs
  while (signalGroup(child, 0) && groupLives(child.pid)) {
    if (performance.now() > until) return false
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return true
}

/** An orphan that ended stays in the group as a zombie until init collects it, which can take seconds: it is gone. */
function groupLives(group: number | undefined): boolean {
  return readdirSync('/proc').some(name => /^\d+$/.test(name) && isLivingMember(name, String(group)))
}

function isLivingMember(pid: string, group: string): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return pgrp === group && state !== 'Z' && state !== 'X'
  } catch {
    return false
  }
}

/** Whether the group still had a member to take the signal. */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  if (child.pid === undefined) return false
  try {
    return process.kill(-child.pid, signal)
  } catch {
    return false
  }
}

type Collected = { text(): string; truncated(): boolean }

function collect(child: ChildProcess, name: ProgramStream, options: ProgramOptions): Collected {
  const bounded = name === 'stdout' ? keepHead : keepTail
  const kept = bounded(options.maxOutput ?? defaultMaxOutput)
  const lines = options.onLine && splitLines(line => options.onLine?.(name, line))
  child[name]?.on('data', (chunk: Buffer) => {
    kept.add(chunk)
    lines?.add(chunk)
  })
  child[name]?.on('end', () => lines?.end())
  child[name]?.on('error', () => {})
  return kept
}

type Kept = Collected & { add(chunk: Buffer): void }

function keepHead(limit: number): Kept {
  const chunks: Buffer[] = []
  let size = 0
  let cut = false
  return {
    add(chunk) {
      const room = limit - size
      if (chunk.length > room) cut = true
      if (room <= 0) return
      chunks.push(chunk.subarray(0, room))
      size += Math.min(chunk.length, room)
    },
    text: () => Buffer.concat(chunks).toString(),
    truncated: () => cut,
  }
}

function keepTail(limit: number): Kept {
  let chunks: Buffer[] = []
  let size = 0
  let cut = false
  const trim = () => {
    const whole = Buffer.concat(chunks)
    chunks = [whole.subarray(Math.max(0, whole.length - limit))]
    size = chunks[0]?.length ?? 0
  }
  return {
    add(chunk) {
      chunks.push(chunk)
      size += chunk.length
      if (size > limit) cut = true
      if (size > 2 * limit) trim()
    },
    text() {
      trim()
      return Buffer.concat(chunks).toString()
    },
    truncated: () => cut,
  }
}

function splitLines(onLine: (line: string) => void): { add(chunk: Buffer): void; end(): void } {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  const emit = (line: string) => onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
  return {
    add(chunk) {
      const parts = (rest + decoder.write(chunk)).split('\n')
      rest = parts.pop() ?? ''
      for (const part of parts) emit(part)
      if (rest.length <= longestLine) return
      emit(rest)
      rest = ''
    },
    end() {
      rest += decoder.end()
      if (rest) emit(rest)
      rest = ''
    },
  }
}
