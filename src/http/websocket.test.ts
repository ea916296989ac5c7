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

test('a long reason in another script does not break the agent', async () => {
  const { closed } = follow(`${SHOP}?${encodeURIComponent('ю'.repeat(300))}=1`, { token: await agent.tokenOf('bob') })
  assert.equal((await closed).code, 4400)
  assert.equal((await agent.request('GET /api/health')).statusCode, 200)
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

test('the source waits for a reader that falls behind for a moment, and nothing is dropped', async () => {
  const line = 'x'.repeat(64 * 1024)
  let given = 0
  agent.probe.frames = async function* () {
    for (; given < 512; given++) yield { type: 'log', line }
  }
  const { socket, frames, closed } = follow(SHOP, { token: await agent.tokenOf('bob') })
  await once(socket, 'open')
  socket.pause()
  await wait(200)
  assert.ok(given < 512, 'the source was held up')
  socket.resume()
  assert.equal((await closed).code, 1000)
  assert.deepEqual([frames.length, frames.filter(({ type }) => type === 'log').length], [513, 512])
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
