// What the client can do, written from the document: all of it, one area, or one command.

import type { Command } from './document.ts'
import { exampleOf } from './example.ts'
import { areasOf, LOCAL } from './find.ts'
import { dashed, type Flag, flagsOf, slotsOf } from './flags.ts'
import { usageOf } from './input.ts'
import { isSecret, present, type Schema, shapeOf, wordsOf } from './schema.ts'
import { type Screen, widthOf } from './screen.ts'

/** Without commands: nobody is logged in, so no server could say what it can do. */
export function generalHelp(screen: Screen, commands: readonly Command[] | undefined): void {
  const areas = commands ? areasOf(commands).map(area => [area, operationsOf(commands, area)] as const) : []
  const lines = [
    'fairlead: controls Docker Compose deployments and all that surrounds them, through an agent.',
    '',
    'Usage: fairlead AREA OPERATION [ARGUMENTS] [flags]',
    '',
    screen.paint('bold', 'The client'),
    ...rows(screen, Object.entries(LOCAL)),
    '',
    ...(areas.length > 0
      ? [screen.paint('bold', 'The agent'), ...rows(screen, areas)]
      : ['Log in to see what the agent can do: fairlead login URL']),
    '',
    'fairlead AREA shows its operations, fairlead AREA OPERATION --help what one takes.',
    'Every change takes --plan to see what it would do, and every answer comes as JSON with --json.',
    'FAIRLEAD_URL and FAIRLEAD_API_KEY serve where nobody can log in; --profile NAME chooses among agents.',
  ]
  for (const line of lines) screen.print(line)
}

export function areaHelp(screen: Screen, below: readonly string[], commands: readonly Command[]): void {
  const entries = commands.map(command => {
    const slots = slotsOf(command).map(slot => slot.name.toUpperCase())
    return [[...command.words.slice(below.length), ...slots].join(' '), command.summary] as const
  })
  screen.print(`Usage: fairlead ${below.join(' ')} OPERATION [ARGUMENTS] [flags]\n`)
  for (const line of rows(screen, entries)) screen.print(line)
  screen.print(`\nfairlead ${below.join(' ')} OPERATION --help shows what it takes.`)
}

export function commandHelp(screen: Screen, command: Command): void {
  const { summary, description, deprecated, permission } = command
  const slots = slotsOf(command)
  const offered = flagsOf(command).filter(flag => !flag.hidden)
  const isSlot = (flag: Flag) => slots.some(slot => flag.target?.path.length === 1 && flag.target.path[0] === slot.name)
  const own = offered.filter(flag => flag.target && !isSlot(flag))
  const section = (title: string, lines: string[]) =>
    lines.length === 0 ? [] : ['', screen.paint('bold', title), ...lines]
  const lines = [
    summary,
    ...(deprecated ? ['It is deprecated and will go.'] : []),
    ...(description ? ['', description] : []),
    '',
    usageOf(command),
    ...section(
      'Arguments',
      rows(
        screen,
        slots.map(slot => [slot.name.toUpperCase(), aboutField(slot.schema, slot.description)] as const),
      ),
    ),
    ...section(
      'Flags',
      rows(
        screen,
        own.map(flag => [spelled(flag), aboutFlag(flag)] as const),
      ),
    ),
    ...section(
      'Also',
      rows(
        screen,
        offered.filter(flag => !flag.target).map(flag => [spelled(flag), flag.about] as const),
      ),
    ),
    ...(own.some(flag => flag.target?.where === 'body')
      ? ['', 'Every text can come from a file: --FIELD-file FILE, with - for standard input.']
      : []),
    '',
    `Needs: ${PERMISSIONS[permission] ?? `the permission ${permission}`}`,
    `Example: ${exampleOf(command)}`,
  ]
  for (const line of lines) screen.print(line)
}

/** Flags of one of the client's own commands. */
export function localHelp(screen: Screen, usage: string, about: string, flags: readonly Flag[]): void {
  screen.print(`${about}\n\nUsage: ${usage}\n`)
  for (const line of rows(
    screen,
    flags.filter(flag => !flag.hidden).map(flag => [spelled(flag), flag.about] as const),
  ))
    screen.print(line)
}

const PERMISSIONS: Record<string, string> = {
  public: 'nothing, not even a login',
  authenticated: 'a login',
  admin: 'the role admin',
}

function operationsOf(commands: readonly Command[], area: string): string {
  return [...new Set(commands.filter(({ words }) => words[0] === area).map(({ words }) => words[1] as string))].join(
    ' ',
  )
}

function spelled({ name, short, placeholder, negatable }: Flag): string {
  const long = negatable ? `--[no-]${name}` : `--${name}`
  return [...(short ? [`-${short},`] : []), long, ...(placeholder ? [placeholder] : [])].join(' ')
}

function aboutFlag({ about, target }: Flag): string {
  if (!target) return about
  const secret = isSecret(target.schema) && target.shape === 'text'
  const asked = target.required
    ? 'asked for on a terminal'
    : `--${target.path.map(dashed).join('.')} asks for it on a terminal`
  return [aboutField(target.schema, about), secret ? asked : target.required ? 'required' : '']
    .filter(Boolean)
    .join('; ')
}

function aboutField(schema: Schema, about: string | undefined): string {
  const { default: byDefault, minimum, maximum, format, ...rest } = present(schema)
  const words = wordsOf(schema)
  const some = words.length > 12 ? [...words.slice(0, 12), '…'] : words
  const bounds =
    shapeOf(schema) === 'number' && (minimum !== undefined || maximum !== undefined) ? boundsText(minimum, maximum) : ''
  return [
    about?.replace(/\.$/, '') ?? '',
    some.length > 0 ? `one of ${some.join(', ')}` : '',
    bounds,
    format === 'date-time' ? 'a time as 2026-01-31T12:00:00Z' : '',
    words.length === 0 && !about ? (rest['x-hint'] ?? '') : '',
    byDefault === undefined ? '' : `default ${JSON.stringify(byDefault)}`,
  ]
    .filter(Boolean)
    .join('; ')
}

function boundsText(minimum: number | undefined, maximum: number | undefined): string {
  const most = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? undefined : maximum
  if (minimum === undefined || minimum <= Number.MIN_SAFE_INTEGER) return most === undefined ? '' : `at most ${most}`
  return most === undefined ? `at least ${minimum}` : `from ${minimum} to ${most}`
}

/** Two columns, the second wrapped to the window. */
function rows(screen: Screen, entries: readonly (readonly [string, string])[]): string[] {
  const width = Math.min(34, Math.max(0, ...entries.map(([left]) => widthOf(left))))
  return entries.flatMap(([left, right]) => {
    const [first = '', ...more] = wrapped(right, Math.max(30, Math.min(screen.columns, 110) - width - 4))
    const indent = ' '.repeat(width + 4)
    if (left.length > width)
      return [`  ${left}`, `${indent}${first}`, ...more.map(line => indent + line)].filter(line => line.trim() !== '')
    return [`  ${left.padEnd(width)}  ${first}`.trimEnd(), ...more.map(line => indent + line)]
  })
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + word.length + 1 > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
