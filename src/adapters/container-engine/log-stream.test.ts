import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { engineProxy } from '../../testing/engine-proxy.ts'
import { livingBytes } from '../../testing/memory.ts'
import { openEngine } from './engine.ts'
import { followLogs, type LogEntry, readLogs } from './log-stream.ts'
import { type EngineMirror, mirrorEngine } from './mirror.ts'

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

const linesOf = async (tail: number, filter?: string, containers: Parameters<typeof readLogs>[1] = sources) => {
  const batches = await Array.fromAsync(await readLogs(world.engine, containers, { tail, filter }))
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
  const before = livingBytes()
  let lines = 0
  let most = before
  for await (const batch of await readLogs(world.engine, many, { tail: 0 })) {
    if (Math.floor(lines / 50_000) < Math.floor((lines + batch.length) / 50_000)) most = Math.max(most, livingBytes())
    lines += batch.length
  }
  assert.equal(lines, 430_000)
  assert.ok(most - before < 20e6, `${Math.round((most - before) / 1e6)} MB more`)
  for await (const _batch of await readLogs(world.engine, many, { tail: 0 })) break
})

describe('a follow', () => {
  const tell = 'echo up; sleep 0.3; while :; do echo beat; sleep 0.1; done'
  const stopped = new AbortController()
  let mirror: EngineMirror
  before(async () => {
    mirror = mirrorEngine(world.engine)
    await mirror.ready
  })
  after(() => {
    stopped.abort()
    return mirror.close()
  })

  const gather = (batches: AsyncIterable<readonly LogEntry[]>) => {
    const lines: string[] = []
    const ended = (async () => {
      for await (const batch of batches) for (const { service, line } of batch) lines.push(`${service} ${line}`)
    })()
    ended.catch(() => {})
    return { lines, ended }
  }
  const until = async (isSo: () => boolean) => {
    for (let tries = 0; !isSo(); tries++) {
      assert.ok(tries < 500, 'it did not come to be')
      await sleep(20)
    }
  }
  const count = (lines: readonly string[], line: string) => lines.filter(one => one === line).length

  test('goes on with a container that is restarted, and tells each line once', async () => {
    const [one, two] = [await world.run('one', tell), await world.run('two', tell)]
    await mirror.refresh([one, two])
    const name = world.name('one')
    const pick = () => [...mirror.containers.values()].filter(({ id }) => id === one || id === two)
    const { lines, ended } = gather(followLogs(world.engine, mirror, pick, { tail: 0, signal: stopped.signal }))
    await until(() => count(lines, `${name} beat`) > 2)
    await world.engine.containers.restart(one, { seconds: 0 })
    await until(() => count(lines, `${name} up`) === 2)
    const beats = count(lines, `${name} beat`)
    await until(() => count(lines, `${name} beat`) > beats + 2)
    await world.engine.containers.stop(one, { seconds: 0 })
    await world.engine.containers.stop(two, { seconds: 0 })
    await ended
    assert.deepEqual(lines.toSorted(), (await linesOf(0, undefined, pick())).toSorted())
  })

  test('of a container that restarts by itself goes on between two runs', async () => {
    const id = await world.run('loop', 'cat /proc/uptime; exit 1', {
      HostConfig: { RestartPolicy: { Name: 'always' } },
    })
    await mirror.refresh([id])
    const pick = () => [...mirror.containers.values()].filter(one => one.id === id)
    const { lines, ended } = gather(followLogs(world.engine, mirror, pick, { tail: 0, signal: stopped.signal }))
    await until(() => lines.length >= 4)
    await world.engine.containers.stop(id, { seconds: 0 })
    await ended
    assert.deepEqual(lines, await linesOf(0, undefined, pick()))
  })

  test('ends with the reason when the engine goes away, and the mirror comes back', async () => {
    const proxy = await engineProxy(world.address)
    const engine = openEngine(proxy.address)
    const own = mirrorEngine(engine)
    try {
      await own.ready
      const id = await world.run('far', tell)
      await own.refresh([id])
      const pick = () => {
        if (own.state === 'down') throw new Failure('ENGINE_UNAVAILABLE', own.reason ?? '')
        return [...own.containers.values()].filter(one => one.id === id)
      }
      const { lines, ended } = gather(followLogs(engine, own, pick, { tail: 0, signal: stopped.signal }))
      await until(() => lines.length > 2)
      await proxy.stop()
      await assert.rejects(ended, { code: 'ENGINE_UNAVAILABLE' })
      await until(() => own.state === 'down')
      await proxy.start()
      await until(() => own.state === 'up')
    } finally {
      await own.close()
      engine.close()
      await proxy.close()
    }
  })
})
