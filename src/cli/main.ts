// The command-line client: its own few commands, and every operation the server's document names.

import { readFileSync } from 'node:fs'
import { has, parseArguments, splitWords, textOf } from './arguments.ts'
import { exitCodeOf, isExpected, sentenceOf, UsageError } from './failure.ts'
import { LOCAL } from './find.ts'
import { helpFlag, profileFlag } from './flags.ts'
import { openProfiles } from './profile.ts'
import { openPrompt } from './prompt.ts'
import { runCommand, type World } from './run.ts'
import { openScreen } from './screen.ts'
import { targetOf } from './target.ts'

async function main(argv: readonly string[]): Promise<void> {
  const { env, stdout, stderr } = process
  const warn = (sentence: string) => void stderr.write(`fairlead: ${sentence}\n`)
  const profiles = openProfiles(env, warn)
  const world: World = {
    env,
    screen: openScreen(stdout, stderr, env),
    profiles,
    prompt: openPrompt(process),
    warn,
  }
  if (argv[0] === '__complete') {
    const { completionLines } = await import('./completion.ts')
    for (const line of completionLines(
      argv[1] ?? '',
      argv.slice(2),
      openProfiles(env, () => {}),
      env,
    ))
      world.screen.print(line)
    return
  }
  if (argv.includes('--version') && argv.length <= 3) return version(world, argv)
  const { words, rest } = splitWords(argv)
  const [first] = words
  if (first === undefined || first === 'help') return help(world, words.slice(1), rest)
  if (first in LOCAL) return local(world, first, [...words.slice(1), ...rest])
  return runCommand(world, { words, rest, profile: profileIn(rest) })
}

/** The client's own commands, loaded when they are wanted. */
async function local(world: World, command: string, argv: readonly string[]): Promise<void> {
  if (command === 'completion') return completion(world, argv)
  const { login, loginFlags, logout, listProfiles } = await import('./login.ts')
  if (argv.includes('--help') || argv.includes('-h')) {
    const { localHelp } = await import('./help.ts')
    const takes: Record<string, string> = {
      login: ' [URL] [flags]',
      profiles: ' [list | use NAME | remove NAME]',
      logout: ' [--profile NAME]',
    }
    return localHelp(
      world.screen,
      `fairlead ${command}${takes[command]}`,
      `${LOCAL[command]}.`,
      command === 'login' ? loginFlags : [profileFlag],
    )
  }
  if (command === 'login') return login(world, argv)
  return command === 'logout' ? logout(world, argv) : listProfiles(world, argv)
}

async function completion({ screen }: World, [shell, ...more]: readonly string[]): Promise<void> {
  const { completionScripts, shells } = await import('./completion-scripts.ts')
  const known = shells.find(name => name === shell)
  if (!known || more.length > 0) throw new UsageError('Usage: fairlead completion bash|zsh|fish')
  screen.print(completionScripts[known].trimEnd())
}

/** `fairlead help users create` is `fairlead users create --help`. */
async function help(world: World, words: readonly string[], rest: readonly string[]): Promise<void> {
  const args = parseArguments(rest, [profileFlag, helpFlag], 'help')
  const [first] = words
  if (first !== undefined && first in LOCAL) return local(world, first, ['--help'])
  if (first !== undefined) return runCommand(world, { words, rest: [...rest, '--help'], profile: profileIn(rest) })
  const target = targetOf(world.profiles, world.env, textOf(args, profileFlag.name))
  const { generalHelp } = await import('./help.ts')
  generalHelp(world.screen, target && (await knownCommands(world, target)))
}

/** From the file, or from the server when there is none yet; help never fails for want of a server. */
async function knownCommands(world: World, target: NonNullable<ReturnType<typeof targetOf>>) {
  const [{ CommandCache }, { Session }] = await Promise.all([import('./command-cache.ts'), import('./session.ts')])
  return new CommandCache(new Session(target, world.profiles), world.env).commands().catch(() => undefined)
}

async function version({ screen, profiles, env }: World, argv: readonly string[]): Promise<void> {
  const args = parseArguments(argv, [profileFlag, { name: 'version', takes: 'nothing', about: '' }], 'fairlead')
  if (!has(args, 'version')) throw new UsageError('Usage: fairlead --version')
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  screen.print(`client ${version}`)
  const target = targetOf(profiles, env, textOf(args, profileFlag.name))
  if (!target) return
  const { serverVersion } = await import('./session.ts')
  screen.print(`server ${await serverVersion(target)} (${target.url})`)
}

function profileIn(rest: readonly string[]): string | undefined {
  const index = rest.indexOf(`--${profileFlag.name}`)
  if (index >= 0) return rest[index + 1]
  return rest.find(arg => arg.startsWith(`--${profileFlag.name}=`))?.slice(`--${profileFlag.name}=`.length)
}

// A reader that has seen enough, such as head, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
main(process.argv.slice(2)).catch((error: unknown) => {
  const words = isExpected(error) ? sentenceOf(error) : `it failed: ${(error as Error).stack}`
  process.stderr.write(`fairlead: ${words}\n`)
  process.exitCode = exitCodeOf(error)
})
