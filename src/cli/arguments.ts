// The command line read by the flags of a command.

import { nearMiss } from '../lib/near-miss.ts'
import { UsageError } from './failure.ts'
import { type Flag, helpFlag, profileFlag } from './flags.ts'

export interface Arguments {
  positional: string[]
  /** In the order they were given; `false` is `--no-…`, undefined a value that is to be asked for. */
  given: Given[]
}

export interface Given {
  flag: Flag
  value: string | boolean | undefined
}

/** Leading words, and everything else: flags that every command knows may stand before them. */
export function splitWords(argv: readonly string[]): { words: string[]; rest: string[] } {
  const words: string[] = []
  const rest: string[] = []
  for (let index = 0; index < argv.length; index++) {
    const arg = argv[index] as string
    if (arg === '--') return { words, rest: [...rest, ...argv.slice(index)] }
    if (!arg.startsWith('-')) words.push(arg)
    else if (EVERYWHERE.has(arg)) rest.push(arg)
    else if (arg === `--${profileFlag.name}`) rest.push(arg, ...argv.slice(++index, index + 1))
    else if (arg.startsWith(`--${profileFlag.name}=`)) rest.push(arg)
    // From the first flag of a command on, a word may be its value.
    else return { words, rest: [...rest, ...argv.slice(index)] }
  }
  return { words, rest }
}

export function parseArguments(argv: readonly string[], flags: readonly Flag[], where: string): Arguments {
  const byName = new Map(flags.flatMap(flag => spellings(flag).map(name => [name, flag])))
  const parsed: Arguments = { positional: [], given: [] }
  for (let index = 0; index < argv.length; index++) {
    const arg = argv[index] as string
    if (arg === '--') return { ...parsed, positional: [...parsed.positional, ...argv.slice(index + 1)] }
    if (!arg.startsWith('-') || arg === '-') {
      parsed.positional.push(arg)
      continue
    }
    const [, name = '', inline] = /^([^=]+)(?:=(.*))?$/s.exec(arg) ?? []
    const flag = byName.get(name) ?? unknownFlag(name, byName.keys(), where)
    if (inline === undefined && flag.takes !== 'nothing' && isValue(argv[index + 1])) {
      parsed.given.push({ flag, value: argv[++index] })
    } else parsed.given.push({ flag, value: flagValue(flag, name, inline) })
  }
  return parsed
}

export const has = ({ given }: Arguments, name: string): boolean =>
  given.some(({ flag, value }) => flag.name === name && !flag.target && value !== false)

export function textOf({ given }: Arguments, name: string): string | undefined {
  const value = given.findLast(({ flag }) => flag.name === name && !flag.target)?.value
  return typeof value === 'string' ? value : undefined
}

const EVERYWHERE = new Set(['--json', '--quiet', '-q', `--${helpFlag.name}`, `-${helpFlag.short}`])

function spellings({ name, short, negatable }: Flag): string[] {
  return [`--${name}`, ...(short ? [`-${short}`] : []), ...(negatable ? [negation(name)] : [])]
}

/** `--no-auto-start`, and inside an object `--no-auto-block.enabled`. */
const negation = (name: string): string => `--no-${name}`

function flagValue(flag: Flag, name: string, inline: string | undefined): string | boolean | undefined {
  if (flag.takes === 'nothing') {
    const positive = name !== negation(flag.name)
    if (inline === undefined) return positive
    if (inline === 'true' || inline === 'false') return (inline === 'true') === positive
    if (inline === 'null' && flag.target) return inline
    throw new UsageError(`${name} takes no value but true or false.`)
  }
  if (inline === undefined && flag.takes === 'text') {
    throw new UsageError(`${name} needs a value: ${name} ${flag.placeholder ?? 'VALUE'}`)
  }
  return inline
}

const isValue = (next: string | undefined): boolean => next !== undefined && !/^--?[A-Za-z]/.test(next) && next !== '--'

function unknownFlag(name: string, known: Iterable<string>, where: string): never {
  if (name === '--plan')
    throw new UsageError(`${where} has no --plan: it changes nothing that could be previewed.`, true)
  const meant = nearMiss(name, known)
  throw new UsageError(
    `${where} has no flag ${name}.${meant ? ` Did you mean ${meant}?` : ''} See: fairlead ${where} --help`,
    true,
  )
}
