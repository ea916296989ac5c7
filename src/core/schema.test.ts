// The one validator and the one redactor: what is unknown is refused, and what is marked as secret is never shown.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromText, keepRedacted, Nullable, redact, Secret, Type, validate, Words } from './schema.ts'

const Login = Type.Object({
  name: Type.String({ minLength: 1 }),
  password: Secret(Type.String()),
  level: Type.Optional(Words(['low', 'high'])),
  size: Type.Integer({ default: 10 }),
  inner: Type.Optional(Type.Object({ deep: Type.Boolean() })),
})

function faultsOf(value: unknown): { path: string; message: string }[] {
  try {
    validate(Login, value)
    return []
  } catch (failure) {
    return (failure as { details: { path: string; message: string }[] }).details
  }
}

test('defaults are filled in, and every fault is named by its path', () => {
  assert.deepEqual(validate(Login, { name: 'a', password: 'b' }), { name: 'a', password: 'b', size: 10 })
  const paths = (value: object) =>
    faultsOf(value)
      .map(({ path }) => path)
      .sort()
  assert.deepEqual(paths({ name: '', level: 'middle', size: 1.5, wrong: 1 }), [
    'level',
    'name',
    'password',
    'size',
    'wrong',
  ])
  const inner = { deep: 'yes', also: 1 }
  assert.deepEqual(paths({ name: 'a', password: 'b', inner }), ['inner.also', 'inner.deep'])
  assert.match(faultsOf({ name: 'a', password: 'b', level: 'x' })[0]?.message ?? '', /one of low, high/)
})

test('a fault never repeats the value it is about', () => {
  for (const value of [
    { name: 'a', password: 7_777_777 },
    { name: 'a', password: { canary: 'canary' } },
  ]) {
    try {
      validate(Login, value)
      assert.fail('it is not valid')
    } catch (failure) {
      const { message, details } = failure as { message: string; details: object }
      assert.doesNotMatch(message + JSON.stringify(details), /canary|7777777/)
    }
  }
})

test('a secret is redacted wherever it stands', () => {
  const One = Type.Object({ key: Secret(Type.String()), open: Type.String() })
  const All = Type.Object({
    plain: One,
    list: Type.Array(One),
    words: Type.Array(Secret(Type.String())),
    map: Type.Record(Type.String(), Secret(Type.String())),
    maybe: Nullable(Secret(Type.String())),
    either: Type.Union([Type.Object({ other: Type.Integer() }), One]),
    some: Nullable(Type.Array(One)),
    whole: Secret(Type.Object({ any: Type.String() })),
    none: Type.Optional(Secret(Type.String())),
  })
  const one = { key: 'canary', open: 'seen' }
  const shown = redact(All, {
    plain: one,
    list: [one, one],
    words: ['canary'],
    map: { a: 'canary' },
    maybe: 'canary',
    either: one,
    some: [one],
    whole: { any: 'canary' },
  })
  const hidden = { key: '[redacted]', open: 'seen' }
  assert.deepEqual(shown, {
    plain: hidden,
    list: [hidden, hidden],
    words: ['[redacted]'],
    map: { a: '[redacted]' },
    maybe: '[redacted]',
    either: hidden,
    some: [hidden],
    whole: '[redacted]',
  })
  assert.deepEqual(redact(All, { maybe: null, plain: { key: '', open: '' } }), {
    maybe: null,
    plain: { key: '', open: '' },
  })
})

test('what was redacted and is sent back keeps what is stored', () => {
  const stored = { key: 'kept', inner: { token: 'also' } }
  assert.deepEqual(keepRedacted({ key: '[redacted]', inner: { token: '[redacted]', more: 1 } }, stored), {
    key: 'kept',
    inner: { token: 'also', more: 1 },
  })
  assert.deepEqual(keepRedacted({ key: 'new' }, stored), { key: 'new' })
})

test('the text of a query becomes what its schema asks for, or stays as it is', () => {
  const cases: [object, unknown, unknown][] = [
    [Type.Integer(), '12', 12],
    [Type.Integer(), '-1', -1],
    [Type.Integer(), '1e3', '1e3'],
    [Type.Integer(), '', ''],
    [Type.Boolean(), 'true', true],
    [Type.Boolean(), 'TRUE', 'TRUE'],
    [Type.Array(Type.Integer()), '1,2', [1, 2]],
    [Type.Array(Type.String()), ['a', 'b,c'], ['a', 'b,c']],
    [Nullable(Type.Integer()), '3', 3],
    [Type.String(), '12', '12'],
  ]
  for (const [schema, text, value] of cases) assert.deepEqual(fromText(schema, text), value)
})
