// A variable of a template: what its author may say about it, and which values it takes.

import type { Fresh } from '../../core/fresh.ts'
import { REDACTED, type Static, Type, Words } from '../../core/schema.ts'

export const variableTypes = ['string', 'password', 'number', 'boolean', 'port', 'choice'] as const
export const generatedFormats = ['text', 'hex', 'base64'] as const

const Value = Type.Union([Type.String(), Type.Number(), Type.Boolean()])

/** As `template.yml` writes it. */
export const VariableFile = Type.Object({
  key: Type.String({
    pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$',
    'x-hint': 'must be a variable name: letters, digits and _',
  }),
  label: Type.Optional(Type.String({ maxLength: 100 })),
  description: Type.Optional(Type.String({ maxLength: 500 })),
  type: Type.Optional(Words(variableTypes)),
  default: Type.Optional(Value),
  required: Type.Optional(Type.Boolean()),
  secret: Type.Optional(Type.Boolean()),
  generate: Type.Optional(
    Type.Union(
      [
        Type.Boolean(),
        Type.Object({
          format: Type.Optional(Words(generatedFormats)),
          length: Type.Optional(Type.Integer({ minimum: 8, maximum: 128 })),
        }),
      ],
      { 'x-hint': 'must be true, or say `format` (text, hex, base64) and `length` (8 to 128)' },
    ),
  ),
  options: Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { minItems: 1, maxItems: 100 })),
})

export interface Variable {
  key: string
  label: string
  description: string
  type: (typeof variableTypes)[number]
  default: string | number | boolean | null
  required: boolean
  secret: boolean
  /** How a value is made when none is given. `length` counts letters for text, bytes for hex and base64. */
  generate: { format: (typeof generatedFormats)[number]; length: number } | null
  options: string[]
}

export type Given = Static<typeof Value>

/** The variable with all that was left out filled in. */
export function variableOf(file: Static<typeof VariableFile>): Variable {
  const { key, type = 'string', generate = false } = file
  return {
    key,
    label: file.label ?? key,
    description: file.description ?? '',
    type,
    default: file.default ?? null,
    required: file.required ?? false,
    secret: file.secret ?? (type === 'password' || generate !== false),
    generate: generate === false ? null : { format: 'text', length: 32, ...(generate === true ? {} : generate) },
    options: file.options ?? [],
  }
}

/** What is wrong with a variable in itself; nothing when it is fine. */
export function variableFault(variable: Variable): string | undefined {
  const { key, type, generate, secret, options } = variable
  if (reserved.test(key)) return 'has a name that Compose itself obeys: choose another'
  if (type === 'choice' && options.length === 0) return 'is a choice and needs `options`'
  if (type !== 'choice' && options.length > 0) return 'has `options`, but is not of type choice'
  if (generate && !secret) return 'is generated, so it cannot be `secret: false`'
  if (generate && type !== 'string' && type !== 'password')
    return 'is generated, so its type must be string or password'
  if (variable.default === null) return undefined
  if (secret) return 'is a secret and must have no default: use `generate` or `required`'
  const fault = valueFault(variable, variable.default)
  return fault && `has a default that ${fault}`
}

/** Whether a caller said nothing about it, so that its default or a generated value counts. */
export function isLeftOut(variable: Variable, given: Given | undefined): boolean {
  if (given === undefined) return true
  if (variable.secret && given === REDACTED) return true
  return given === '' && (variable.type !== 'string' || variable.required || variable.secret)
}

/** What is wrong with a value; nothing when it is fine. */
export function valueFault({ type, options }: Variable, value: Given): string | undefined {
  switch (type) {
    case 'string':
    case 'password':
      if (typeof value !== 'string') return 'must be text'
      if (value.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`
      return controls.test(value) ? 'must be one line without control characters' : undefined
    case 'number':
      return /^-?\d+(\.\d+)?$/.test(String(value)) ? undefined : 'must be a number'
    case 'port':
      return /^[1-9]\d{0,4}$/.test(String(value)) && Number(value) <= 65_535 ? undefined : 'must be a port: 1 to 65535'
    case 'boolean':
      return /^(true|false)$/.test(String(value)) ? undefined : 'must be true or false'
    case 'choice':
      return options.includes(String(value)) ? undefined : `must be one of ${options.join(', ')}`
  }
}

/** A value of its own for each deployment, made of the deployment's seed. */
export function generatedValue(
  { format, length }: NonNullable<Variable['generate']>,
  fresh: Fresh,
  name: string,
): string {
  return format === 'text' ? fresh.text(name, length) : fresh.bytes(name, length).toString(format)
}

const MAX_LENGTH = 4096
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
const controls = /[\u0000-\u001f\u007f]/
/** What Compose and the engine's programs obey when it stands in `.env`. */
const reserved =
  /^(?:(?:COMPOSE|DOCKER|BUILDKIT|BUILDX|OTEL|LD|XDG)_.*|PATH|HOME|PWD|TMPDIR|GODEBUG|(?:HTTPS?|ALL|NO)_PROXY)$/i
