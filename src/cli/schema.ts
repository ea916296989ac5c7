// The part of JSON Schema the served document uses, and what each schema means on a command line.

export interface Schema {
  $ref?: string
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  patternProperties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  default?: unknown
  description?: string
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  'x-secret'?: boolean
  'x-hint'?: string
}

/** How a value is written on the command line. */
export type Shape = 'flag' | 'number' | 'text' | 'list' | 'pairs' | 'map' | 'object' | 'any'

export function shapeOf(schema: Schema): Shape {
  const { type, items, properties } = present(schema)
  if (type === 'boolean') return 'flag'
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'string') return 'text'
  if (type === 'array') return isPair(items ?? {}) ? 'pairs' : 'list'
  if (properties && Object.keys(properties).length > 0) return 'object'
  if (type === 'object') return mapValue(schema) ? 'map' : 'any'
  return 'any'
}

/** The schema of what is there when it is not null. */
export function present(schema: Schema): Schema {
  const options = schema.anyOf?.filter(option => option.type !== 'null')
  if (options?.length !== 1) return schema
  const { anyOf: _, ...outer } = schema
  return { ...outer, ...options[0] }
}

export function isNullable(schema: Schema): boolean {
  return schema.type === 'null' || (schema.anyOf?.some(option => option.type === 'null') ?? false)
}

export function isSecret(schema: Schema): boolean {
  const { items, ...own } = present(schema)
  return own['x-secret'] === true || items?.['x-secret'] === true
}

/** The schema of the values of an object with free names, such as labels. */
export function mapValue(schema: Schema): Schema | undefined {
  const { patternProperties, additionalProperties } = present(schema)
  const [pattern] = Object.values(patternProperties ?? {})
  return pattern ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
}

/** The words an enumeration, or a list of one, allows. */
export function wordsOf(schema: Schema): string[] {
  const { enum: words, items } = present(schema)
  return words?.filter(word => word !== null).map(String) ?? (items ? wordsOf(items) : [])
}

function isPair(schema: Schema): boolean {
  const { properties } = present(schema)
  return properties?.key !== undefined && properties.value !== undefined
}
