// A text from the command line or from a file, made into the value its schema asks for.

import { UsageError } from './failure.ts'
import { isNullable, mapValue, present, type Schema, shapeOf } from './schema.ts'

/** `name` is the flag or argument, for the sentence when the text does not fit. */
export function fromText(schema: Schema, text: string, name: string, env: Record<string, string | undefined>): unknown {
  if (text === 'null' && isNullable(schema)) return null
  const inner = present(schema)
  switch (shapeOf(schema)) {
    case 'flag':
      return text === 'true' ? true : text === 'false' ? false : wrong(name, 'true or false')
    case 'number':
      return numberOf(inner, text, name)
    case 'text':
      return text
    case 'list':
      return listOf(inner.items ?? {}, text, name, env)
    case 'pairs':
      return text.startsWith('[') ? json(text, name) : [pairOf(text, name, env)]
    case 'map':
      return text.startsWith('{') ? json(text, name) : mapOf(mapValue(schema) ?? {}, text, name, env)
    case 'object':
      return json(text, name)
    default:
      return looseOf(text)
  }
}

/** The content of a file as the value of a field: texts as they are, anything else from JSON or YAML. */
export async function fromFile(schema: Schema, field: string, text: string, name: string): Promise<unknown> {
  const shape = shapeOf(schema)
  if (shape === 'text') return field.endsWith('_content') ? text : text.replace(/\r?\n$/, '')
  if (shape === 'pairs') {
    const { parseEnv } = await import('node:util')
    return Object.entries(parseEnv(text)).map(([key, value]) => ({ key, value }))
  }
  const value = await structured(text, name)
  if (shape === 'list' && !Array.isArray(value)) return text.split(/\r?\n/).filter(line => line.trim() !== '')
  return value
}

/** JSON is YAML too. */
export async function structured(text: string, name: string): Promise<unknown> {
  const { parse } = await import('yaml')
  try {
    return parse(text)
  } catch (error) {
    throw new UsageError(
      `${name}: the file is neither JSON nor YAML: ${String((error as Error).message).split('\n')[0]}`,
    )
  }
}

/** What a repeated flag adds to what was said before. */
export function joined(schema: Schema, before: unknown, next: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(next)) return [...before, ...next]
  const mergeable = shapeOf(schema) === 'map' || shapeOf(schema) === 'object'
  return mergeable && isObject(before) && isObject(next) ? { ...before, ...next } : next
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

function numberOf({ type }: Schema, text: string, name: string): number {
  const pattern = type === 'integer' ? /^-?\d+$/ : /^-?\d+(\.\d+)?$/
  return pattern.test(text) ? Number(text) : wrong(name, type === 'integer' ? 'a whole number' : 'a number')
}

function listOf(items: Schema, text: string, name: string, env: Record<string, string | undefined>): unknown[] {
  if (text.startsWith('[')) return json(text, name) as unknown[]
  if (text === '') return []
  if (shapeOf(items) !== 'object') return text.split(',').map(part => fromText(items, part.trim(), name, env))
  return [text.startsWith('{') ? json(text, name) : objectOf(items, text, name, env)]
}

/** An object in a list, as `name=web,port=80`. */
function objectOf(schema: Schema, text: string, name: string, env: Record<string, string | undefined>): object {
  const { properties = {} } = present(schema)
  const entries = text.split(',').map(part => {
    const [, key = '', value = ''] = /^([^=]+)=(.*)$/s.exec(part) ?? wrong(name, 'NAME=VALUE,NAME=VALUE or JSON')
    const field = key.trim().replaceAll('-', '_')
    const known = properties[field] ?? wrong(name, `one of ${Object.keys(properties).join(', ')} before each =`)
    return [field, fromText(known, value, `${name} ${key}`, env)]
  })
  return Object.fromEntries(entries)
}

/** `KEY=VALUE`; `KEY` alone takes the value from the client's environment, where no other process reads it. */
function pairOf(text: string, name: string, env: Record<string, string | undefined>): { key: string; value: string } {
  const at = text.indexOf('=')
  if (at > 0) return { key: text.slice(0, at), value: text.slice(at + 1) }
  const value = env[text]
  if (at === 0 || value === undefined)
    return wrong(name, `KEY=VALUE; there is no variable ${text} in the environment to take it from`)
  return { key: text, value }
}

function mapOf(values: Schema, text: string, name: string, env: Record<string, string | undefined>): object {
  const at = text.indexOf('=')
  if (at <= 0) return wrong(name, 'KEY=VALUE')
  return { [text.slice(0, at)]: fromText(values, text.slice(at + 1), name, env) }
}

function json(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return wrong(name, 'valid JSON')
  }
}

function looseOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function wrong(name: string, expected: string): never {
  throw new UsageError(`${name} takes ${expected}.`)
}
