import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Funnel, lastOf, mergeInOrder } from './merge.ts'

interface Source<T> extends AsyncIterable<readonly T[]> {
  /** Batches that were asked for. */
  taken: number
  closed: boolean
}

function sourceOf<T>(batches: readonly (readonly T[] | Error)[]): Source<T> {
  const source: Source<T> = {
    taken: 0,
    closed: false,
    async *[Symbol.asyncIterator]() {
      try {
        for (const batch of batches) {
          source.taken++
          if (batch instanceof Error) throw batch
          yield batch
        }
      } finally {
        source.closed = true
      }
    },
  }
  return source
}

const before = (a: number, b: number) => a < b
const inOrder = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b)
const cut = (items: readonly number[], sizes: readonly number[]) => {
  const batches: number[][] = []
  for (let from = 0, n = 0; from < items.length; n++) {
    const size = sizes[n % sizes.length] as number
    batches.push(items.slice(from, from + size))
    from += size
  }
  return batches
}

test('sources in order become one in order, whatever their batches', async () => {
  const sources = fc.array(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 30 }).map(inOrder), { maxLength: 4 })
  const sizes = fc
    .array(fc.integer({ min: 0, max: 7 }), { minLength: 1, maxLength: 4 })
    .filter(all => all.some(Boolean))
  const property = fc.asyncProperty(sources, sizes, async (wanted, cuts) => {
    const merged = mergeInOrder(
      wanted.map(items => sourceOf(cut(items, cuts))),
      before,
    )
    assert.deepEqual((await Array.fromAsync(merged)).flat(), inOrder(wanted.flat()))
  })
  await fc.assert(property, { numRuns: 100 })
})

test('equal items come in the order of their sources', async () => {
  const named = (name: string) => sourceOf([[{ at: 1, name }], [{ at: 2, name }]])
  const merged = mergeInOrder([named('a'), named('b')], (one, other) => one.at < other.at)
  const names = (await Array.fromAsync(merged)).flat().map(({ at, name }) => `${name}${at}`)
  assert.deepEqual(names, ['a1', 'b1', 'a2', 'b2'])
})

test('nothing is read ahead of the reader, and one that stops reading ends the sources', async () => {
  const [odd, even] = [sourceOf([[1, 3], [5], [7]]), sourceOf([[2, 4, 6], [8]])]
  for await (const batch of mergeInOrder([odd, even], before)) {
    assert.deepEqual(batch, [1, 2, 3])
    assert.deepEqual([odd.taken, even.taken], [1, 1])
    break
  }
  assert.deepEqual([odd.closed, even.closed], [true, true])
})

test('a source that fails, at first or later, ends the others', async () => {
  for (const failing of [[new Error('gone')], [[1], new Error('gone')]]) {
    const other = sourceOf([[2], [3]])
    await assert.rejects(Array.fromAsync(mergeInOrder([sourceOf(failing), other], before)), /gone/)
    assert.equal(other.closed, true)
  }
})

test('the last items are the last, whatever their batches', async () => {
  const items = Array.from({ length: 100 }, (_, n) => n)
  for (const count of [1, 7, 99, 100, 1000]) {
    const last = await lastOf(sourceOf(cut(items, [1, 9, 30])), count)
    assert.deepEqual(last.flat(), items.slice(-count))
  }
  assert.deepEqual((await lastOf(sourceOf<number>([]), 3)).flat(), [])
})

test('a funnel gives what comes as it comes, takes sources that join later, and ends with the last', async () => {
  const funnel = new Funnel<readonly string[]>()
  funnel.add(sourceOf([['a']]))
  const found: string[] = []
  for await (const batch of funnel) {
    if (found.length === 0) funnel.add(sourceOf([['b', 'c']]))
    found.push(...batch)
  }
  assert.deepEqual(found, ['a', 'b', 'c'])
})
