// What could come next on a half-typed command line, from what is kept in files: no network, no waiting.

import { keptCommands } from './command-cache.ts'
import type { Command } from './document.ts'
import { areasOf, findCommand, LOCAL } from './find.ts'
import { type Flag, flagsOf, helpFlag, profileFlag, slotsOf } from './flags.ts'
import type { Profiles } from './profile.ts'
import { wordsOf } from './schema.ts'
import { targetOf } from './target.ts'

export interface Candidate {
  value: string
  about: string
}

/** `words` after the program's name, the last one being typed. `files` when the shell should offer its own. */
export function candidates(
  words: readonly string[],
  profiles: Profiles,
  env: Record<string, string | undefined>,
): Candidate[] | 'files' {
  const before = words.slice(0, -1)
  const current = words.at(-1) ?? ''
  const named = before[before.indexOf(`--${profileFlag.name}`) + 1]
  const target = targetSafely(profiles, env, before.includes(`--${profileFlag.name}`) ? named : undefined)
  const commands = (target === undefined ? undefined : keptCommands(env, target)) ?? []
  const offered = offersOf(commands, before, current, profiles)
  return offered === 'files' ? offered : offered.filter(({ value }) => value.startsWith(current))
}

/** The lines a shell's script reads: `value<TAB>about`, or `:files`. */
export function completionLines(
  shell: string,
  words: readonly string[],
  profiles: Profiles,
  env: Record<string, string | undefined>,
): string[] {
  const whole = shell === 'bash' ? rejoined(words) : words
  const found = candidates(whole, profiles, env)
  if (found === 'files') return [':files']
  // Bash replaces only what follows the last break it made in the word.
  const typed = words.at(-1) ?? ''
  const kept = (whole.at(-1) ?? '').length - (/^[=:]+$/.test(typed) && whole.at(-1) !== typed ? 0 : typed.length)
  return found.map(({ value, about }) => `${value.slice(kept)}\t${about.split('\n')[0]}`)
}

function offersOf(
  commands: readonly Command[],
  before: readonly string[],
  current: string,
  profiles: Profiles,
): Candidate[] | 'files' {
  const words = before.filter((word, index) => !word.startsWith('-') && before[index - 1] !== `--${profileFlag.name}`)
  if (before.at(-1) === `--${profileFlag.name}`) return profiles.names().map(value => ({ value, about: '' }))
  const [first] = words
  if (first !== undefined && first in LOCAL) return localOffers(first, words, current, profiles)
  const found = foundSafely(commands, words)
  if (found && 'command' in found) return commandOffers(found.command, found.positional, before, current)
  if (current.startsWith('-')) return [helpFlag, profileFlag].map(flagOffer)
  if (first === undefined)
    return [...areasOf(commands).map(value => ({ value, about: areaAbout(commands, value) })), ...localCommands()]
  if (!found) return []
  const next = found.commands.map(command => ({
    value: command.words[found.below.length] as string,
    about: command.summary,
  }))
  return [...new Map(next.map(offer => [offer.value, offer])).values()]
}

function commandOffers(
  command: Command,
  positional: readonly string[],
  before: readonly string[],
  current: string,
): Candidate[] | 'files' {
  const flags = flagsOf(command)
  const spelled = /^--([^=]+)=(.*)$/s.exec(current)
  const flagNamed = (word: string | undefined) =>
    flags.find(flag => word === `--${flag.name}` || (flag.short && word === `-${flag.short}`))
  if (spelled) {
    const values = flagValues(flagNamed(`--${spelled[1]}`), spelled[2] ?? '')
    return values === 'files' ? values : values.map(offer => ({ ...offer, value: `--${spelled[1]}=${offer.value}` }))
  }
  const last = flagNamed(before.at(-1))
  if (last && last.takes === 'text') return flagValues(last, current)
  if (current.startsWith('-'))
    return flags
      .filter(flag => !flag.hidden)
      .flatMap(flag => (flag.negatable ? [flagOffer(flag), negation(flag)] : [flagOffer(flag)]))
  const taken = positional.length - valuesAmong(before, flags)
  const slot = slotsOf(command)[taken]
  return slot
    ? wordsOf(slot.schema).map(value => ({ value, about: '' }))
    : flags.filter(flag => flag.target && !flag.hidden).map(flagOffer)
}

function flagValues(flag: Flag | undefined, current: string): Candidate[] | 'files' {
  if (flag?.file) return 'files'
  const list = flag?.target?.shape === 'list' ? current.slice(0, current.lastIndexOf(',') + 1) : ''
  return (flag?.words ?? []).map(word => ({ value: list + word, about: '' }))
}

/** Words that are values of flags, not arguments. */
function valuesAmong(before: readonly string[], flags: readonly Flag[]): number {
  return before.filter((word, index) => {
    const previous = before[index - 1] ?? ''
    return !word.startsWith('-') && flags.some(flag => flag.takes === 'text' && previous === `--${flag.name}`)
  }).length
}

function localOffers(
  first: string,
  words: readonly string[],
  current: string,
  profiles: Profiles,
): Candidate[] | 'files' {
  const offer = (values: string[]) => values.map(value => ({ value, about: '' }))
  if (first === 'completion') return words.length === 1 ? offer(['bash', 'zsh', 'fish']) : []
  if (first === 'login')
    return current.startsWith('-')
      ? offer(['--api-key-file', '--username', '--password-file', '--ca-file', '--profile'])
      : []
  if (first !== 'profiles') return current.startsWith('-') ? [flagOffer(profileFlag)] : []
  return offer(words.length === 1 ? ['list', 'use', 'remove'] : words.length === 2 ? profiles.names() : [])
}

/** Bash breaks words at `=` and `:`; they are put together again. */
function rejoined(words: readonly string[]): string[] {
  const whole: string[] = []
  for (const [index, word] of words.entries()) {
    const glued = index > 0 && (/^[=:]+$/.test(word) || /[=:]$/.test(words[index - 1] ?? ''))
    if (glued) whole.push(`${whole.pop() ?? ''}${word}`)
    else whole.push(word)
  }
  return whole
}

const flagOffer = ({ name, about }: Flag): Candidate => ({ value: `--${name}`, about })
const negation = ({ name, about }: Flag): Candidate => ({ value: `--no-${name}`, about })
const localCommands = (): Candidate[] => Object.entries(LOCAL).map(([value, about]) => ({ value, about }))
const areaAbout = (commands: readonly Command[], area: string): string =>
  commands
    .filter(command => command.words[0] === area)
    .map(command => command.words.slice(1).join(' '))
    .join(', ')

function foundSafely(commands: readonly Command[], words: readonly string[]) {
  try {
    return words.length === 0 ? undefined : findCommand(commands, words)
  } catch {
    return undefined
  }
}

function targetSafely(
  profiles: Profiles,
  env: Record<string, string | undefined>,
  named: string | undefined,
): string | undefined {
  try {
    return targetOf(profiles, env, named)?.url
  } catch {
    return undefined
  }
}
