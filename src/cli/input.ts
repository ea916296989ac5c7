// What is sent: path, query and body, put together from the command line, files, and questions about secrets.

import { type Arguments, type Given, textOf } from './arguments.ts'
import type { Command, Field } from './document.ts'
import { UsageError } from './failure.ts'
import { dashed, type Flag, flagsOf, slotsOf, type Target } from './flags.ts'
import { isSecret, present, shapeOf } from './schema.ts'
import { fromFile, fromText, isObject, joined, structured } from './value.ts'

export interface Input {
  path: Record<string, string>
  query: Record<string, unknown>
  body: Record<string, unknown>
}

export interface Sources {
  env: Record<string, string | undefined>
  /** The text of a file; `-` is standard input. */
  read(file: string): Promise<string>
  /** Asks for a secret; undefined where nobody can be asked. */
  ask?: ((question: string) => Promise<string>) | undefined
  warn(sentence: string): void
}

export async function inputOf(command: Command, args: Arguments, sources: Sources): Promise<Input> {
  const input: Input = { path: {}, query: {}, body: await wholeBody(args, sources) }
  for (const given of args.given) if (given.flag.target) await place(input, given, given.flag.target, sources)
  fillSlots(command, args, input, sources)
  await fillSecrets(command, input, sources)
  requireAll(command, input)
  return input
}

async function wholeBody(args: Arguments, sources: Sources): Promise<Record<string, unknown>> {
  const file = textOf(args, 'body-file')
  const text = file === undefined ? textOf(args, 'body') : await sources.read(file)
  if (text === undefined) return {}
  const name = file === undefined ? '--body' : '--body-file'
  const body = await structured(text, name)
  return isObject(body) ? body : fail(`${name} takes an object.`)
}

async function place(input: Input, { flag, value }: Given, target: Target, sources: Sources): Promise<void> {
  const { where, path, schema } = target
  const made = await placed(flag, value, target, sources)
  let into = input[where]
  for (const name of path.slice(0, -1)) {
    if (!isObject(into[name])) into[name] = {}
    into = into[name] as Record<string, unknown>
  }
  const last = path.at(-1) as string
  into[last] = joined(schema, into[last], made)
}

async function placed(flag: Flag, value: Given['value'], target: Target, sources: Sources): Promise<unknown> {
  const name = `--${flag.name}`
  if (target.from === 'file')
    return fromFile(target.schema, target.path.at(-1) as string, await sources.read(value as string), name)
  if (typeof value === 'boolean') return value
  if (value === undefined) return asked(target.schema, target.path.at(-1) as string, sources)
  if (isSecret(target.schema) && shapeOf(target.schema) === 'text') {
    sources.warn(`a secret in ${name} can be read by others in the list of processes; use ${name}-file FILE`)
  }
  return fromText(target.schema, value, name, sources.env)
}

/** Arguments without a flag fill the places that are still free. */
function fillSlots(command: Command, { positional }: Arguments, input: Input, { env }: Sources): void {
  const open = slotsOf(command).filter(({ name, where }) => where === 'path' || input[where][name] === undefined)
  for (const [index, text] of positional.entries()) {
    const slot = open[index]
    if (!slot) throw new UsageError(`Too many arguments. ${usageOf(command)}`)
    if (slot.where === 'path') input.path[slot.name] = text
    else input[slot.where][slot.name] = fromText(slot.schema, text, slot.name.toUpperCase(), env)
  }
}

async function fillSecrets(command: Command, input: Input, sources: Sources): Promise<void> {
  for (const { name, where, required, schema } of command.fields) {
    if (
      !required ||
      where !== 'body' ||
      !isSecret(schema) ||
      shapeOf(schema) !== 'text' ||
      input.body[name] !== undefined
    )
      continue
    if (sources.ask) input.body[name] = await asked(schema, name, sources)
  }
}

/** A secret that has to be of some strength is a new one, so a slip of the finger would lock somebody out. */
async function asked(schema: Field['schema'], name: string, { ask }: Sources): Promise<string> {
  if (!ask) throw new UsageError(`--${dashed(name)} needs a terminal to ask on; use --${dashed(name)}-file FILE.`)
  const words = name.replaceAll('_', ' ')
  const question = words.charAt(0).toUpperCase() + words.slice(1)
  const secret = await ask(`${question}: `)
  if ((present(schema).minLength ?? 0) <= 1) return secret
  if ((await ask('Once more: ')) !== secret) throw new UsageError(`The two were not the same; nothing was sent.`)
  return secret
}

function requireAll(command: Command, input: Input): void {
  const missing = command.fields.filter(({ name, where, required }) => required && input[where][name] === undefined)
  if (missing.length === 0) return
  const slots = new Set(slotsOf(command).map(slot => slot.name))
  const names = missing.map(({ name, schema }) =>
    slots.has(name)
      ? name.toUpperCase()
      : isSecret(schema)
        ? `--${dashed(name)}-file FILE`
        : `--${flagFor(command, name)}`,
  )
  throw new UsageError(`${command.words.join(' ')} needs ${names.join(', ')}. ${usageOf(command)}`)
}

export function usageOf(command: Command): string {
  const slots = slotsOf(command).map(slot => slot.name.toUpperCase())
  return `Usage: ${['fairlead', ...command.words, ...slots, '[flags]'].join(' ')}`
}

function flagFor(command: Command, field: string): string {
  const offered = flagsOf(command).filter(flag => flag.target?.path.length === 1 && flag.target.path[0] === field)
  return (offered.find(flag => !flag.hidden) ?? offered[0])?.name ?? dashed(field)
}

function fail(sentence: string): never {
  throw new UsageError(sentence)
}
