// From the words that were typed to the command that was meant.

import { nearMiss } from '../lib/near-miss.ts'
import type { Command } from './document.ts'
import { UsageError } from './failure.ts'

export type Found =
  | { command: Command; positional: string[] }
  /** Words that several commands begin with. */
  | { below: string[]; commands: Command[] }

/** Commands of the client itself, which need no server. */
export const LOCAL: Record<string, string> = {
  login: 'Log in to an agent and remember it',
  logout: 'Forget how to log in',
  profiles: 'List, choose and remove the agents that are remembered',
  completion: 'Print the completion script for bash, zsh or fish',
  help: 'Show this',
}

/** What people also say. */
const SYNONYMS: Record<string, string> = { show: 'get', ls: 'list', rm: 'delete', remove: 'delete' }

export function findCommand(commands: readonly Command[], words: readonly string[]): Found {
  const exact = longest(commands, words) ?? longest(commands, words.map(spoken))
  if (exact) return { command: exact, positional: words.slice(exact.words.length) }
  for (let length = words.length; length > 0; length--) {
    const start = words.slice(0, length)
    const below = commands.filter(command => startsWith(command.words, start))
    if (below.length === 0) continue
    if (length === words.length) return { below: start, commands: below }
    throw unknownOperation(start, words[length] as string, below)
  }
  throw unknownArea(words[0] ?? '', commands)
}

export const areasOf = (commands: readonly Command[]): string[] => [
  ...new Set(commands.map(command => command.words[0] as string)),
]

/** A synonym stands for an operation, never for an area or an argument. */
const spoken = (word: string, index: number): string => (index > 0 ? (SYNONYMS[word] ?? word) : word)

function longest(commands: readonly Command[], words: readonly string[]): Command | undefined {
  const matching = commands.filter(command => startsWith(words, command.words))
  return matching.sort((a, b) => b.words.length - a.words.length)[0]
}

const startsWith = (words: readonly string[], start: readonly string[]): boolean =>
  start.every((word, index) => words[index] === word)

function unknownOperation(area: string[], word: string, below: Command[]): UsageError {
  const known = [...new Set(below.map(command => command.words[area.length] as string))]
  const meant = nearMiss(word, known)
  const hint = meant ? `Did you mean ${meant}?` : `It has: ${known.join(', ')}`
  return new UsageError(`${area.join(' ')} has no operation "${word}". ${hint}`, true)
}

function unknownArea(word: string, commands: readonly Command[]): UsageError {
  const areas = [...areasOf(commands), ...Object.keys(LOCAL)]
  const named = commands.filter(command => command.words.at(-1) === word)
  const meant = nearMiss(word, areas) ?? (named.length === 1 ? named[0]?.words.join(' ') : undefined)
  const hint = meant ? `Did you mean: fairlead ${meant}` : 'See: fairlead help'
  return new UsageError(`There is no command "${word}". ${hint}`, true)
}
