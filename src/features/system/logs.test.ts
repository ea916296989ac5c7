import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { logFileOf } from '../../agent.ts'
import { isValid, Type } from '../../core/schema.ts'
import { openLog } from '../../log.ts'
import { API_KEY, type TestAgent, testAgent } from '../../testing/agent.ts'
import { livingBytes } from '../../testing/memory.ts'
import { LogEntry } from './logs.ts'

interface Entry {
  time: string | null
  service: string
  stream: string
  line: string
}

let agent: TestAgent
let port: number
let file: string
before(async () => {
  agent = await testAgent()
  await agent.app.listen({ host: '127.0.0.1', port: 0 })
  port = (agent.app.server.address() as AddressInfo).port
  file = logFileOf(agent.configuration.current.data_path)
  mkdirSync(dirname(file), { recursive: true })
})
after(() => agent.stop())

const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString()
const line = (n: number, more: object = {}) => JSON.stringify({ level: 'info', time: at(n), msg: `line ${n}`, ...more })
const writeLog = (lines: string[]) => writeFileSync(file, lines.map(one => `${one}\n`).join(''))
const messages = (entries: Entry[]) => entries.map(entry => JSON.parse(entry.line).msg)

async function logs(
  query: Record<string, string> = {},
  as: 'key' | 'vera' | 'bob' | 'alice' = 'key',
): Promise<Entry[]> {
  const answer = await agent.request('GET /api/system/logs', { as, query })
  assert.equal(answer.statusCode, 200, answer.body)
  const { data, message } = answer.json()
  assert.equal(message, 'OK')
  assert.ok(isValid(Type.Array(LogEntry), data), JSON.stringify(data[0]))
  return data
}

test('the log is read with tail, filter and since', async () => {
  writeLog(Array.from({ length: 300 }, (_, n) => line(n)))
  const last = await logs()
  assert.equal(last.length, 100)
  assert.deepEqual(last.at(-1), { time: at(299), service: 'agent', stream: 'file', line: line(299) })
  assert.equal((await logs({ tail: '0' })).length, 300)
  assert.deepEqual(messages(await logs({ tail: '2' })), ['line 298', 'line 299'])
  assert.deepEqual(messages(await logs({ tail: '2', filter: 'LINE 10' })), ['line 108', 'line 109'])
  assert.deepEqual(messages(await logs({ since: at(298) })), ['line 298', 'line 299'])
})

test('lines that are not ours come as they are, without a time of their own', async () => {
  writeLog(['what is this', line(1), '    at a stack trace'])
  assert.deepEqual(await logs(), [
    { time: null, service: 'agent', stream: 'file', line: 'what is this' },
    { time: at(1), service: 'agent', stream: 'file', line: line(1) },
    { time: at(1), service: 'agent', stream: 'file', line: '    at a stack trace' },
  ])
})

test('an agent that has not logged yet has no lines', async () => {
  await rm(file, { force: true })
  assert.deepEqual(await logs({ tail: '0' }), [])
})

test('bad questions are refused: an unknown source, a bad time, a bad tail', async () => {
  const status = async (query: Record<string, string>) =>
    (await agent.request('GET /api/system/logs', { query })).statusCode
  assert.equal(await status({ source: 'nothing' }), 404)
  assert.equal(await status({ source: '../fairlead.db' }), 404)
  assert.equal(await status({ since: 'yesterday' }), 400)
  assert.equal(await status({ tail: '-1' }), 400)
  assert.equal(await status({ deployment: '../shop' }), 400)
})

test('who is no administrator names a deployment of his and gets the lines about it, nothing else', async () => {
  const mine = { deployment: 'shop', path: '/api/deployments/shop' }
  writeLog([
    line(1, mine),
    line(2, { deployment: 'blog' }),
    line(3),
    line(4, { deployment: 'blog', note: 'with "deployment":"shop" in a text' }),
    line(5, { deployment: 'blog', inner: { deployment: 'shop' } }),
    'a text with "deployment":"shop" in it',
    line(6, mine),
  ])
  assert.deepEqual(messages(await logs({ deployment: 'shop' }, 'vera')), ['line 1', 'line 6'])
  assert.deepEqual(messages(await logs({ deployment: 'shop', filter: 'LINE 6' }, 'bob')), ['line 6'])
  assert.deepEqual(messages(await logs({ deployment: 'shop', tail: '1' }, 'vera')), ['line 6'])
  assert.deepEqual(messages(await logs({ deployment: 'blog' })), ['line 2', 'line 4', 'line 5'])

  const without = await agent.request('GET /api/system/logs', { as: 'vera' })
  assert.equal(without.statusCode, 403)
  assert.match(without.json().error, /Name one of your deployments/)
  assert.equal((await agent.request('GET /api/system/logs?deployment=blog', { as: 'vera' })).statusCode, 404)
  assert.equal((await agent.request('GET /api/system/logs?deployment=shop', { as: 'nina' })).statusCode, 404)
})

test('a key of an administrator that is bound to a deployment does not read the whole log', async () => {
  const body = { name: 'bound', role: 'admin', deployments: ['shop'] }
  const { key } = (await agent.request('POST /api/apikeys', { as: 'alice', body })).json()
  const { token } = (await agent.request('POST /api/auth/login', { as: 'nobody', body: { api_key: key } })).json()
  assert.equal((await agent.request('GET /api/system/logs', { as: { token } })).statusCode, 403)
  assert.equal((await agent.request('GET /api/system/logs?deployment=shop', { as: { token } })).statusCode, 200)
})

test('all of 200 MB is streamed in constant memory, and a reader that stops reading stops the reading', async () => {
  const long = `${line(1, { padding: 'x'.repeat(4000) })}\n`
  const block = Buffer.from(long.repeat(256))
  const fd = openSync(file, 'w')
  let lines = 0
  for (let size = 0; size < 200e6; size += block.length, lines += 256) writeSync(fd, block)
  closeSync(fd)

  const before = livingBytes()
  const answer = await stream('/api/system/logs?tail=0')
  assert.equal(answer.statusCode, 200)
  answer.pause()
  await sleep(300)
  let most = livingBytes()
  let bytes = 0
  let end = ''
  let looked = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length
    end = (end + chunk.subarray(-40).toString('latin1')).slice(-40)
    if (bytes < looked + 40e6) continue
    looked = bytes
    most = Math.max(most, livingBytes())
  }
  assert.ok(bytes > lines * long.length, `${bytes} bytes`)
  assert.match(end, /\],"message":"OK"\}$/)
  assert.ok(most - before < 20e6, `${Math.round((most - before) / 1e6)} MB more`)
  await rm(file)
})

async function stream(path: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${await agent.tokenOf('key')}` }
  return new Promise((resolve, reject) => get({ port, path, headers }, resolve).on('error', reject))
}

test('a follow begins with the tail and loses no line while the log turns over', async () => {
  await rm(file, { force: true })
  const log = openLog({ level: 'info', file, maxBytes: 4000, keep: 5 })
  log.logger.info('before 1')
  log.logger.info('before 2')
  log.flush()
  const follow = await open('/api/system/logs/stream?tail=1')
  assert.equal((await follow.next()).line.includes('before 2'), true)
  const wanted: string[] = []
  for (let n = 0; n < 200; n++) {
    wanted.push(`after ${n}`)
    log.logger.info(`after ${n}`)
    if (n % 10 !== 9) continue
    log.flush()
    await sleep(5)
  }
  const found: string[] = []
  while (found.length < wanted.length) {
    const frame = await follow.next()
    assert.equal(frame.type, 'log')
    assert.equal(frame.service, 'agent')
    found.push(JSON.parse(frame.line).msg)
  }
  assert.deepEqual(found, wanted)
  follow.socket.close()
  await log.close()
})

test('a follow takes only the lines about the deployment, and ends when its reader loses the right', async () => {
  writeLog([line(1, { deployment: 'shop' }), line(2), line(3, { deployment: 'shop' })])
  const follow = await open('/api/system/logs/stream?deployment=shop', 'vera')
  assert.equal(JSON.parse((await follow.next()).line).msg, 'line 1')
  assert.equal(JSON.parse((await follow.next()).line).msg, 'line 3')
  await agent.request('DELETE /api/users/3/deployments/shop')
  assert.equal((await follow.closed).code, 4403)
  await agent.request('POST /api/users/3/deployments', { body: { deployment_name: 'shop', access_level: 'read' } })
})

test('an administrator who becomes a viewer no longer follows the whole log', async () => {
  writeLog([line(1)])
  const follow = await open('/api/system/logs/stream', 'alice')
  await follow.next()
  const demoted = await agent.request('PUT /api/users/1', { body: { role: 'viewer' } })
  assert.equal(demoted.statusCode, 409, 'the last administrator')
  const password = 'long enough a word'
  await agent.request('POST /api/users', { body: { username: 'second', password, role: 'admin' } })
  assert.equal((await agent.request('PUT /api/users/1', { body: { role: 'viewer' } })).statusCode, 200)
  assert.equal((await follow.closed).code, 4403)
  assert.equal((await agent.request('PUT /api/users/1', { body: { role: 'admin' } })).statusCode, 200)
})

test('a follow is refused as the question would be', async () => {
  const code = async (query: string, as: 'key' | 'vera' = 'key') =>
    (await (await open(`/api/system/logs/stream${query}`, as)).closed).code
  assert.equal(await code('?source=nothing'), 4404)
  assert.equal(await code('?tail=many'), 4400)
  assert.equal(await code('', 'vera'), 4403)
  assert.equal(await code('?deployment=blog', 'vera'), 4404)
  assert.equal((await agent.request('GET /api/system/logs/stream')).statusCode, 426)
})

test('the agent as a process answers its own lines, each request about a deployment among them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fairlead-test-'))
  await mkdir(join(folder, 'deployments', 'blog'), { recursive: true })
  await writeFile(join(folder, 'deployments', 'blog', 'compose.yaml'), 'services: {}\n')
  const config = join(folder, 'config.yml')
  await writeFile(config, `auth:\n  api_keys: [${API_KEY}]\napi:\n  port: 0\n`, { mode: 0o600 })
  const main = fileURLToPath(new URL('../../main.ts', import.meta.url))
  const child = spawn(process.execPath, [main, '--config', config], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const url = await readyAt(child.stdout)
    const body = JSON.stringify({ api_key: API_KEY })
    const login = await fetch(`${url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const headers = { authorization: `Bearer ${((await login.json()) as { token: string }).token}` }
    const { headers: answered } = await fetch(`${url}/api/deployments/blog`, { headers })
    await sleep(200)
    const found = (await (await fetch(`${url}/api/system/logs?deployment=blog`, { headers })).json()) as {
      data: Entry[]
    }
    const [entry] = found.data
    assert.equal(found.data.length, 1)
    assert.match(String(entry?.time), /^\d{4}-\d\d-\d\dT/)
    const { reqId, path, status, deployment } = JSON.parse(String(entry?.line))
    assert.deepEqual(
      { reqId, path, status, deployment },
      { reqId: answered.get('x-request-id'), path: '/api/deployments/blog', status: 200, deployment: 'blog' },
    )
  } finally {
    child.kill()
    const [code] = await once(child, 'exit')
    assert.equal(code, 0)
    await rm(folder, { recursive: true, force: true })
  }
})

async function readyAt(output: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  for await (const chunk of output) {
    text += chunk
    const url = /is ready at (\S+)/.exec(text)?.[1]
    if (url) return url
  }
  throw new Error(`it did not start: ${text}`)
}

test('stopping the agent ends the follows', async () => {
  const other = await testAgent({ empty: true })
  await other.app.listen({ host: '127.0.0.1', port: 0 })
  const otherFile = logFileOf(other.configuration.current.data_path)
  mkdirSync(dirname(otherFile), { recursive: true })
  writeFileSync(otherFile, `${line(1)}\n`)
  const follow = await open(
    '/api/system/logs/stream',
    await other.tokenOf('key'),
    (other.app.server.address() as AddressInfo).port,
  )
  await follow.next()
  const began = performance.now()
  await other.stop()
  await follow.closed
  assert.ok(performance.now() - began < 5000)
})

/** A websocket, its token as first message, and what comes over it. */
async function open(path: string, as: 'key' | 'vera' | 'alice' | string = 'key', at = port) {
  const token = ['key', 'vera', 'alice'].includes(as) ? await agent.tokenOf(as as 'key') : as
  const socket = new WebSocket(`ws://127.0.0.1:${at}${path}`)
  const frames: Record<string, string>[] = []
  let wake = () => {}
  socket.on('open', () => socket.send(token))
  socket.on('message', data => {
    frames.push(JSON.parse(String(data)))
    wake()
  })
  const closed = new Promise<{ code: number; reason: string }>(resolve => {
    socket.on('close', (code, reason) => {
      wake()
      resolve({ code, reason: String(reason) })
    })
  })
  const next = async (): Promise<Record<string, string> & { line: string }> => {
    while (frames.length === 0) {
      if (socket.readyState === socket.CLOSED) throw new Error('the follow has ended')
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
    return frames.shift() as Record<string, string> & { line: string }
  }
  return { socket, next, closed }
}
