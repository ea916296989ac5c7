// The one validator and the one redactor: TypeBox schemas, compiled on first use, with secrets marked in the schema.

import {
  compile,
  type SchemaError,
  type Static,
  type TObject,
  type TSchema,
  Type,
  type Validator,
} from '../lib/type.ts'
import { fail } from './failure.ts'

export { type Static, type TObject, type TSchema, Type }

export const REDACTED = '[redacted]'

/** Marks a field whose value is never shown: plan, audit, log, error, OpenAPI and client redact by this mark. */
export function Secret<T extends TSchema>(schema: T): T {
  return { ...schema, format: 'password', 'x-secret': true }
}

/** One of some words. */
export const Words = <const T extends readonly string[]>(words: T, options: object = {}) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...words], ...options })

/** A page of a list that can grow without bound. */
export const Paged = <T extends TSchema>(item: T) =>
  Type.Object(
    {
      data: Type.Array(item),
      total: Type.Integer(),
      total_capped: Type.Optional(Type.Boolean()),
      limit: Type.Integer(),
      offset: Type.Integer(),
    },
    { 'x-paged': true },
  )

/** Beyond this a total costs more than it tells. */
export const COUNTED = 10_000

/** A page out of a list that is there whole. */
export function pageOf<T, R>(list: readonly T[], limit: number, offset: number, show: (item: T) => R) {
  const data = list.slice(offset, offset + limit).map(show)
  return { data, ...totalOf(list.length), limit, offset }
}

/** A total is exact up to a bound, and says so beyond it. */
export const totalOf = (counted: number): { total: number; total_capped?: true } =>
  counted > COUNTED ? { total: COUNTED, total_capped: true } : { total: counted }

export const isPaged = (schema: TSchema): boolean => (schema as Annotated)['x-paged'] === true

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
export const Time = (options: object = {}) => Type.String({ format: 'date-time', ...options })
export const Limit = (byDefault: number, maximum = 1000) => Type.Integer({ minimum: 1, maximum, default: byDefault })
export const Offset = Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })
export const RecordId = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
export const Nothing = Type.Null()

export interface Annotated {
  type?: string
  properties?: Record<string, TSchema>
  required?: string[]
  items?: TSchema
  anyOf?: TSchema[]
  patternProperties?: Record<string, TSchema>
  additionalProperties?: TSchema | boolean
  default?: unknown
  enum?: unknown[]
  const?: unknown
  pattern?: string
  format?: string
  'x-secret'?: boolean
  'x-paged'?: boolean
  'x-hint'?: string
}

const validators = new WeakMap<object, Validator>()

function validatorOf(schema: TSchema): Validator {
  const known = validators.get(schema)
  if (known) return known
  const made = compile(closed(schema))
  validators.set(schema, made)
  return made
}

/** The value with defaults filled in, or a `VALIDATION_FAILED` that names every fault by its path. */
export function validate<T extends TSchema>(schema: T, value: unknown, nowhere = 'The request'): Static<T> {
  const filled = withDefaults(schema, value)
  const validator = validatorOf(schema)
  if (validator.Check(filled)) return filled as Static<T>
  const details = faults(schema, validator.Errors(filled))
  fail('VALIDATION_FAILED', `${nowhere} is not valid: ${details.map(sentence).slice(0, 3).join('; ')}.`, details)
}

export function isValid(schema: TSchema, value: unknown): boolean {
  return validatorOf(schema).Check(value)
}

export function validationErrors(schema: TSchema, value: unknown): Fault[] {
  const validator = validatorOf(schema)
  return validator.Check(value) ? [] : faults(schema, validator.Errors(value))
}

/** A copy in which every value marked as secret says `[redacted]`. */
export function redact(schema: TSchema, value: unknown): unknown {
  const node = schema as Annotated
  if (node['x-secret']) return value === undefined || value === null || value === '' ? value : REDACTED
  if (node.anyOf && value !== null && typeof value === 'object') {
    const alike = (option: Annotated) => (Array.isArray(value) ? option.items : option.properties) !== undefined
    const branch = node.anyOf.find(option => isValid(option, value)) ?? node.anyOf.find(alike)
    return branch ? redact(branch, value) : value
  }
  if (Array.isArray(value)) return node.items ? value.map(item => redact(node.items as TSchema, item)) : value
  if (value === null || typeof value !== 'object') {
    return node.anyOf?.some(option => (option as Annotated)['x-secret']) && value ? REDACTED : value
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const field = fieldOf(node, key)
      return [key, field ? redact(field, inner) : inner]
    }),
  )
}

/** `[redacted]` sent back keeps what is stored. */
export function keepRedacted<T>(incoming: T, stored: unknown): T {
  if (incoming === REDACTED) return stored as T
  if (Array.isArray(incoming) || incoming === null || typeof incoming !== 'object') return incoming
  const old = (stored ?? {}) as Record<string, unknown>
  return Object.fromEntries(Object.entries(incoming).map(([key, value]) => [key, keepRedacted(value, old[key])])) as T
}

/** Query and path parameters are text: turn each into what its schema asks for, and leave alone what does not fit. */
export function fromText(schema: TSchema, text: unknown): unknown {
  const node = schema as Annotated
  if (node.anyOf) {
    for (const option of node.anyOf) {
      const read = fromText(option, text)
      if (isValid(option, read)) return read
    }
    return text
  }
  if (node.type === 'array')
    return (Array.isArray(text) ? text : String(text).split(',')).map(item => fromText(node.items ?? {}, item))
  if (typeof text !== 'string') return text
  if (node.type === 'integer' || node.type === 'number') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
  if (node.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (node.type === 'object') return jsonOr(text)
  return text
}

export interface Fault {
  path: string
  message: string
}

function faults(schema: TSchema, errors: readonly SchemaError[]): Fault[] {
  const found = new Map<string, Fault>()
  const add = (path: string, message: string) => {
    if (!found.has(path)) found.set(path, { path, message })
  }
  const insideUnion = errors.filter(error => error.keyword === 'anyOf').map(error => error.instancePath)
  for (const error of errors) {
    const path = error.instancePath.slice(1).replaceAll('/', '.')
    if (error.keyword === 'boolean') continue
    if (error.keyword === 'additionalProperties') {
      for (const name of error.params.additionalProperties as string[]) add(join(path, name), 'is not known')
    } else if (error.keyword === 'required') {
      for (const name of error.params.requiredProperties as string[]) add(join(path, name), 'is required')
    } else if (error.keyword === 'anyOf' || !insideUnion.includes(error.instancePath)) {
      add(path, hintAt(schema, path) ?? phrase(error))
    }
  }
  return found.size > 0 ? [...found.values()] : [{ path: '', message: 'is not valid' }]
}

function phrase(error: SchemaError): string {
  const allowed = error.params.allowedValues
  if (Array.isArray(allowed)) return `must be one of ${allowed.join(', ')}`
  if (error.keyword === 'pattern') return `must match ${error.params.pattern}`
  if (error.keyword === 'anyOf') return 'has none of the allowed forms'
  return error.message
}

/** A schema may say in words what it expects (`x-hint`), which serves a person better than a pattern. */
function hintAt(schema: TSchema, path: string): string | undefined {
  let node: Annotated | undefined = schema as Annotated
  for (const part of path.split('.').filter(Boolean))
    node = node && ((fieldOf(node, part) ?? node.items) as Annotated | undefined)
  return node?.['x-hint']
}

const sentence = (fault: Fault) =>
  fault.path === '' ? `the body ${fault.message}` : `\`${fault.path}\` ${fault.message}`
const join = (path: string, name: string) => (path === '' ? name : `${path}.${name}`)

function fieldOf(node: Annotated, key: string): TSchema | undefined {
  if (node.properties && Object.hasOwn(node.properties, key)) return node.properties[key]
  const [pattern] = Object.values(node.patternProperties ?? {})
  return pattern ?? (typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined)
}

/** Unknown fields are refused everywhere unless a schema says otherwise. */
function closed(schema: TSchema): TSchema {
  const node = schema as Annotated
  const copy: Record<string, unknown> = { ...node }
  if (node.properties) {
    copy.properties = Object.fromEntries(Object.entries(node.properties).map(([key, field]) => [key, closed(field)]))
    copy.additionalProperties = node.additionalProperties ?? false
  }
  if (node.items) copy.items = closed(node.items)
  if (node.anyOf) copy.anyOf = node.anyOf.map(closed)
  return copy as TSchema
}

function withDefaults(schema: TSchema, value: unknown): unknown {
  const node = schema as Annotated
  if (value === undefined) return node.default
  if (!node.properties || value === null || typeof value !== 'object' || Array.isArray(value)) return value
  const filled: Record<string, unknown> = { ...value }
  for (const [key, field] of Object.entries(node.properties)) {
    const inner = withDefaults(field, Object.hasOwn(filled, key) ? filled[key] : undefined)
    if (inner !== undefined) filled[key] = inner
  }
  return filled
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
