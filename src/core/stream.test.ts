// What is streamed, through real sockets: uploads in constant memory, and follows with their tokens, rights and slow readers.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, rm, stat, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, mock, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { gate, type ProbeAgent, probeAgent } from '../testing/probe.ts'

const MIB = 1 << 20

let agent: ProbeAgent
let port: number
let sockets: WebSocket[] = []
before(async () => {
  agent = await probeAgent()
  port = Number(new URL(await agent.app.listen({ port: 0, host: '127.0.0.1' })).port)
})
after(() => agent.stop())
beforeEach(async () => {
  agent.probe.at.clear()
  agent.probe.reached.length = 0
  await rm(agent.probe.folder, { recursive: true, force: true })
  await mkdir(agent.probe.folder)
})
afterEach(() => {
  for (const socket of sockets) socket.terminate()
  sockets = []
})

/** A request with a body of this many bytes, of which the test sends what it likes. */
async function upload(file: string, size: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  const token = await agent.tokenOf('key')
  const head = [`PUT /api/probe/files/${file}?size=${size} HTTP/1.1`, 'host: x', `authorization: Bearer ${token}`]
  socket.write([...head, 'content-type: application/octet-stream', `content-length: ${size}`, '', ''].join('\r\n'))
  return socket
}

test('200 MiB are taken as a stream: the memory of the agent stays where it was', async () => {
  const size = 200 * MIB
  const chunk = Buffer.alloc(MIB, 'x')
  const socket = await upload('big', size)
  let answer = ''
  socket.on('data', text => {
    answer += text
  })
  const before = process.memoryUsage().rss
  let peak = before
  for (let sent = 0; sent < size; sent += MIB) {
    if (!socket.write(chunk)) await once(socket, 'drain')
    peak = Math.max(peak, process.memoryUsage().rss)
  }
  while (!answer.includes('}')) await wait(5)
  socket.destroy()
  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.match(answer, new RegExp(`"size":${size}\\b`))
  assert.equal((await stat(join(agent.probe.folder, 'big'))).size, size)
  assert.ok(peak - before < 128 * MIB, `${Math.round((peak - before) / MIB)} MiB more`)
})

test('an upload that breaks off is a failure, and what was there before is back', async () => {
  await writeFile(join(agent.probe.folder, 'broken'), 'old')
  const socket = await upload('broken', 10 * MIB)
  socket.write(Buffer.alloc(MIB))
  while (((await stat(join(agent.probe.folder, 'broken')).catch(() => undefined))?.size ?? 0) < 10) await wait(5)
  socket.destroy()
  while (!agent.probe.reached.includes('broken:undone')) await wait(5)
  assert.deepEqual(await agent.probe.files(), { broken: 'old' })
})

test('an upload is never a job: its bytes come with the request', async () => {
  const ask = { payload: 'hello', headers: { prefer: 'respond-async', 'content-type': 'application/octet-stream' } }
  const answer = await agent.request('PUT /api/probe/files/small?size=5', ask)
  assert.deepEqual([answer.statusCode, answer.json().data], [200, { size: 5 }])
})

interface Following {
  socket: WebSocket
  frames: { type: string; count?: number; error?: string }[]
  closed: Promise<number>
}

function follow(options: { token?: string; first?: string; path?: string } = {}): Following {
  const { token, first, path = 'shop/follow' } = options
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/probe/${path}`, { headers })
  sockets.push(socket)
  const frames: Following['frames'] = []
  socket.on('message', data => frames.push(JSON.parse(String(data))))
  socket.on('open', () => {
    if (first !== undefined) socket.send(first)
  })
  const closed = once(socket, 'close').then(([code]) => code as number)
  return { socket, frames, closed }
}

/** Frames until the reader is gone; tells when it is. */
function endless(): Promise<void> {
  const ended = Promise.withResolvers<void>()
  agent.probe.frames = async function* (signal) {
    yield { type: 'first' }
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    ended.resolve()
  }
  return ended.promise
}

const opened = async ({ frames }: Following) => {
  while (frames.length === 0) await wait(5)
}

test('a follow sends its frames and ends, whichever way the token comes', async () => {
  agent.probe.frames = async function* () {
    yield { type: 'line', text: 'one' }
    yield { type: 'line', text: 'two' }
  }
  const token = await agent.tokenOf('vera')
  for (const way of [{ token }, { first: token }, { first: JSON.stringify({ type: 'auth', token }) }]) {
    const { frames, closed } = follow(way)
    assert.equal(await closed, 1000)
    assert.deepEqual(frames, [{ type: 'line', text: 'one' }, { type: 'line', text: 'two' }, { type: 'end' }])
  }
})

test('a follow is refused with the code that says why', async () => {
  endless()
  const [vera, nina] = [await agent.tokenOf('vera'), await agent.tokenOf('nina')]
  const body = { username: 'blind', password: 'long enough to pass', role: 'viewer', permissions: ['traffic:read'] }
  await agent.request('POST /api/users', { body })
  const login = await agent.request('POST /api/auth/login', {
    body: { username: body.username, password: body.password },
  })
  const cases: [object, number][] = [
    [{ token: 'x.y.z' }, 4401],
    [{ first: 'x.y.z' }, 4401],
    [{ first: '{"type":"auth"}' }, 4401],
    [{ first: '{broken' }, 4401],
    [{ token: vera, path: 'shop/follow?tail=x' }, 4400],
    [{ token: vera, path: 'shop/follow?tial=1' }, 4400],
    [{ token: vera, path: 'UP/follow' }, 4400],
    [{ token: login.json().token }, 4403],
    [{ token: nina }, 4404],
    [{ token: vera, path: 'blog/follow' }, 4404],
  ]
  for (const [options, code] of cases) {
    const { frames, closed } = follow(options)
    assert.equal(await closed, code, JSON.stringify(options))
    assert.equal(frames[0]?.type, 'error')
    assert.ok(frames[0]?.error)
  }
})

test('a token that comes too late is refused', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const { socket, closed } = follow()
    await once(socket, 'open')
    await new Promise(setImmediate)
    mock.timers.tick(9_999)
    assert.equal(socket.readyState, WebSocket.OPEN)
    mock.timers.tick(1)
    assert.equal(await closed, 4401)
  } finally {
    mock.timers.reset()
  }
})

test('whoever loses his right, his deployment, his account or his token meanwhile is sent away', async () => {
  endless()
  const password = 'long enough to pass'
  const changes = {
    right: [4403, (id: number) => agent.request(`PUT /api/users/${id}`, { body: { permissions: ['traffic:read'] } })],
    deployment: [4403, (id: number) => agent.request(`DELETE /api/users/${id}/deployments/shop`)],
    account: [4401, (id: number) => agent.request(`PUT /api/users/${id}`, { body: { is_active: false } })],
    user: [4401, (id: number) => agent.request(`DELETE /api/users/${id}`)],
  } as const
  await Promise.all(
    Object.entries(changes).map(async ([username, [code, change]]) => {
      const user = (await agent.request('POST /api/users', { body: { username, password, role: 'viewer' } })).json()
        .data
      const access = { deployment_name: 'shop', access_level: 'read' }
      await agent.request(`POST /api/users/${user.id}/deployments`, { body: access })
      const login = await agent.request('POST /api/auth/login', { body: { username, password } })
      const following = follow({ token: login.json().token })
      await opened(following)
      assert.equal((await change(user.id)).statusCode, 200)
      assert.equal(await following.closed, code, username)
    }),
  )
})

test('a key that is revoked ends what it follows', async () => {
  endless()
  const made = (
    await agent.request('POST /api/apikeys', { as: 'alice', body: { name: 'follower', role: 'viewer' } })
  ).json()
  const key = made.key ?? made.data?.key
  const { token } = (await agent.request('POST /api/auth/login', { body: { api_key: key } })).json()
  const following = follow({ token })
  await opened(following)
  agent.db.run("UPDATE api_keys SET is_active = 0 WHERE name = 'follower'")
  assert.equal(await following.closed, 4401)
})

test('a reader that goes away ends the source', async () => {
  const ended = endless()
  const following = follow({ token: await agent.tokenOf('vera') })
  await opened(following)
  following.socket.terminate()
  await ended
})

test('a reader that is too slow is told how much it missed, and the agent does not gather it', async () => {
  const text = 'x'.repeat(64 * 1024)
  const [begin, goOn] = [gate(), gate()]
  agent.probe.frames = async function* () {
    await begin.hold()
    for (let count = 0; count < 1600; count++) {
      yield { type: 'line', text }
      await new Promise(setImmediate)
    }
    await goOn.hold()
    yield { type: 'line', text: 'last' }
  }
  const { socket, frames, closed } = follow({ token: await agent.tokenOf('vera') })
  await once(socket, 'open')
  await begin.reached
  socket.pause()
  const before = process.memoryUsage().rss
  begin.open()
  await goOn.reached
  assert.ok(process.memoryUsage().rss - before < 64 * MIB)
  socket.resume()
  while (frames.length === 0) await wait(5)
  await wait(50)
  goOn.open()
  assert.equal(await closed, 1000)
  const dropped = frames.filter(frame => frame.type === 'dropped').reduce((sum, frame) => sum + (frame.count ?? 0), 0)
  const lines = frames.filter(frame => frame.type === 'line').length
  assert.ok(dropped > 0, 'some were dropped')
  assert.equal(lines + dropped, 1601, 'and each is accounted for')
  assert.deepEqual(frames.at(-1), { type: 'end' })
})

test('a plain request to a follow is told to upgrade, and a websocket elsewhere is not found', async () => {
  const plain = await agent.request('GET /api/probe/shop/follow')
  assert.deepEqual([plain.statusCode, plain.headers.upgrade, plain.json().code], [426, 'websocket', 'UPGRADE_REQUIRED'])
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/nowhere`)
  const [, response] = await once(socket, 'unexpected-response')
  assert.equal(response.statusCode, 404)
  socket.on('error', () => {})
  socket.terminate()
})

test('an open follow does not keep the agent from stopping', async () => {
  const other = await probeAgent()
  const { port: own } = new URL(await other.app.listen({ port: 0, host: '127.0.0.1' }))
  other.probe.frames = async function* (signal) {
    yield { type: 'first' }
    await new Promise(resolve => signal.addEventListener('abort', resolve))
  }
  const headers = { authorization: `Bearer ${await other.tokenOf('vera')}` }
  const socket = new WebSocket(`ws://127.0.0.1:${own}/api/probe/shop/follow`, { headers })
  const closed = once(socket, 'close')
  await once(socket, 'message')
  const began = performance.now()
  await other.stop()
  await closed
  assert.ok(performance.now() - began < 3000)
})
