// The flags of a command: the client's own, and those that follow from the schemas of its fields.

import type { Command, Field } from './document.ts'
import { isSecret, present, type Schema, type Shape, shapeOf, wordsOf } from './schema.ts'

export interface Flag {
  name: string
  short?: string
  /** `perhaps`: a value can follow; without one it is asked for. */
  takes: 'nothing' | 'text' | 'perhaps'
  placeholder?: string
  about: string
  words?: string[]
  /** Its value is the path of a file. */
  file?: true
  /** `--no-<name>` says the opposite. */
  negatable?: true
  /** Understood, but not offered. */
  hidden?: true
  target?: Target
}

/** Where a value goes: a field of the query or the body, or a place inside one. */
export interface Target {
  where: 'query' | 'body'
  /** Field names from the top. */
  path: string[]
  schema: Schema
  shape: Shape
  required: boolean
  from: 'argument' | 'file'
}

export const profileFlag: Flag = {
  name: 'profile',
  takes: 'text',
  placeholder: 'NAME',
  about: 'Use this profile instead of the current one',
}
export const helpFlag: Flag = { name: 'help', short: 'h', takes: 'nothing', about: 'Show what this takes and does' }

export function flagsOf(command: Command): Flag[] {
  const own = clientFlags(command)
  const taken = new Set(own.map(flag => flag.name))
  const fields = command.fields.filter(field => field.where !== 'path').flatMap(field => fieldFlags(field))
  const named = fields.map(flag => (taken.has(flag.name) ? { ...flag, name: `set-${flag.name}` } : flag))
  // A field that is really called like the file form of another wins.
  const spelled = new Set(named.filter(flag => flag.target?.from === 'argument').map(flag => flag.name))
  return [...named.filter(flag => flag.target?.from === 'argument' || !spelled.has(flag.name)), ...own]
}

/** What stands without a flag, in order: the path, then the required texts that identify what it is about. */
export function slotsOf(command: Command): Field[] {
  const fields = command.fields.filter(field => field.where !== 'path' && field.required && isSlot(field))
  return [...command.fields.filter(field => field.where === 'path'), ...fields]
}

export const dashed = (name: string): string => name.replaceAll('_', '-')

export const isMutation = ({ kind }: Command): boolean => kind === 'command' || kind === 'apply'

function isSlot({ name, schema }: Field): boolean {
  return shapeOf(schema) === 'text' && !isSecret(schema) && !isContent(name)
}

const isContent = (name: string): boolean => name.endsWith('_content')

function clientFlags(command: Command): Flag[] {
  const { kind, headers, plan, upload, stream } = command
  const printed = kind !== 'download'
  const flags: (Flag | false | undefined)[] = [
    plan && { name: 'plan', takes: 'nothing', about: 'Show what would change, and change nothing' },
    headers.includes('Prefer') && {
      name: 'async',
      takes: 'nothing',
      about: 'Answer at once with a job that does the work',
    },
    isMutation(command) && {
      name: 'wait',
      takes: 'nothing',
      about: 'Wait for the job it starts; a terminal always does',
    },
    headers.includes('If-Match') && {
      name: 'if-match',
      takes: 'text',
      placeholder: 'ETAG',
      about: 'Only when this is still the version',
    },
    headers.includes('Idempotency-Key') && {
      name: 'idempotency-key',
      takes: 'text',
      placeholder: 'KEY',
      about: 'The same key and request within 24 hours returns the first answer',
    },
    upload && {
      name: 'file',
      takes: 'text',
      placeholder: 'FILE',
      about: 'What to send; - for standard input',
      file: true,
    },
    stream !== undefined && {
      name: 'follow',
      short: 'f',
      takes: 'nothing',
      about: 'Go on with what comes, until it ends or Ctrl-C',
    },
    !printed && {
      name: 'output',
      short: 'o',
      takes: 'text',
      placeholder: 'FILE',
      about: 'Where to write it; standard output otherwise',
      file: true,
    },
    command.fields.some(field => field.where === 'body') && {
      name: 'body',
      takes: 'text',
      placeholder: 'JSON',
      about: 'The whole body; flags go on top of it',
    },
    command.fields.some(field => field.where === 'body') && {
      name: 'body-file',
      takes: 'text',
      placeholder: 'FILE',
      about: 'The same from a file, JSON or YAML',
      file: true,
    },
    printed && { name: 'json', takes: 'nothing', about: "The server's answer as it is" },
    printed && { name: 'columns', takes: 'text', placeholder: 'A,B', about: 'Which fields to show' },
    printed && { name: 'quiet', short: 'q', takes: 'nothing', about: 'Only names or ids' },
    headers.includes('If-None-Match') && { name: 'etag', takes: 'nothing', about: 'Only the version, for --if-match' },
    profileFlag,
    helpFlag,
  ]
  return flags.filter(flag => flag !== false && flag !== undefined)
}

function fieldFlags({ name, where, schema, required, description }: Field): Flag[] {
  return placeFlags(where === 'body' ? 'body' : 'query', [name], schema, required, description)
}

function placeFlags(where: Target['where'], path: string[], schema: Schema, required: boolean, about?: string): Flag[] {
  const shape = shapeOf(schema)
  const target: Target = { where, path, schema, shape, required, from: 'argument' }
  const words = about ?? present(schema).description ?? ''
  const flags = [argumentFlag(target, words), ...fileFlags(target, words)]
  if (shape !== 'object') return flags
  const { properties = {} } = present(schema)
  return [
    ...flags,
    ...Object.entries(properties).flatMap(([name, inner]) => placeFlags(where, [...path, name], inner, false)),
  ]
}

function argumentFlag(target: Target, about: string): Flag {
  const { path, schema, shape } = target
  const words = wordsOf(schema)
  const content = isContent(path.at(-1) ?? '')
  return {
    name: shape === 'pairs' ? pairName(path) : nameOf(path),
    takes: shape === 'flag' ? 'nothing' : isSecret(schema) && shape === 'text' ? 'perhaps' : 'text',
    ...(shape === 'flag'
      ? { negatable: true as const }
      : { placeholder: words.length > 0 && shape === 'text' ? 'WORD' : PLACEHOLDERS[shape] }),
    about,
    ...(words.length > 0 ? { words } : {}),
    // Offered in the form that people use: nobody types a compose file or a secret into a flag.
    ...(shape === 'object' || content || isSecret(schema) ? { hidden: true as const } : {}),
    target,
  }
}

function fileFlags(target: Target, about: string): Flag[] {
  const { path, schema, shape, where } = target
  if (shape === 'flag' || shape === 'number' || where !== 'body') return []
  const name = shape === 'pairs' ? pairName(path) : nameOf(path).replace(/-content$/, '')
  const offered = isSecret(schema) || isContent(path.at(-1) ?? '') || shape === 'pairs'
  return [
    {
      name: `${name}-file`,
      takes: 'text',
      placeholder: 'FILE',
      about: shape === 'pairs' ? 'The same from a file of KEY=VALUE lines' : about,
      file: true,
      ...(offered ? {} : { hidden: true as const }),
      target: { ...target, from: 'file' },
    },
  ]
}

const nameOf = (path: string[]): string => path.map(dashed).join('.')
/** `env_vars` of keys and values is `--env A=1`. */
const pairName = (path: string[]): string => nameOf(path).replace(/-vars$/, '')

const PLACEHOLDERS: Record<Shape, string> = {
  flag: '',
  number: 'NUMBER',
  text: 'TEXT',
  list: 'A,B',
  pairs: 'KEY=VALUE',
  map: 'KEY=VALUE',
  object: 'JSON',
  any: 'JSON',
}
