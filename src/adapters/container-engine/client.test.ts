import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Failure } from '../../core/failure.ts'
import { testEngine } from '../../testing/engine.ts'
import { engineProxy } from '../../testing/engine-proxy.ts'
import { engineAddress, parseAddress } from './address.ts'
import { EngineError } from './client.ts'
import { openEngine } from './engine.ts'
import { chooseVersion } from './version.ts'

const world = testEngine()
after(() => world.cleanup())

const failsWith = (code: string, words: RegExp) => (error: unknown) =>
  error instanceof Failure && error.code === code && words.test(error.message)

test('an address is a path, a unix or a tcp address, and nothing else', () => {
  assert.deepEqual(parseAddress('/run/x.sock'), { kind: 'unix', path: '/run/x.sock' })
  assert.deepEqual(parseAddress('unix:///run/x.sock'), { kind: 'unix', path: '/run/x.sock' })
  assert.deepEqual(parseAddress('tcp://host:2376'), { kind: 'tcp', host: 'host', port: 2376 })
  assert.deepEqual(parseAddress('tcp://[::1]:99'), { kind: 'tcp', host: '::1', port: 99 })
  assert.deepEqual(parseAddress('tcp://host'), { kind: 'tcp', host: 'host', port: 2375 })
  for (const bad of ['', 'unix://relative', 'tcp://', 'tcp://h:0', 'tcp://h:70000', 'ftp://h', 'tcp://a/b']) {
    assert.throws(() => parseAddress(bad), failsWith('ENGINE_UNAVAILABLE', /not an engine address/))
  }
})

test('the configured address comes before DOCKER_HOST, and that before the sockets of the machine', () => {
  assert.equal(engineAddress('/a', { DOCKER_HOST: 'unix:///b' }), '/a')
  assert.equal(engineAddress(undefined, { DOCKER_HOST: 'unix:///b' }), 'unix:///b')
  assert.match(engineAddress(undefined, {}), /^unix:\/\/\/.*\.sock$/)
})

test('a version is chosen that both sides know', () => {
  const choose = (ApiVersion: string, MinAPIVersion?: string) => chooseVersion({ ApiVersion, MinAPIVersion }, 'x').api
  assert.equal(choose('1.41', '1.12'), '1.41')
  assert.equal(choose('1.49', '1.24'), '1.49')
  assert.equal(choose('1.52', '1.44'), '1.51')
  assert.equal(choose('1.70', '1.60'), '1.60')
  assert.equal(choose('1.41'), '1.41')
  assert.throws(() => choose('1.40', '1.12'), failsWith('ENGINE_UNAVAILABLE', /1\.41 \(Docker 20\.10\) or newer/))
  assert.throws(() => chooseVersion('hello', 'x'), failsWith('UPSTREAM_FAILED', /not a container engine/))
})

test('the engine answers version, ping and info', async () => {
  const version = await world.engine.version()
  assert.match(version.prefix, /^\/v1\.\d+$/)
  assert.ok(Math.abs((await world.engine.ping()).getTime() - Date.now()) < 5000)
  assert.ok((await world.engine.info()).ServerVersion)
})

test('an engine that refuses everything under 1.44 works, also when it took the place of an older one', async () => {
  const proxy = await engineProxy(world.address)
  const engine = openEngine(proxy.address)
  after(async () => {
    engine.close()
    await proxy.close()
  })
  await engine.containers.list()
  const first = (await engine.version()).api
  proxy.claim('1.47', '1.44')
  await engine.containers.list()
  assert.equal((await engine.version()).api, '1.47')
  assert.ok(proxy.requests.some(line => line.startsWith('GET /v1.47/containers/json')))
  if (first !== '1.47') assert.equal(proxy.requests.filter(line => line === 'GET /version').length, 2)

  const id = await world.run('newer', 'echo hello; sleep 60')
  const output = await engine.exec.run(id, { command: ['echo', 'through 1.47'] })
  assert.equal(output.stdout, 'through 1.47\n')
  await engine.containers.remove(id, { force: true })
})

test('a socket that is not there, and one where nobody listens, say so and what to do', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fl-none-'))
  after(() => rm(folder, { recursive: true, force: true }))
  const none = openEngine(join(folder, 'none.sock'))
  await assert.rejects(none.containers.list(), failsWith('ENGINE_UNAVAILABLE', /none\.sock: start Docker or Podman/))
  const refused = openEngine('tcp://127.0.0.1:1')
  await assert.rejects(
    refused.containers.list(),
    failsWith('ENGINE_UNAVAILABLE', /tcp:\/\/127\.0\.0\.1:1 does not answer/),
  )
})

test('what answers but is no engine is told apart', async () => {
  const server = createServer(socket => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  after(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  await assert.rejects(
    openEngine(`tcp://127.0.0.1:${port}`).info(),
    failsWith('UPSTREAM_FAILED', /not a container engine/),
  )
})

test('every call is bounded in time and can be cancelled', async () => {
  const proxy = await engineProxy(world.address)
  const engine = openEngine(proxy.address)
  after(() => proxy.close())
  await engine.version()
  proxy.hang(true)
  await assert.rejects(
    engine.containers.list({}, { deadlineMs: 100 }),
    failsWith('TIMEOUT', /did not answer within 1 s/),
  )
  const abort = new AbortController()
  const call = engine.containers.list({}, { signal: abort.signal })
  setTimeout(() => abort.abort(new Error('cancelled here')), 50)
  await assert.rejects(call, /cancelled here/)
  const last = engine.containers.list()
  setTimeout(() => engine.close(), 50)
  await assert.rejects(last, failsWith('ENGINE_UNAVAILABLE', /stopping/))
})

test('calls go on after the engine went away and came back', async () => {
  const proxy = await engineProxy(world.address)
  const engine = openEngine(proxy.address)
  after(async () => {
    engine.close()
    await proxy.close()
  })
  await engine.containers.list()
  await proxy.stop()
  await assert.rejects(engine.containers.list(), failsWith('ENGINE_UNAVAILABLE', /engine\.sock/))
  await proxy.start()
  await engine.containers.list()
})

test('what the engine refuses is an EngineError with its status and words', async () => {
  const missing = world.engine.containers.inspect(world.name('missing'))
  await assert.rejects(missing, error => {
    assert.ok(error instanceof EngineError)
    assert.equal(error.engineStatus, 404)
    assert.equal(error.code, 'NOT_FOUND')
    assert.match(error.said, /no such container/i)
    return true
  })
})
