// An example of a command line, made from the examples in the document.

import type { Command, Field } from './document.ts'
import { dashed, type Flag, flagsOf, slotsOf, type Target } from './flags.ts'
import { isSecret, present } from './schema.ts'
import { isObject } from './value.ts'

export function exampleOf(command: Command): string {
  const slots = slotsOf(command)
  const texts = slots.map(slot => (slot.example === undefined ? slot.name.toUpperCase() : String(slot.example)))
  const named = new Set(slots.map(slot => slot.name))
  const flags = flagsOf(command).flatMap(flag =>
    flag.target && !named.has(flag.target.path[0] ?? '') ? flagWords(command, flag, flag.target) : [],
  )
  const files = command.upload ? ['--file', 'FILE'] : command.kind === 'download' ? ['--output', 'FILE'] : []
  return ['fairlead', ...command.words, ...texts.map(shellWord), ...flags, ...files].join(' ')
}

/** Values as the shell takes them. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

function flagWords(command: Command, flag: Flag, target: Target): string[] {
  const field = command.fields.find(one => one.name === target.path[0])
  const value = valueAt(field, target.path.slice(1))
  if (field === undefined || value === undefined || value === null || isSecret(target.schema)) return []
  if (value === present(target.schema).default || target.shape === 'object') return []
  if (target.path.at(-1)?.endsWith('_content'))
    return target.from === 'file' ? [`--${flag.name}`, contentFile(field.name)] : []
  return target.from === 'file' ? [] : argumentWords(flag, target, value)
}

function argumentWords(flag: Flag, { shape }: Target, value: unknown): string[] {
  const name = `--${flag.name}`
  if (shape === 'flag') return [value === true ? name : `--no-${flag.name}`]
  if (shape === 'pairs' && Array.isArray(value))
    return value.flatMap(pair => [name, shellWord(`${pair.key}=${pair.value}`)])
  if (shape === 'map' && isObject(value))
    return Object.entries(value).flatMap(([key, inner]) => [name, shellWord(`${key}=${inner}`)])
  if (Array.isArray(value) && !value.some(item => typeof item === 'object'))
    return value.length === 0 ? [] : [name, shellWord(value.join(','))]
  return [name, shellWord(typeof value === 'object' ? JSON.stringify(value) : String(value))]
}

const valueAt = (field: Field | undefined, path: string[]): unknown =>
  path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), field?.example)

const contentFile = (name: string): string => `${dashed(name).replace(/-content$/, '')}.yml`
