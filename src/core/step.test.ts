// Steps as plain data: placeholders, how they are kept, and the lists of steps that are refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonical } from './canonical.ts'
import { each, fromStored, Kinds, momentOf, plain, resolve, resultOf, stepKind, toStored } from './step.ts'

const describe = ({ file }: { file: string }) => ({ type: 'file', id: file, action: 'create' }) as const
const perform = () => ({ path: '', size: 0 })
type Made = { path: string; size: number }
const undoable = stepKind<{ file: string }, undefined, Made>('t.undoable', {
  describe,
  perform,
  end: { undo: () => {} },
})
const harmless = stepKind<{ file: string }, undefined, Made>('t.harmless', { describe, perform, end: 'harmless' })
const final = stepKind<{ file: string }, undefined, Made>('t.final', { describe, perform, end: 'final' })
const repeatable = stepKind<{ file: string }, undefined, Made>('t.repeatable', { describe, perform, end: 'repeatable' })
const kinds = new Kinds([undoable, harmless, final, repeatable])
const x = { file: 'x' }
const NOW = new Date('2026-01-02T03:04:05Z')

test('a placeholder becomes the result, the moment, or the words a plan shows', () => {
  const step = undoable(x, { as: 'made' })
  const data = { deep: [{ path: resultOf(step, 'path') }], later: momentOf(60), earlier: momentOf(-5), now: momentOf() }
  assert.deepEqual(resolve(data, { made: { path: '/a' } }, NOW), {
    deep: [{ path: '/a' }],
    later: '2026-01-02T03:05:05.000Z',
    earlier: '2026-01-02T03:04:00.000Z',
    now: '2026-01-02T03:04:05.000Z',
  })
  const known = '(known after apply)'
  assert.deepEqual(resolve(data, 'shown', NOW), { deep: [{ path: known }], later: known, earlier: known, now: known })
})

test('the result of a step without a name cannot be used', () => {
  assert.throws(() => resultOf(undoable(x), 'path'), /needs a name: t\.undoable/)
})

test('steps come back from the store as they were, whatever their data looks like', () => {
  const keys = fc.oneof(fc.string(), fc.constantFrom('$now', '$result', '$$now', '$', '$$', 'kind', 'data'))
  const data = fc.letrec(tie => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.string(),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('value'), { maxLength: 3 }),
    object: fc.dictionary(keys, tie('value'), { maxKeys: 4 }),
  }))
  fc.assert(
    fc.property(data.object, value => {
      const own = { ...value, made: resultOf(undoable(x, { as: 'made' }), 'path') }
      const back = fromStored(JSON.parse(JSON.stringify(toStored(own))))
      const results = { made: { path: '/a' } }
      assert.equal(canonical(resolve(back, results, NOW)), canonical(resolve(own, results, NOW)))
      assert.equal(canonical(resolve(back, results, NOW)), canonical({ ...value, made: '/a' }))
      assert.equal(canonical(toStored(back)), canonical(toStored(own)))
    }),
    { numRuns: 300 },
  )
})

test('data that text cannot keep is refused: it would be something else after a crash', () => {
  for (const value of [new Date(), new Map(), Buffer.from('x'), new (class Own {})()]) {
    assert.throws(() => plain({ deep: [value] }), /must be plain, but holds a (Date|Map|Buffer|Own)/)
    assert.throws(() => kinds.check([undoable({ file: value as never })]), /must be plain/)
  }
  assert.deepEqual(plain({ a: undefined, b: [1, null, 'x', { c: true }] }), { b: [1, null, 'x', { c: true }] })
})

test('no step that can be undone follows one that cannot', () => {
  for (const end of [final, repeatable]) {
    kinds.check([undoable(x), harmless(x), end(x), harmless(x), end(x)])
    assert.throws(
      () => kinds.check([end(x), undoable(x)]),
      /t\.undoable can be undone but follows t\.(final|repeatable)/,
    )
    assert.throws(() => kinds.check([each([end(x)]), harmless(x), undoable(x)]), /follows/)
    assert.throws(() => kinds.check([each([end(x), undoable(x)])]), /follows/)
  }
})

test('a result is used only after the step that gives it, under a name of its own', () => {
  const made = undoable(x, { as: 'made' })
  const user = harmless({ file: resultOf(made, 'path') })
  kinds.check([made, user, each([user])])
  assert.throws(() => kinds.check([user, made]), /uses the result of made, which does not come before it/)
  assert.throws(() => kinds.check([user]), /which does not come before it/)
  assert.throws(() => kinds.check([made, made]), /Two steps are called made/)
  assert.throws(() => kinds.check([each([made])]), /stands in an each/)
})

test('an unknown kind, and two of one name, are refused', () => {
  assert.throws(() => kinds.check([{ kind: 't.unknown', data: {} }]), /No step kind is called t\.unknown/)
  assert.throws(() => new Kinds([final, final]), /Two step kinds are called t\.final/)
})

test('the change of a step carries its cause, and an each shows its steps', () => {
  assert.deepEqual(kinds.describe([undoable(x, { cause: 'web is exited' }), each([final({ file: 'y' })])]), [
    { type: 'file', id: 'x', action: 'create', reason: 'web is exited' },
    { type: 'file', id: 'y', action: 'create' },
  ])
})
