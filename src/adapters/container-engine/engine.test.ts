import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { Failure } from '../../core/failure.ts'
import { testEngine } from '../../testing/engine.ts'
import { EngineError } from './client.ts'
import type { LogLine } from './frames.ts'
import { splitReference } from './images.ts'

const world = testEngine()
const { engine } = world
after(() => world.cleanup())

const allLines = async (source: AsyncIterable<LogLine[]>): Promise<LogLine[]> => {
  const all: LogLine[] = []
  for await (const batch of source) all.push(...batch)
  return all
}

test('a container is created, started, renamed, paused, stopped, waited for and removed', async () => {
  const { containers } = engine
  const id = await containers.create(world.name('life'), {
    Image: world.image,
    Cmd: ['sh', '-c', 'trap "exit 3" TERM; while :; do sleep 0.05; done'],
    Labels: { 'fairlead.test': world.prefix },
  })
  assert.equal((await containers.inspect(id)).State.Status, 'created')
  await containers.start(id)
  await containers.start(id)
  await containers.rename(id, world.name('renamed'))
  const listed = await containers.list({ label: [`fairlead.test=${world.prefix}`] })
  assert.deepEqual(
    listed.map(({ Names }) => Names),
    [[`/${world.name('renamed')}`]],
  )
  await containers.pause(id)
  await containers.unpause(id)
  await containers.restart(id, { seconds: 5 })
  const waited = containers.wait(id, 'not-running', { deadlineMs: 20_000 })
  await containers.stop(id, { seconds: 5 })
  assert.equal(await waited, 3)
  await containers.start(id)
  await assert.rejects(containers.remove(id), error => error instanceof EngineError && error.engineStatus === 409)
  await containers.kill(id)
  await containers.wait(id, 'not-running', { deadlineMs: 10_000 })
  await containers.remove(id)
  await assert.rejects(containers.inspect(id), error => error instanceof EngineError && error.engineStatus === 404)
})

test('a command in a container gives its code, both streams, its environment and takes input', async () => {
  const id = await world.run('exec', 'sleep 60')
  const run = engine.exec.run(id, {
    command: ['sh', '-c', 'echo "$A"; pwd >&2; exit 7'],
    env: { A: 'x y' },
    folder: '/bin',
  })
  assert.deepEqual(await run, { code: 7, stdout: 'x y\n', stderr: '/bin\n', truncated: false })
  const cat = await engine.exec.run(id, { command: ['cat'] }, { input: 'through and back' })
  assert.equal(cat.stdout, 'through and back')
  const cut = await engine.exec.run(id, { command: ['seq', '1', '10000'] }, { maxOutput: 100 })
  assert.deepEqual([cut.stdout.length, cut.truncated], [100, true])
  const late = engine.exec.run(id, { command: ['sleep', '30'] }, { deadlineMs: 200 })
  await assert.rejects(late, error => error instanceof Failure && error.code === 'TIMEOUT')
  await engine.containers.remove(id, { force: true })
})

test('logs of a container without a terminal keep the streams apart, with tail and since', async () => {
  const id = await world.run('logs', 'echo one; sleep 0.2; echo two >&2; sleep 1.2; echo three')
  await engine.containers.wait(id, 'not-running', { deadlineMs: 20_000 })
  const all = await allLines(engine.containers.logs(id, { tty: false }))
  assert.deepEqual(
    all.map(({ stream, line }) => `${stream}:${line}`),
    ['stdout:one', 'stderr:two', 'stdout:three'],
  )
  assert.ok(all.every(({ time }) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/.test(time)))
  const last = await allLines(engine.containers.logs(id, { tty: false, tail: 1 }))
  assert.deepEqual(last, all.slice(-1))
  const since = new Date(Date.parse(all[2]?.time ?? '') - 500)
  assert.deepEqual(await allLines(engine.containers.logs(id, { tty: false, since })), all.slice(2))
})

test('a line longer than the buffer of the engine comes out whole, and terminals are read raw', async () => {
  const long = await world.run('long', 'head -c 40000 /dev/zero | tr "\\0" x; echo; echo end')
  const tty = await world.run('tty', 'echo one; echo two >&2', { Tty: true })
  await Promise.all([long, tty].map(id => engine.containers.wait(id, 'not-running', { deadlineMs: 20_000 })))
  const lines = await allLines(engine.containers.logs(long, { tty: false }))
  assert.deepEqual(
    lines.map(({ line }) => line.length),
    [40_000, 3],
  )
  const raw = await allLines(engine.containers.logs(tty, { tty: true }))
  assert.deepEqual(
    raw.map(({ stream, line }) => `${stream}:${line}`),
    ['stdout:one', 'stdout:two'],
  )
})

test('following a log goes on until the reader leaves or cancels', async () => {
  const id = await world.run('follow', 'i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done')
  const seen: string[] = []
  for await (const batch of engine.containers.logs(id, { tty: false, follow: true })) {
    seen.push(...batch.map(({ line }) => line))
    if (seen.length > 5) break
  }
  assert.deepEqual(seen.slice(0, 3), ['0', '1', '2'])
  const abort = new AbortController()
  setTimeout(() => abort.abort(new Error('enough')), 100)
  await assert.rejects(
    allLines(engine.containers.logs(id, { tty: false, follow: true, signal: abort.signal })),
    /enough/,
  )
  await engine.containers.remove(id, { force: true })
})

test('a reading of a running container has its processor time, memory and processes', async () => {
  const id = await world.run('stats', 'sleep 60')
  const sample = await engine.containers.stats(id)
  assert.ok(sample.cpuNanoseconds > 0 && sample.memoryLimit > 0 && sample.pids >= 1 && sample.cpus >= 1)
  await engine.containers.remove(id, { force: true })
})

test('images are listed, tagged, inspected and untagged', async () => {
  const tag = `${world.prefix}/copy:2`
  await engine.images.tag(world.image, tag)
  const original = await engine.images.inspect(world.image)
  assert.equal((await engine.images.inspect(tag)).Id, original.Id)
  assert.ok((await engine.images.list()).some(image => image.RepoTags?.includes(tag)))
  assert.deepEqual(await engine.images.remove(tag), [{ Untagged: tag }])
})

test('a pull from a registry that refuses fails with its words, and one that hangs is given up or cancelled', async () => {
  await assert.rejects(engine.images.pull(`127.0.0.1:1/${world.prefix}/none:1`), error => {
    assert.ok(error instanceof EngineError)
    assert.match(error.said, /refused/)
    return true
  })
  const held = new Set<Socket>()
  const silent = createServer(socket => void held.add(socket))
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  after(() => {
    silent.close()
    for (const socket of held) socket.destroy()
  })
  const address = silent.address()
  const reference = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}/x/y:1`
  const stalled = engine.images.pull(reference, { stallMs: 300 })
  await assert.rejects(
    stalled,
    error => error instanceof Failure && error.code === 'TIMEOUT' && /sent nothing/.test(error.message),
  )
  const abort = new AbortController()
  setTimeout(() => abort.abort(new Error('not any more')), 100)
  await assert.rejects(engine.images.pull(reference, { signal: abort.signal }), /not any more/)
})

test('a reference without a tag means latest, and a port is no tag', () => {
  assert.deepEqual(splitReference('redis'), { repository: 'redis', tag: 'latest' })
  assert.deepEqual(splitReference('host:5000/a/b'), { repository: 'host:5000/a/b', tag: 'latest' })
  assert.deepEqual(splitReference('host:5000/a/b:c'), { repository: 'host:5000/a/b', tag: 'c' })
  assert.deepEqual(splitReference('a/b:c@sha256:00'), { repository: 'a/b', tag: 'sha256:00' })
})

test('volumes and networks are created, inspected, connected and removed', async () => {
  const volume = world.name('volume')
  await engine.volumes.create({ name: volume, labels: { a: 'b' } })
  assert.deepEqual((await engine.volumes.inspect(volume)).Labels, { a: 'b' })
  assert.ok((await engine.volumes.list()).some(({ Name }) => Name === volume))
  await engine.volumes.remove(volume)

  const name = world.name('network')
  const network = await engine.networks.create({ name, internal: true, subnet: '10.213.7.0/24', gateway: '10.213.7.1' })
  const container = await world.run('connected', 'sleep 60')
  await engine.networks.connect(network, container, ['friend'])
  const inspect = await engine.networks.inspect(name)
  assert.equal(inspect.IPAM?.Config?.[0]?.Subnet, '10.213.7.0/24')
  assert.deepEqual(Object.keys(inspect.Containers ?? {}), [container])
  await engine.networks.disconnect(network, container)
  await engine.networks.remove(network)
  await engine.containers.remove(container, { force: true })
})

test('an event arrives after it was asked for', async () => {
  const abort = new AbortController()
  const events = await engine.events({ filters: { type: ['volume'], event: ['create'] }, signal: abort.signal })
  const name = world.name('event')
  await engine.volumes.create({ name })
  for await (const event of events) if (event.Actor.ID === name) break
  abort.abort()
  await engine.volumes.remove(name)
})
