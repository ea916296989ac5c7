// Generated input: values that fit a JSON schema, values that nearly do, and what people throw at an API to break it.

import fc from 'fast-check'

interface Schema {
  type?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema | boolean
  patternProperties?: Record<string, Schema>
  pattern?: string
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
}

/** Texts that have broken somebody's parser, store, shell, path or log. */
export const hostileTexts = [
  '', ' ', '\u0000', 'a\u0000b', '\ud800', '\udfff\ud800', '\u202e', '\ufeff', '\r\nX-Injected: 1', '../../etc/passwd', '..', '.',
  '/', '%00', '%2e%2e%2f', '__proto__', 'constructor', 'toString', 'null', 'undefined', 'NaN', 'true', '-1', '0', '1e309',
  '99999999999999999999', '; touch /tmp/pwned', '$(id)', '`id`', "'; DROP TABLE users; --", '" OR 1=1', '{{7*7}}', '<script>',
  '[redacted]', '$now', '=cmd', '\u00e9'.repeat(100), 'x'.repeat(5000), '💥', 'İ', '\uffff',
] // biome-ignore format: a table of words

export const hostileText = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 50 }) },
)

export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  fc.constantFrom(null, true, false, 0, -1, 1.5, 1e308, -1e308, Number.MAX_SAFE_INTEGER + 2, [], {}, [[]], [null]),
  fc.constantFrom(
    { $now: 0 },
    { $result: ['a', 'b'] },
    { constructor: { prototype: 1 } },
    { length: -1 },
    { toJSON: 'x' },
  ),
  fc.jsonValue({ maxDepth: 3 }),
)

/** Values that fit a schema, as far as its words can be followed. */
export function fitting(schema: object): fc.Arbitrary<unknown> {
  const node = schema as Schema
  if (node.const !== undefined) return fc.constant(node.const)
  if (node.enum) return fc.constantFrom(...node.enum)
  if (node.anyOf) return fc.oneof(...node.anyOf.map(fitting))
  if (node.type === 'integer') return whole(node)
  if (node.type === 'number') return fc.double({ noNaN: true, min: node.minimum ?? -1e6, max: node.maximum ?? 1e6 })
  if (node.type === 'boolean') return fc.boolean()
  if (node.type === 'null') return fc.constant(null)
  if (node.type === 'string') return text(node)
  if (node.type === 'array') return fc.array(fitting(node.items ?? {}), { maxLength: Math.min(node.maxItems ?? 4, 4) })
  if (node.type === 'object') return object(node)
  return fc.jsonValue({ maxDepth: 2 })
}

/** A body: most fit, some nearly, some not at all; a string is sent as it is. */
export function bodies(schema: object, example: unknown): fc.Arbitrary<unknown> {
  const names = Object.keys((schema as Schema).properties ?? {})
  const near = fc
    .tuple(
      fc.oneof(fc.constant(example ?? {}), fitting(schema)),
      fc.constantFrom(...names, 'unknown_field'),
      hostileValue,
    )
    .map(([base, name, value]) => ({ ...(base as object), [name]: value }))
  const without = fc
    .tuple(fc.constant(example ?? {}), fc.constantFrom(...names, 'x'))
    .map(([base, name]) => Object.fromEntries(Object.entries(base as object).filter(([key]) => key !== name)))
  return fc.oneof(
    { weight: 4, arbitrary: fitting(schema) },
    { weight: 5, arbitrary: near },
    { weight: 1, arbitrary: without },
    { weight: 1, arbitrary: hostileValue },
    { weight: 1, arbitrary: fc.constantFrom(...brokenBodies) },
  )
}

/** Sent as they are, because no value would give them. */
const brokenBodies = [
  '{', '{"a":}', '', 'null', '[]', '"text"', '1e400', '{"__proto__":{"role":"admin"}}', '{"a":1,"a":2}', '\ufeff{}', '{"name":"\\ud800"}',
  `${'['.repeat(3000)}${']'.repeat(3000)}`, `${'{"a":'.repeat(1500)}1${'}'.repeat(1500)}`, `{"limit":${'9'.repeat(400)}}`,
] // biome-ignore format: a table of bodies

const anyHeader = fc.constantFrom(
  '',
  '*',
  '"',
  '"x"',
  'W/"x"',
  '"a", "b"',
  'x'.repeat(300),
  ',,,',
  '\u00e9',
  'true',
  '-1',
)
export const headers: fc.Arbitrary<Record<string, string>> = fc.record(
  {
    'idempotency-key': fc.oneof(anyHeader, fc.constantFrom('one', 'two')),
    'if-match': anyHeader,
    'if-none-match': anyHeader,
    prefer: fc.constantFrom('respond-async', 'respond-async; wait=1', 'return=minimal', '', 'x'),
    accept: fc.constantFrom('*/*', 'application/json', 'application/x-ndjson', 'text/html', '', 'garbage', ';;;'),
    'content-type': fc.constantFrom(
      'application/json', 'application/json; charset=utf-8', 'application/json;charset=nonsense', 'text/plain', '', 'garbage', 'multipart/form-data',
    ), // biome-ignore format: a table of words
    'accept-encoding': fc.constantFrom('gzip', 'identity;q=0', '*'),
    'x-forwarded-for': fc.constantFrom('127.0.0.1', 'garbage', '::1, ::2'),
    'user-agent': fc.constantFrom('', 'x'.repeat(2000), '=cmd'),
    range: fc.constantFrom('bytes=0-1', 'bytes=-', 'x'),
  },
  { requiredKeys: [] },
)

function whole({ minimum = -1000, maximum = 1_000_000 }: Schema): fc.Arbitrary<number> {
  const [min, max] = [Math.ceil(minimum), Math.floor(maximum)]
  return fc.oneof(
    fc.integer({ min, max: Math.min(max, min + 5) }),
    fc.maxSafeInteger().map(n => Math.min(max, Math.max(min, n))),
  )
}

function text(node: Schema): fc.Arbitrary<string> {
  if (node.format === 'date-time') return fc.constantFrom('2026-01-31T12:00:00Z', '1970-01-01T00:00:00.000Z')
  if (node.pattern !== undefined) {
    try {
      return fc.stringMatching(new RegExp(node.pattern, 'u')).map(found => found.slice(0, node.maxLength ?? 200))
    } catch {
      return hostileText
    }
  }
  const maxLength = Math.min(node.maxLength ?? 60, 60)
  return fc.string({ unit: 'binary', minLength: Math.min(node.minLength ?? 0, maxLength), maxLength })
}

function object(node: Schema): fc.Arbitrary<unknown> {
  if (node.properties) {
    const fields = Object.entries(node.properties).map(([name, field]) => [name, fitting(field)] as const)
    return fc.record(Object.fromEntries(fields), { requiredKeys: (node.required ?? []) as never[] })
  }
  const [pattern] = Object.values(node.patternProperties ?? {})
  const value = pattern ?? (typeof node.additionalProperties === 'object' ? node.additionalProperties : {})
  return fc.dictionary(fc.string({ maxLength: 10 }), fitting(value), { maxKeys: 3 })
}
