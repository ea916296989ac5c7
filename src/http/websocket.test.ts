import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { type ProbeAgent, probeAgent } from '../testing/probe.ts'

let agent: ProbeAgent
let port: number
before(async () => {
  agent = await probeAgent()
  await agent.app.listen({ host: '127.0.0.1', port: 0 })
  port = (agent.app.server.address() as { port: number }).port
})
after(() => agent.stop())
beforeEach(() => {
  agent.probe.frames = async function* () {
    yield { type: 'log', line: 'one' }
    yield { type: 'log', line: 'two' }
  }
})

interface Followed {
  socket: WebSocket
  frames: { type: string; line?: string; error?: string; count?: number }[]
  closed: Promise<{ code: number; reason: string }>
}

function follow(path: string, options: { first?: string; token?: string } = {}): Followed {
  const headers = options.token ? { authorization: `Bearer ${options.token}` } : {}
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers })
  const frames: Followed['frames'] = []
  socket.on('message', data => frames.push(JSON.parse(String(data))))
  socket.on('error', () => {})
  if (options.first !== undefined) socket.on('open', () => socket.send(options.first as string))
  const closed = once(socket, 'close').then(([code, reason]) => ({ code: code as number, reason: String(reason) }))
  return { socket, frames, closed }
}

const SHOP = '/api/probe/shop/follow'

test('the first message is the token, bare or in an object; a header will do too', async () => {
  const token = await agent.tokenOf('bob')
  for (const options of [{ first: token }, { first: JSON.stringify({ type: 'auth', token }) }, { token }]) {
    const { frames, closed } = follow(SHOP, options)
    assert.equal((await closed).code, 1000)
    assert.deepEqual(frames, [{ type: 'log', line: 'one' }, { type: 'log', line: 'two' }, { type: 'end' }])
  }
})

test('a bad token closes with 4401, whatever its form', async () => {
  for (const first of [
    'nonsense',
    '',
    '{}',
    '{"token":1}',
    '{broken',
    JSON.stringify({ type: 'auth', token: 'x.y.z' }),
  ]) {
    const { frames, closed } = follow(SHOP, { first })
    assert.equal((await closed).code, 4401, first)
    assert.equal(frames[0]?.type, 'error', first)
  }
})

test('a bad query closes with 4400, a foreign deployment with 4404, a missing right with 4403', async () => {
  const bob = await agent.tokenOf('bob')
  assert.equal((await follow(`${SHOP}?tail=x`, { token: bob }).closed).code, 4400)
  assert.equal((await follow(`${SHOP}?nothing=1`, { token: bob }).closed).code, 4400)
  assert.equal((await follow('/api/probe/blog/follow', { token: bob }).closed).code, 4404)
  const made = await agent.request('POST /api/users', {
    body: { username: 'auditor', password: 'long enough to pass', role: 'viewer', permissions: ['audit:read'] },
  })
  assert.equal(made.statusCode, 201)
  const login = { username: 'auditor', password: 'long enough to pass' }
  const { token } = (await agent.request('POST /api/auth/login', { as: 'nobody', body: login })).json()
  assert.equal((await follow(SHOP, { token }).closed).code, 4403)
})

test('a long reason in another script does not break the agent', async () => {
  const { closed } = follow(`${SHOP}?${encodeURIComponent('ю'.repeat(300))}=1`, { token: await agent.tokenOf('bob') })
  assert.equal((await closed).code, 4400)
  assert.equal((await agent.request('GET /api/health')).statusCode, 200)
})

test('an open follow is closed with 4401 within two seconds after its key is revoked', async () => {
  agent.probe.frames = async function* (signal) {
    yield { type: 'log', line: 'first' }
    await once(signal, 'abort')
  }
  const { id, key } = (await agent.request('POST /api/apikeys', { body: { name: 'follower', role: 'admin' } })).json()
  const { token } = (await agent.request('POST /api/auth/login', { as: 'nobody', body: { api_key: key } })).json()
  const { socket, closed } = follow(SHOP, { token })
  await once(socket, 'message')
  await agent.request(`POST /api/apikeys/${id}/revoke`)
  const began = performance.now()
  assert.equal((await closed).code, 4401)
  assert.ok(performance.now() - began < 2000)
})

test('an open follow is closed with 4403 when the right is taken away', async () => {
  agent.probe.frames = async function* (signal) {
    yield { type: 'log', line: 'first' }
    await once(signal, 'abort')
  }
  const { socket, closed } = follow(SHOP, { token: await agent.tokenOf('vera') })
  await once(socket, 'message')
  await agent.request('DELETE /api/users/3/deployments/shop')
  assert.ok([4403, 4404].includes((await closed).code))
  await agent.request('POST /api/users/3/deployments', { body: { deployment_name: 'shop', access_level: 'read' } })
})

test('a reader that goes away stops the source', async () => {
  const stopped = Promise.withResolvers<void>()
  agent.probe.frames = async function* (signal) {
    yield { type: 'log', line: 'first' }
    await once(signal, 'abort')
    stopped.resolve()
  }
  const { socket } = follow(SHOP, { token: await agent.tokenOf('bob') })
  await once(socket, 'message')
  socket.terminate()
  await stopped.promise
})

test('a reader that is too slow is told how many lines it lost, and memory stays flat', async () => {
  const line = 'x'.repeat(64 * 1024)
  let reads = false
  agent.probe.frames = async function* () {
    for (let count = 0; count < 400 && !reads; count++) {
      yield { type: 'log', line }
      await new Promise(setImmediate)
    }
    await wait(300)
    yield { type: 'log', line: 'last' }
  }
  const { socket, frames, closed } = follow(SHOP, { token: await agent.tokenOf('bob') })
  await once(socket, 'message')
  socket.pause()
  await wait(300)
  reads = true
  socket.resume()
  await closed
  const dropped = frames.filter(frame => frame.type === 'dropped').reduce((sum, frame) => sum + (frame.count ?? 0), 0)
  assert.ok(dropped > 0, 'some lines were dropped')
  assert.equal(frames.at(-1)?.type, 'end')
})

test('a source that fails says so before it closes', async () => {
  agent.probe.frames = async function* () {
    yield { type: 'log', line: 'one' }
    throw new Error('a defect with /a/path in it')
  }
  const { frames, closed } = follow(SHOP, { token: await agent.tokenOf('bob') })
  assert.equal((await closed).code, 1011)
  assert.equal(frames.at(-1)?.type, 'error')
  assert.doesNotMatch(JSON.stringify(frames), /a\/path/)
})

test('a token that does not come in time closes with 4401', async t => {
  // A timer that another connection still has running could not be cleared under the mocked clock.
  await wait(100)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { socket, closed } = follow(SHOP)
  await once(socket, 'open')
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  t.mock.timers.tick(10_001)
  const { code, reason } = await closed
  assert.deepEqual([code, reason], [4401, 'the token came too late'])
})

async function raw(text: string): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', chunk => chunks.push(chunk)).on('error', () => {})
  socket.write(text)
  const enough = wait(1500, undefined, { ref: false })
  await Promise.race([once(socket, 'close'), enough, once(socket, 'data').then(() => wait(50))])
  socket.destroy()
  return Buffer.concat(chunks).toString()
}

const upgrade = (path: string, kind = 'websocket') =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${kind}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`

test('a request to upgrade what is no websocket is answered as the plain request it is', async () => {
  assert.match(await raw(upgrade('/api/health')), /^HTTP\/1\.1 200 /)
  assert.match(await raw(upgrade('/api/health', 'h2c')), /^HTTP\/1\.1 200 /)
  assert.match(await raw(upgrade('/api/users')), /^HTTP\/1\.1 401 /)
  assert.match(await raw(upgrade('/api/none')), /^HTTP\/1\.1 404 /)
  assert.match(await raw(upgrade(SHOP, 'h2c')), /^HTTP\/1\.1 426 /)
  assert.match(await raw(upgrade(SHOP)), /^HTTP\/1\.1 101 /)
})

test('no path of an upgrade breaks the agent', async () => {
  for (const path of [
    '//',
    '/\\',
    '//[',
    '/%',
    '/api/probe/%zz/follow',
    '*',
    'http://[',
    `/api/probe/${'x'.repeat(3000)}/follow`,
  ]) {
    await raw(upgrade(path))
    assert.equal((await agent.request('GET /api/health')).statusCode, 200, path)
  }
})

test('a client that breaks off in the handshake breaks nothing', async () => {
  for (let count = 0; count < 20; count++) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(upgrade(count % 2 ? SHOP : '/api/none'))
    socket.resetAndDestroy()
  }
  await wait(50)
  assert.equal((await agent.request('GET /api/health')).statusCode, 200)
})
