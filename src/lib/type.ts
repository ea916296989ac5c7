// Schemas: TypeBox's types and its validator, with a builder of our own for the few forms we use. TypeBox's builder makes
// the same plain JSON Schema, but it is 450 modules: 200 ms of every start, and 14 MB.

import { createRequire } from 'node:module'
import type { TSchema, Type as TypeBox } from 'typebox'

export type { Static, TObject, TSchema } from 'typebox'

type Form =
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe'

/** The parts of TypeBox's builder that are in use, under its own types. */
export const Type = {
  Array: (items: object, options?: object) => ({ type: 'array', items, ...options }),
  Boolean: (options?: object) => ({ type: 'boolean', ...options }),
  Integer: (options?: object) => ({ type: 'integer', ...options }),
  Null: (options?: object) => ({ type: 'null', ...options }),
  Number: (options?: object) => ({ type: 'number', ...options }),
  Object: (properties: Record<string, object>, options?: object) => {
    const required = Object.keys(properties).filter(name => !isOptional(properties[name]))
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options }
  },
  // Not enumerable, as TypeBox has it: a copy of an optional field is not optional by itself.
  Optional: (schema: object) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  Record: (key: { pattern?: string }, value: object, options?: object) => ({
    type: 'object',
    patternProperties: { [key.pattern ?? '^.*$']: value },
    ...options,
  }),
  String: (options?: object) => ({ type: 'string', ...options }),
  Union: (anyOf: object[], options?: object) => ({ anyOf, ...options }),
  Unknown: (options?: object) => ({ ...options }),
  Unsafe: (schema: object) => ({ ...schema }),
} as unknown as Pick<typeof TypeBox, Form>

export interface Validator {
  Check(value: unknown): boolean
  Errors(value: unknown): SchemaError[]
}

export interface SchemaError {
  keyword: string
  instancePath: string
  schemaPath: string
  params: Record<string, unknown>
  message: string
}

/** The validator of TypeBox is loaded when the first schema is compiled. */
export function compile(schema: TSchema): Validator {
  const { Compile } = load('typebox/schema') as typeof import('typebox/schema')
  const compiled = Compile(schema)
  return {
    Check: value => compiled.Check(value),
    Errors: value => compiled.Errors(value)[1] as unknown as SchemaError[],
  }
}

const OPTIONAL = Symbol('optional')
const isOptional = (schema: object | undefined): boolean => schema !== undefined && OPTIONAL in schema
const load = createRequire(import.meta.url)
