// Ids and secrets from a seed: the same for the same seed and name, and as good as random.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { freshFrom } from './fresh.ts'

test('the same seed and name give the same value, another seed or name another', () => {
  const seed = randomBytes(32)
  const [one, again, other] = [freshFrom(seed), freshFrom(seed), freshFrom(randomBytes(32))]
  for (const make of [
    (f: typeof one) => f.text('a', 40),
    (f: typeof one) => f.id('a'),
    (f: typeof one) => f.bytes('a', 16).toString('hex'),
  ]) {
    assert.equal(make(one), make(again))
    assert.notEqual(make(one), make(other))
  }
  assert.notEqual(one.text('a', 40), one.text('b', 40))
  assert.notEqual(one.id('a'), one.text('a', 20))
})

test('a longer text begins with the shorter one, and every letter is as likely as another', () => {
  const fresh = freshFrom(Buffer.alloc(32, 1))
  assert.ok(fresh.text('a', 100).startsWith(fresh.text('a', 10)))
  const counts = new Map<string, number>()
  for (const letter of fresh.text('many', 62_000)) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  assert.equal(counts.size, 62)
  for (const [letter, count] of counts) assert.ok(count > 850 && count < 1150, `${letter}: ${count}`)
})
