// The commands of a server, kept in a file: a run starts from it, and asks the server at most once whether it still holds.

import { mkdirSync, readFileSync, statSync, utimesSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type Command, commandsOf } from './document.ts'
import type { Session } from './session.ts'

/** Counted up when what is kept changes its form. */
const FORMAT = 1
/** How long the kept commands are trusted without a look at the server. */
const FRESH_MS = 60_000

interface Kept {
  format: number
  url: string
  etag: string
  commands: Command[]
}

/** What the file says, without any network: for completion. */
export function keptCommands(env: Record<string, string | undefined>, url: string): Command[] | undefined {
  return read(fileOf(env, url), url)?.commands
}

export class CommandCache {
  readonly #session: Session
  readonly #file: string
  #asked: Promise<Command[]> | undefined

  constructor(session: Session, env: Record<string, string | undefined>) {
    this.#session = session
    this.#file = fileOf(env, session.target.url)
  }

  /** At once when they are kept, otherwise from the server. */
  async commands(): Promise<Command[]> {
    return this.#asked ?? read(this.#file, this.#session.target.url)?.commands ?? this.refresh()
  }

  /** Asks the server whether they still hold; a second call gets the same answer. */
  refresh(): Promise<Command[]> {
    this.#asked ??= this.#ask()
    return this.#asked
  }

  /** Beside the work of the run, and only now and then; the next run has the news. */
  async refreshAside(): Promise<void> {
    const checked = statSync(this.#file, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (Date.now() - checked > FRESH_MS) await this.refresh().catch(() => {})
  }

  get wasAsked(): boolean {
    return this.#asked !== undefined
  }

  async #ask(): Promise<Command[]> {
    const { doneText } = await import('./http.ts')
    const { url } = this.#session.target
    const kept = read(this.#file, url)
    const headers: Record<string, string> = kept ? { 'if-none-match': kept.etag } : {}
    const answer = await this.#session.ask({ method: 'GET', path: '/api/openapi.json', headers })
    const text = await doneText(answer)
    if (answer.statusCode === 304 && kept) {
      touch(this.#file)
      return kept.commands
    }
    const commands = commandsOf(text)
    await this.#keep({ format: FORMAT, url, etag: answer.headers.etag ?? '', commands })
    return commands
  }

  /** A cache that can't be written costs time, not the run. */
  async #keep(kept: Kept): Promise<void> {
    const { writeAside } = await import('../lib/write-aside.ts')
    try {
      mkdirSync(join(this.#file, '..'), { recursive: true, mode: 0o700 })
      await writeAside(this.#file, JSON.stringify(kept), { mode: 0o600 })
    } catch {}
  }
}

function fileOf(env: Record<string, string | undefined>, url: string): string {
  const folder = join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'fairlead')
  return join(folder, `${encodeURIComponent(url)}.json`)
}

function read(file: string, url: string): Kept | undefined {
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Kept
    return kept.format === FORMAT && kept.url === url ? kept : undefined
  } catch {
    return undefined
  }
}

function touch(file: string): void {
  const now = new Date()
  try {
    utimesSync(file, now, now)
  } catch {}
}
