import assert from 'node:assert/strict'
import { test } from 'node:test'
import TypeBox from 'typebox'
import { compile, Type } from './type.ts'

/** The same schema by either builder. */
const schemas = (by: typeof Type) => [
  by.Object({}),
  by.Object({ a: by.String(), b: by.Optional(by.Integer({ minimum: 1 })) }, { description: 'with options' }),
  by.Object({ only: by.Optional(by.Object({ inner: by.Null() })) }),
  by.Object({ copied: { ...by.Optional(by.String({ maxLength: 3 })) } }),
  by.Array(by.Number({ maximum: 9 }), { maxItems: 2 }),
  by.Union([by.String(), by.Boolean(), by.Null()], { description: 'one of them' }),
  by.Record(by.String(), by.Unknown()),
  by.Record(by.String({ pattern: '^[a-z]+$' }), by.Integer(), { maxProperties: 5 }),
  by.Unsafe<'a' | 'b'>({ type: 'string', enum: ['a', 'b'] }),
  by.Unknown({ description: 'anything' }),
]

test('the builder makes what the builder of TypeBox makes, key by key', () => {
  assert.deepEqual(
    schemas(Type).map(one => JSON.stringify(one)),
    schemas(TypeBox as unknown as typeof Type).map(one => JSON.stringify(one)),
  )
})

test('a compiled schema tells what fits, and what is wrong where', () => {
  const validator = compile(
    Type.Object({ n: Type.Integer({ minimum: 1 }), words: Type.Optional(Type.Array(Type.String())) }),
  )
  assert.equal(validator.Check({ n: 1 }), true)
  assert.equal(validator.Check({ n: 1, words: ['a'] }), true)
  assert.deepEqual(validator.Errors({ n: 1 }), [])
  assert.equal(validator.Check({ n: 0 }), false)
  assert.deepEqual(
    validator.Errors({ n: 0, words: [1] }).map(({ keyword, instancePath }) => `${instancePath} ${keyword}`),
    ['/n minimum', '/words/0 type'],
  )
})
