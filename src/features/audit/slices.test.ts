import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inSlices } from './slices.ts'

const wait = (ms: number) => {
  const until = performance.now() + ms
  while (performance.now() < until);
}

async function walk(ids: { first: number; last: number }, momentMs: number, cost: (count: number) => number) {
  const slices: [low: number, high: number][] = []
  const read = (low: number, high: number) => {
    wait(cost(high - low + 1))
    return [low, high] as [number, number]
  }
  for await (const slice of inSlices(ids, { size: 100, momentMs }, read)) slices.push(slice)
  return slices
}

test('every id is in exactly one slice, newest first, and none where there are none', async () => {
  const slices = await walk({ first: 7, last: 10_000 }, 5, () => 0)
  let next = 10_000
  for (const [low, high] of slices) {
    assert.equal(high, next)
    assert.ok(low <= high)
    next = low - 1
  }
  assert.equal(next, 6)
  assert.deepEqual(await walk({ first: 1, last: 0 }, 5, () => 0), [])
})

test('slices grow while they cost nothing and shrink when they take too long', async () => {
  const sizes = (slices: [number, number][]) => slices.map(([low, high]) => high - low + 1)
  assert.ok(sizes(await walk({ first: 1, last: 1_000_000 }, 5, () => 0)).length < 20)
  // A hundred ids take ten of the two milliseconds they may take.
  const dear = sizes(await walk({ first: 1, last: 300 }, 2, count => count / 10))
  assert.equal(dear[0], 100)
  assert.ok((dear[3] as number) < 30, dear.join(' '))
})

test('other work is let in between two slices', async () => {
  let others = 0
  const timer = setInterval(() => others++, 0)
  await walk({ first: 1, last: 1000 }, 1, () => 2)
  clearInterval(timer)
  assert.ok(others > 5, `${others}`)
})
