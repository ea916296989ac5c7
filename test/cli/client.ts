// The client as a real process with a home of its own, and as somebody at a terminal would use it.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MAIN = new URL('../../src/cli/main.ts', import.meta.url).pathname
const LIMIT_MS = 30_000

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

export interface How {
  /** Standard input; empty by default. */
  input?: string
  env?: Record<string, string>
  cwd?: string
}

export class Client {
  readonly home = mkdtempSync(join(tmpdir(), 'fairlead-client-'))

  /** Runs it with pipes, as a script would. */
  async run(args: readonly string[], how: How = {}): Promise<Ended> {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: this.#env(how),
      ...(how.cwd ? { cwd: how.cwd } : {}),
    })
    child.stdin.on('error', () => {}).end(how.input ?? '')
    const [stdout, stderr] = [gather(child.stdout), gather(child.stderr)]
    const code = await ended(child)
    return { code, stdout: stdout.text, stderr: stderr.text }
  }

  /** Runs it in front of another program; the exit code is the first that is not 0. */
  async piped(args: readonly string[], into: string): Promise<Ended> {
    const line = [process.execPath, MAIN, ...args].map(quoted).join(' ')
    const child = spawn('bash', ['-o', 'pipefail', '-c', `${line} | ${into}`], { env: this.#env({}) })
    const [stdout, stderr] = [gather(child.stdout), gather(child.stderr)]
    const code = await ended(child)
    return { code, stdout: stdout.text, stderr: stderr.text }
  }

  /** Runs it and expects success. */
  async ok(args: readonly string[], how: How = {}): Promise<Ended> {
    const result = await this.run(args, how)
    if (result.code !== 0) throw new Error(`fairlead ${args.join(' ')} ended with ${result.code}: ${result.stderr}`)
    return result
  }

  /** Runs it in a pseudo-terminal of 80 columns; each answer is typed when its question has come. */
  terminal(args: readonly string[], how: How = {}): Terminal {
    const line = [process.execPath, MAIN, ...args].map(quoted).join(' ')
    const child = spawn('script', ['-qefc', `stty cols 80; exec ${line}`, '/dev/null'], {
      env: { ...this.#env(how), TERM: 'xterm', SHELL: '/bin/sh' },
      ...(how.cwd ? { cwd: how.cwd } : {}),
    })
    return new Terminal(child)
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true })
  }

  #env({ env = {} }: How): NodeJS.ProcessEnv {
    const { PATH, NODE_COMPILE_CACHE, TMPDIR } = process.env
    return { PATH, NODE_COMPILE_CACHE, TMPDIR, HOME: this.home, LANG: 'C.UTF-8', TZ: 'UTC', ...env }
  }
}

export class Terminal {
  readonly #child: ChildProcess
  readonly #screen: { text: string }
  readonly #ended: Promise<number | null>

  constructor(child: ChildProcess) {
    this.#child = child
    this.#screen = gather(child.stdout as NodeJS.ReadableStream)
    this.#ended = ended(child)
  }

  get text(): string {
    return this.#screen.text
  }

  async until(words: string | RegExp): Promise<void> {
    const seen = () => (typeof words === 'string' ? this.text.includes(words) : words.test(this.text))
    const late = performance.now() + LIMIT_MS
    while (!seen()) {
      if (performance.now() > late || this.#child.exitCode !== null)
        throw new Error(`No ${words} on the terminal: ${this.text}`)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys)
  }

  async end(): Promise<{ code: number | null; text: string }> {
    return { code: await this.#ended, text: this.text }
  }
}

function gather(stream: NodeJS.ReadableStream): { text: string } {
  const gathered = { text: '' }
  stream.setEncoding('utf8')
  stream.on('data', part => {
    gathered.text += part
  })
  return gathered
}

function ended(child: ChildProcess): Promise<number | null> {
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
  return new Promise(resolve => {
    child.on('close', code => {
      clearTimeout(timer)
      resolve(code)
    })
  })
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`
