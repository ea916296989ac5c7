// The audit log: exactly one event for whatever was asked to change something, with nothing secret in it.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import type { Ask } from '../testing/agent.ts'
import { failing, type ProbeAgent, probeAgent } from '../testing/probe.ts'

let agent: ProbeAgent
before(async () => {
  agent = await probeAgent()
  for (const name of ['key', 'alice', 'bob', 'vera', 'nina'] as const) await agent.tokenOf(name)
})
after(() => agent.stop())
beforeEach(() => agent.probe.at.clear())

interface Event {
  actor_type: string
  actor_name: string
  action: string
  resource_type: string
  resource_id: string | null
  success: number
  status_code: number
  client_ip: string
  user_agent: string
  request_id: string
  details: string
}

/** What the request answered, and the events it wrote. */
async function events(line: string, ask: Ask = {}): Promise<[LightMyRequestResponse, Event[]]> {
  const last = agent.db.get<{ id: number }>('SELECT coalesce(max(id), 0) AS id FROM audit_events')?.id as number
  const answer = await agent.request(line, { ...ask, headers: { 'user-agent': 'the test', ...ask.headers } })
  while (answer.statusCode === 201 && agent.door.isActive(answer.json().job_id)) await new Promise(setImmediate)
  return [answer, agent.db.all<Event>('SELECT * FROM audit_events WHERE id > ?', last)]
}

async function one(line: string, status: number, action: string, ask: Ask = {}): Promise<Event> {
  const [answer, written] = await events(line, ask)
  assert.equal(answer.statusCode, status, answer.body)
  assert.equal(written.length, 1, `${line}: ${written.length} events`)
  const [event] = written as [Event]
  assert.deepEqual([event.action, event.request_id], [action, answer.headers['x-request-id']])
  const job = ask.headers?.prefer !== undefined
  assert.equal(event.status_code, job ? event.status_code : status)
  assert.equal(event.success, event.status_code < 400 ? 1 : 0)
  return event
}

const steps = (...files: string[]) => ({ steps: files.map(file => ({ do: 'write', file, text: file })) })

test('what was done is one event: who, what, from where, and the changes', async () => {
  const event = await one('POST /api/probe/p/run', 200, 'probe.run', { as: 'bob', body: steps('a') })
  assert.deepEqual(
    [event.actor_type, event.actor_name, event.resource_type, event.resource_id, event.client_ip, event.user_agent],
    ['user', 'bob', 'probe', 'p', '127.0.0.1', 'the test'],
  )
  assert.deepEqual(JSON.parse(event.details).changes, [{ type: 'file', id: 'a', action: 'create', after: 'a' }])
})

test('what was refused is one event: 400, 403, 404 and 409', async () => {
  const note = { name: 'n', text: 'x' }
  await agent.request('POST /api/probe/notes', { body: note })
  const refused = [
    await one('POST /api/probe/notes', 400, 'note.make_note', { body: { ...note, name: 'UP' } }),
    await one('POST /api/probe/notes', 400, 'note.make_note', { body: { ...note, wrong: 1 } }),
    await one('POST /api/probe/notes', 403, 'note.make_note', { as: 'vera', body: note }),
    await one('POST /api/probe/notes', 409, 'note.make_note', { body: note }),
    await one('PUT /api/probe/notes/nobody', 404, 'note.change_note', { body: { text: 'x' } }),
    await one('PUT /api/probe/notes/n', 412, 'note.change_note', {
      body: { text: 'x' },
      headers: { 'if-match': '"x"' },
    }),
    await one('POST /api/probe/p/run', 404, 'probe.run', { as: 'nina', body: { ...steps('a'), deployment: 'shop' } }),
  ]
  for (const event of refused) assert.ok(JSON.parse(event.details).code)
})

test('what failed in the middle is one event', async () => {
  agent.probe.at.set('b:half', failing('UPSTREAM_FAILED', 'b broke'))
  const event = await one('POST /api/probe/p/run', 502, 'probe.run', { body: steps('a', 'b') })
  assert.equal(JSON.parse(event.details).error, 'b broke')
})

test('a job is one event, when it has ended', async () => {
  const headers = { prefer: 'respond-async' }
  assert.equal((await one('POST /api/probe/p/run', 201, 'probe.run', { body: steps('a'), headers })).status_code, 200)
  agent.probe.at.set('b:half', failing('UPSTREAM_FAILED'))
  assert.equal((await one('POST /api/probe/p/run', 201, 'probe.run', { body: steps('b'), headers })).status_code, 502)
})

test('a plan is one event, its application another, and so is its refusal', async () => {
  const made = await one('POST /api/probe/p/run?plan=true', 200, 'plan.create', { body: steps('a') })
  const applied = await one(`POST /api/plans/${made.resource_id}/apply`, 200, 'probe.run', { as: 'alice' })
  assert.equal(JSON.parse(applied.details).plan, made.resource_id)
  await one(`POST /api/plans/${made.resource_id}/apply`, 409, 'probe.run')
  await one('POST /api/plans/none/apply', 404, 'plan.apply')
  await one('POST /api/probe/p/run?plan=true', 403, 'probe.run', { as: 'vera', body: steps('a') })
})

test('a login is one event, in the name of who it was; a failed one of the system, with the name tried', async () => {
  const good = { username: 'bob', password: 'correct horse battery' }
  const event = await one('POST /api/auth/login', 200, 'user.login', { as: 'nobody', body: good })
  assert.deepEqual([event.actor_type, event.actor_name], ['user', 'bob'])
  const [answer, written] = await events('POST /api/auth/login', {
    as: 'nobody',
    body: { ...good, password: 'wrong-canary' },
  })
  assert.equal(answer.statusCode, 401)
  assert.deepEqual(
    written.map(({ actor_type, resource_id, success }) => [actor_type, resource_id, success]),
    [['system', 'bob', 0]],
  )
  assert.doesNotMatch(JSON.stringify(written), /wrong-canary/)
})

test('nothing is written without a valid token, for a question, or for what does not exist', async () => {
  for (const [line, ask, status] of [
    ['POST /api/probe/p/run', { as: 'nobody', body: steps('a') }, 401],
    ['POST /api/probe/p/run', { as: { token: 'x.y.z' }, body: steps('a') }, 401],
    ['GET /api/users', {}, 200],
    ['GET /api/users', { as: 'vera' }, 403],
    ['POST /api/nowhere', { body: {} }, 404],
    ['DELETE /api/probe/p/run', {}, 405],
  ] as [string, Ask, number][]) {
    const [answer, written] = await events(line, ask)
    assert.deepEqual([answer.statusCode, written.length], [status, 0], line)
  }
})

test('details hold no secret, whether it was done, planned or refused', async () => {
  const canary = 'canary-in-a-secret-field'
  const body = { secret: canary, steps: [{ do: 'write', file: 'a' }] }
  const done = await one('POST /api/probe/p/run', 200, 'probe.run', { body })
  const planned = await one('POST /api/probe/p/run?plan=true', 200, 'plan.create', { body })
  const applied = await one(`POST /api/plans/${planned.resource_id}/apply`, 200, 'probe.run')
  const made = await one('POST /api/probe/notes', 201, 'note.make_note', {
    body: { name: 'secret', text: 'x', token: canary },
  })
  const refused = await one('POST /api/probe/notes', 400, 'note.make_note', { body: { name: 'x', token: canary } })
  for (const event of [done, planned, applied, made, refused]) assert.doesNotMatch(JSON.stringify(event), /canary/)
})

test('each event is counted once, by day, action and actor', async () => {
  const counted = agent.db.get<{ events: number; failures: number }>(
    'SELECT sum(events) AS events, sum(failures) AS failures FROM audit_counts',
  )
  const all = agent.db.get<{ events: number; failures: number }>(
    'SELECT count(*) AS events, sum(1 - success) AS failures FROM audit_events',
  )
  assert.deepEqual(counted, all)
})
