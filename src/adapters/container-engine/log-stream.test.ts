import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { readLogs } from './log-stream.ts'

let world: TestEngine
const sources: { id: string; tty: boolean; name: string; compose: null }[] = []
before(async () => {
  world = testEngine()
  for (const name of ['a', 'b']) {
    const id = await world.run(name, `i=0; while [ $i -lt 300 ]; do seq $((i*50)) $((i*50+49)); i=$((i+1)); done`)
    await world.engine.containers.wait(id, 'not-running', {})
    sources.push({ id, tty: false, name, compose: null })
  }
})
after(() => world.cleanup())

const linesOf = async (tail: number, filter?: string) => {
  const batches = await Array.fromAsync(await readLogs(world.engine, sources, { tail, filter }))
  return batches.flat().map(({ service, line }) => `${service} ${line}`)
}

test('a long tail, a short one and all of it agree', async () => {
  const all = await linesOf(0)
  assert.equal(all.length, 30_000)
  assert.deepEqual(await linesOf(20_000), all.slice(-20_000))
  assert.deepEqual(await linesOf(100), all.slice(-100))
  assert.deepEqual(await linesOf(1_000_000), all)
  const sevens = all.filter(line => line.includes('7'))
  assert.deepEqual(await linesOf(6000, '7'), sevens.slice(-6000))
  assert.deepEqual(await linesOf(6, '7'), sevens.slice(-6))
})

test('memory stays flat over many lines, and a reader that stops stops the source', async () => {
  const id = await world.run('many', 'seq 1 400000')
  await world.engine.containers.wait(id, 'not-running', {})
  const many = [{ id, tty: false, name: 'many', compose: null }, ...sources]
  const before = process.memoryUsage().rss
  let lines = 0
  for await (const batch of await readLogs(world.engine, many, { tail: 0 })) lines += batch.length
  assert.equal(lines, 430_000)
  const grown = process.memoryUsage().rss - before
  assert.ok(grown < 100e6, `${Math.round(grown / 1e6)} MB more`)
  for await (const _batch of await readLogs(world.engine, many, { tail: 0 })) break
})
