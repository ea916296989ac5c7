// Idempotency keys: the first answer again and nothing done twice, whoever asks in whatever moment.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { failing, gate, type ProbeAgent, probeAgent } from '../testing/probe.ts'

let agent: ProbeAgent
let count = 0
let key: string
before(async () => {
  agent = await probeAgent()
})
after(() => agent.stop())
beforeEach(() => {
  agent.probe.at.clear()
  agent.probe.reached.length = 0
  key = `key-${++count}`
})

type Who = 'key' | 'alice' | 'bob'
const send = (line: string, body?: object, as: Who = 'key', headers: Record<string, string> = {}) =>
  agent.request(line, { as, headers: { 'idempotency-key': key, ...headers }, ...(body ? { body } : {}) })
const run = (file: string, as: Who = 'key') =>
  send('POST /api/probe/p/run', { steps: [{ do: 'write', file, text: file }] }, as)
const times = (point: string) => agent.probe.reached.filter(one => one === point).length
const events = () => agent.db.get<{ n: number }>('SELECT count(*) AS n FROM audit_events')?.n as number

test('the same key and request returns the first answer, status included, without the secret shown once', async () => {
  const body = { name: 'once', text: 'x', token: 'shown-once' }
  const first = await send('POST /api/probe/notes', body)
  const before = events()
  const second = await send('POST /api/probe/notes', body)
  assert.deepEqual([first.statusCode, first.json().data.token], [201, 'shown-once'])
  assert.deepEqual([second.statusCode, second.json().data], [201, { name: 'once', token: '[redacted]' }])
  assert.equal(second.json().message, first.json().message)
  assert.equal(events(), before, 'it is not another mutation')
})

test('a kept answer lies sealed in the store', async () => {
  await send('POST /api/probe/notes', { name: 'sealed', text: 'x', token: 'not-in-the-table' })
  const rows = JSON.stringify(agent.db.all('SELECT * FROM kept_answers'))
  assert.doesNotMatch(rows, /not-in-the-table|sealed|key-/)
})

test('a refusal is kept as well', async () => {
  agent.probe.at.set('p:decide', failing('CONFLICT', 'not now'))
  assert.equal((await run('a')).statusCode, 409)
  agent.probe.at.clear()
  const again = await run('a')
  assert.deepEqual([again.statusCode, again.json().error], [409, 'not now'])
  assert.equal(times('a:done'), 0)
})

test('a 5xx is not kept: the same key tries again', async () => {
  agent.probe.at.set('a:half', failing('UPSTREAM_FAILED'))
  assert.equal((await run('a')).statusCode, 502)
  agent.probe.at.clear()
  assert.equal((await run('a')).statusCode, 200)
})

test('another request under the same key is 409 CONFLICT', async () => {
  assert.equal((await run('a')).statusCode, 200)
  const other = await run('b')
  assert.deepEqual([other.statusCode, other.json().code], [409, 'CONFLICT'])
  assert.equal(times('b:done'), 0)
})

test('a twin in flight is 409 BUSY, another request in flight 409 CONFLICT, and the first goes on', async () => {
  const held = gate()
  agent.probe.at.set('a:half', held.hold)
  const first = run('a')
  await held.reached
  assert.equal((await run('a')).json().code, 'BUSY')
  assert.equal((await run('b')).json().code, 'CONFLICT')
  held.open()
  assert.equal((await first).statusCode, 200)
  assert.equal((await run('a')).statusCode, 200)
  assert.equal(times('a:done'), 1)
})

test('a key is scoped to caller, method and path', async () => {
  assert.equal((await run('a')).statusCode, 200)
  assert.equal((await run('a', 'alice')).statusCode, 200)
  assert.equal(
    (await send('POST /api/probe/q/run', { steps: [{ do: 'write', file: 'a', text: 'a' }] })).statusCode,
    200,
  )
  assert.equal((await send('POST /api/probe/notes', { name: 'scoped', text: 'x' })).statusCode, 201)
  assert.equal((await send('PUT /api/probe/notes/scoped', { text: 'x' })).statusCode, 200)
  assert.equal((await send('DELETE /api/probe/notes/scoped')).statusCode, 200)
  assert.equal((await send('DELETE /api/probe/notes/scoped')).statusCode, 200, 'the first answer again')
  assert.equal(times('a:done'), 3)
})

test('after 24 h a key is a new one', async () => {
  assert.equal((await run('a')).statusCode, 200)
  agent.db.run('UPDATE kept_answers SET created_at = ?', new Date(Date.now() - 86_400_000 - 1000).toISOString())
  assert.equal((await run('b')).statusCode, 200)
  agent.db.run('UPDATE kept_answers SET created_at = ?', new Date(Date.now() - 86_400_000 - 1000).toISOString())
  agent.door.sweep(new Date(0))
  assert.equal(agent.db.get<{ n: number }>('SELECT count(*) AS n FROM kept_answers')?.n, 0)
})

test('a plan is made once, and the plan of the same key is the same', async () => {
  const body = { name: 'planned', text: 'x', token: 'hidden-in-plans' }
  const [first, second] = [
    await send('POST /api/probe/notes?plan=true', body),
    await send('POST /api/probe/notes?plan=true', body),
  ]
  assert.equal(first.json().data.id, second.json().data.id)
  assert.deepEqual(second.json(), first.json())
  assert.equal(
    (await send('POST /api/probe/notes', body)).json().code,
    'CONFLICT',
    'without plan it is another request',
  )
})

test('applying a plan twice under one key applies it once, and shows its secret once', async () => {
  const planned = await agent.request('POST /api/probe/notes?plan=true', { body: { name: 'applied', text: 'x' } })
  const line = `POST /api/plans/${planned.json().data.id}/apply`
  const [first, second] = [await send(line), await send(line)]
  assert.deepEqual([first.statusCode, second.statusCode], [201, 201])
  assert.equal(first.json().data.token.length, 24)
  assert.equal(second.json().data.token, '[redacted]')
  assert.equal(second.json().plan.id, first.json().plan.id)
})

test('a job is started once: the same key answers the same job, also when it has ended', async () => {
  const held = gate()
  agent.probe.at.set('a:half', held.hold)
  const start = () =>
    send('POST /api/probe/p/run', { steps: [{ do: 'write', file: 'a', text: 'a' }] }, 'key', {
      prefer: 'respond-async',
    })
  const first = await start()
  assert.equal(first.statusCode, 201)
  assert.deepEqual((await start()).json(), first.json())
  held.open()
  while (agent.door.isActive(first.json().job_id)) await new Promise(setImmediate)
  assert.deepEqual((await start()).json(), first.json())
  assert.equal(times('a:done'), 1)
})

test('a login is nobody in particular: its answer is not kept', async () => {
  const login = () =>
    agent.request('POST /api/auth/login', {
      as: 'nobody',
      headers: { 'idempotency-key': key },
      body: { api_key: agent.apiKey },
    })
  const [first, second] = [await login(), await login()]
  assert.equal(first.statusCode, 200)
  assert.notEqual(second.json().token, '[redacted]')
})

test('what was carried out but could not be answered is not carried out again', async () => {
  agent.probe.at.set('p:reply', failing('ENGINE_UNAVAILABLE'))
  assert.equal((await run('a')).statusCode, 503)
  agent.probe.at.clear()
  const again = await run('a')
  assert.deepEqual([again.statusCode, again.json().code], [409, 'CONFLICT'])
  assert.match(again.json().error, /was carried out/)
  assert.equal(times('a:done'), 1)
})
