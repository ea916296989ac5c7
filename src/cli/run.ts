// A command from the server's document, from the typed words to the printed answer.

import { nearMiss } from '../lib/near-miss.ts'
import { type Arguments, has, parseArguments, textOf } from './arguments.ts'
import { CommandCache } from './command-cache.ts'
import type { Command } from './document.ts'
import { ClientError, Refusal, UsageError } from './failure.ts'
import { type Found, findCommand, LOCAL } from './find.ts'
import { flagsOf, helpFlag, isMutation, profileFlag } from './flags.ts'
import { type Input, inputOf } from './input.ts'
import type { AnswerStyle } from './print/answer.ts'
import type { Profiles } from './profile.ts'
import type { Prompt } from './prompt.ts'
import type { Screen } from './screen.ts'
import { Session } from './session.ts'
import { readFile } from './source-file.ts'
import { NOT_LOGGED_IN, targetOf } from './target.ts'

export interface World {
  env: Record<string, string | undefined>
  screen: Screen
  profiles: Profiles
  prompt: Prompt
  warn(sentence: string): void
}

interface Typed {
  words: readonly string[]
  rest: readonly string[]
  /** The profile that was named, if any. */
  profile: string | undefined
}

export async function runCommand(world: World, typed: Typed): Promise<void> {
  const target = targetOf(world.profiles, world.env, typed.profile)
  if (!target) throw notLoggedIn(typed.words[0] ?? '')
  const session = new Session(target, world.profiles)
  const cache = new CommandCache(session, world.env)
  const { found, args, commands } = await resolved(cache, typed)
  if (!args) {
    const { areaHelp } = await import('./help.ts')
    return areaHelp(world.screen, found.below, found.commands)
  }
  const { command } = found
  if (has(args, helpFlag.name)) {
    const { commandHelp } = await import('./help.ts')
    return commandHelp(world.screen, command)
  }
  if (command.deprecated) world.warn(`${command.words.join(' ')} is deprecated and will go`)
  const running = new Running(world, session, command, args, answerStyle(typed, args, command, commands))
  const input = await inputOf(command, args, running.sources())
  const aside = cache.refreshAside()
  await running.run(input)
  await aside
}

type Resolved =
  | { found: Extract<Found, { command: Command }>; args: Arguments; commands: Command[] }
  | { found: Extract<Found, { below: string[] }>; args: undefined; commands: Command[] }

/** What is not known may be new on the server: it is asked once before it is called wrong. */
async function resolved(cache: CommandCache, typed: Typed): Promise<Resolved> {
  const commands = await cache.commands()
  try {
    return understood(commands, typed)
  } catch (error) {
    if (!(error instanceof UsageError && error.unknown) || cache.wasAsked) throw error
    const newer = await cache.refresh().catch(() => commands)
    return understood(newer, typed)
  }
}

function understood(commands: Command[], { words, rest }: Typed): Resolved {
  const found = findCommand(commands, words)
  if ('below' in found) {
    parseArguments(rest, [helpFlag, profileFlag], found.below.join(' '))
    return { found, args: undefined, commands }
  }
  const args = parseArguments([...found.positional, ...rest], flagsOf(found.command), found.command.words.join(' '))
  return { found, args, commands }
}

class Running {
  readonly #world: World
  readonly #session: Session
  readonly #command: Command
  readonly #args: Arguments
  readonly #style: AnswerStyle

  constructor(world: World, session: Session, command: Command, args: Arguments, style: AnswerStyle) {
    this.#world = world
    this.#session = session
    this.#command = command
    this.#args = args
    this.#style = style
  }

  async run(input: Input): Promise<void> {
    const { kind, stream, path, upload } = this.#command
    if (kind === 'wait') return this.#wait(input.path.id as string, input.query.timeout as number | undefined)
    const { askOf, pathOf } = await import('./call.ts')
    if (kind === 'follow' || (stream !== undefined && has(this.#args, 'follow'))) {
      const { follow } = await import('./follow.ts')
      return follow(this.#session, pathOf(stream ?? path, input), this.#world.screen, this.#json)
    }
    const ask = askOf(this.#command, input, this.#args)
    if (kind !== 'download' && !upload && !(kind === 'query' && this.#json)) return this.#request(ask)
    const { download, passOn, withFile } = await import('./transfer.ts')
    if (kind === 'download') return download(this.#session, ask, textOf(this.#args, 'output'), this.#world.screen)
    return upload ? this.#request(withFile(ask, this.#file())) : this.#shown(passOn(this.#session, ask))
  }

  sources() {
    const { env, prompt, warn } = this.#world
    return { env, warn, read: readFile, ...(prompt.possible ? { ask: prompt.askHidden } : {}) }
  }

  get #json(): boolean {
    return has(this.#args, 'json')
  }

  async #request(ask: Parameters<typeof import('./call.ts').answerOf>[2]): Promise<void> {
    const { answerOf } = await import('./call.ts')
    const { screen } = this.#world
    const watch =
      screen.live && isMutation(this.#command) && !this.#json && !has(this.#args, 'plan') && !has(this.#args, 'async')
    const { text, etag } = await this.#shown(answerOf(this.#session, this.#command, ask, screen, watch))
    if (has(this.#args, 'etag')) return screen.print(etag?.replaceAll('"', '') ?? '')
    const { printAnswer, startedJob } = await import('./print/answer.ts')
    const job = startedJob(JSON.parse(text))
    if (job && (has(this.#args, 'wait') || watch)) return this.#wait(job.id)
    if (this.#json) return screen.print(text)
    if (!job) return printAnswer(screen, this.#command, JSON.parse(text), this.#style)
    if (!this.#style.quiet) screen.note(`${job.message} Wait for it with: ${this.#style.program} jobs wait ${job.id}`)
    screen.print(job.id)
  }

  /** With --json a refusal is shown as it came, too. */
  #shown<T>(answer: Promise<T>): Promise<T> {
    return answer.catch(error => {
      if (this.#json && error instanceof Refusal) this.#world.screen.print(error.text)
      throw error
    })
  }

  /** The exit code tells how the job ended. */
  async #wait(id: string, limitSeconds?: number): Promise<void> {
    const { waitForJob, jobFailure } = await import('./wait.ts')
    const { screen } = this.#world
    const { job, text } = await waitForJob(this.#session, id, { screen, program: this.#style.program, limitSeconds })
    if (this.#json) screen.print(text)
    if (job.status !== 'completed') throw jobFailure(job)
    if (this.#json) return
    const { printAnswer } = await import('./print/answer.ts')
    // Whatever the job did: its answer is read as that of an applied plan, with `data` or without.
    const answered: Command = { ...this.#command, kind: 'apply', output: {} }
    if (job.result) printAnswer(screen, answered, job.result.body, this.#style)
    else screen.note(`Job ${id} is completed.`)
  }

  #file(): string {
    const file = textOf(this.#args, 'file')
    if (file !== undefined) return file
    throw new UsageError(`${this.#command.words.join(' ')} needs --file FILE (- for standard input).`)
  }
}

/** Without a server only the client's own commands are known; a slip in one of them is told. */
function notLoggedIn(word: string): Error {
  const meant = nearMiss(word, Object.keys(LOCAL))
  return meant === undefined
    ? new ClientError(NOT_LOGGED_IN)
    : new UsageError(`There is no command "${word}". Did you mean: fairlead ${meant}`)
}

function answerStyle({ profile }: Typed, args: Arguments, command: Command, commands: Command[]): AnswerStyle {
  return {
    quiet: has(args, 'quiet'),
    columns: textOf(args, 'columns'),
    identity: identityOf(command, commands),
    program: profile === undefined ? 'fairlead' : `fairlead --profile ${profile}`,
  }
}

/** The field by which an item is addressed is the parameter of the path right below the list, or the last of its own. */
function identityOf({ path }: Command, commands: readonly Command[]): string | undefined {
  const below = commands
    .map(command => command.path)
    .find(other => other.startsWith(`${path}/{`) && !other.slice(path.length + 1).includes('/'))
  return below?.slice(path.length + 2, -1) ?? [...path.matchAll(/\{(\w+)\}/g)].at(-1)?.[1]
}
