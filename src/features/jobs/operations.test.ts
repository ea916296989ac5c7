import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Ask } from '../../testing/agent.ts'
import { gate, type ProbeAgent, probeAgent } from '../../testing/probe.ts'

let agent: ProbeAgent
before(async () => {
  agent = await probeAgent()
})
after(async () => {
  for (const open of opened) open()
  await agent.stop()
})
const opened: (() => void)[] = []

const request = (line: string, ask?: Ask) => agent.request(line, ask)
const headers = { prefer: 'respond-async' }

async function begun(name: string, ask: Ask = {}, body: object = {}): Promise<{ id: string; open(): void }> {
  const held = gate()
  opened.push(held.open)
  agent.probe.at.set(`${name}:half`, held.hold)
  const steps = [{ do: 'write', file: name, text: 'xy' }]
  const answer = await request('POST /api/probe/p/run', { ...ask, headers, body: { steps, ...body } })
  assert.equal(answer.statusCode, 201, answer.body)
  await held.reached
  return { id: answer.json().job_id, open: held.open }
}

const job = async (id: string, ask?: Ask) => (await request(`GET /api/jobs/${id}`, ask)).json().data
async function ended(id: string): Promise<void> {
  for (let tries = 0; agent.door.isActive(id) && tries < 500; tries++) await wait(10)
  assert.ok(!agent.door.isActive(id), `job ${id} has ended`)
}

test('a job tells its type, progress and deployment while it runs, and its answer when it has ended', async () => {
  const { id, open } = await begun('a', {}, { deployment: 'shop' })
  const running = await job(id)
  assert.deepEqual(
    [running.id, running.type, running.status, running.deployment_name, running.completed_at, running.result],
    [id, 'probe.run', 'running', 'shop', null, null],
  )
  assert.match(running.phase, /create file a/)
  open()
  await ended(id)
  const done = await job(id)
  assert.deepEqual([done.status, done.progress, done.error], ['completed', 100, null])
  assert.equal(done.result.status, 200)
  assert.ok(Date.parse(done.started_at) >= Date.parse(done.created_at))
  assert.ok(Date.parse(done.completed_at) >= Date.parse(done.started_at))
})

test('the list is newest first, in pages, and filtered by status', async () => {
  const one = await begun('b')
  const two = await begun('c')
  const ids = async (query: string) =>
    ((await request(`GET /api/jobs?${query}`)).json().data as { id: string }[]).map(each => each.id)
  const running = await ids('status=running')
  assert.ok(running.indexOf(two.id) >= 0 && running.indexOf(two.id) < running.indexOf(one.id))
  one.open()
  await ended(one.id)
  assert.ok(!(await ids('status=running')).includes(one.id))
  assert.ok((await ids('status=completed')).includes(one.id))
  assert.deepEqual(await ids('limit=1&offset=1'), [(await ids(''))[1]])
  two.open()
  await ended(two.id)
  assert.equal((await request('GET /api/jobs?status=sleeping')).statusCode, 400)
})

test('an ordinary request is no job', async () => {
  const { total } = (await request('GET /api/jobs')).json()
  await request('PUT /api/users/4', { body: { email: 'x@example.org' } })
  assert.equal((await request('GET /api/jobs')).json().total, total)
})

test('a cancelled job has undone what it did, and says who cancelled it', async () => {
  const { id, open } = await begun('d')
  const cancelling = request(`POST /api/jobs/${id}/cancel`, { as: 'alice' })
  await new Promise(setImmediate)
  open()
  const answer = await cancelling
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal(answer.json().data.status, 'cancelled')
  assert.match(answer.json().data.error, /cancelled by alice/)
  assert.equal((await agent.probe.files()).d, undefined)
})

test('what has ended cannot be cancelled, and what is not there is 404', async () => {
  const { id, open } = await begun('e')
  open()
  await ended(id)
  const late = await request(`POST /api/jobs/${id}/cancel`)
  assert.deepEqual([late.statusCode, late.json().code], [409, 'CONFLICT'])
  assert.equal((await request('GET /api/jobs/none')).statusCode, 404)
  assert.equal((await request('POST /api/jobs/none/cancel')).statusCode, 404)
})

test('the plan of a cancellation ends nothing', async () => {
  const { id, open } = await begun('f')
  const planned = await request(`POST /api/jobs/${id}/cancel?plan=true`)
  assert.deepEqual(
    planned.json().data.changes.map((one: { type: string; id: string }) => [one.type, one.id]),
    [['job', id]],
  )
  assert.equal((await job(id)).status, 'running')
  open()
  await ended(id)
})

test('a job on a deployment is seen by those who see it and may do what it does', async () => {
  const { id, open } = await begun('g', {}, { deployment: 'shop' })
  const seenBy = async (as: 'bob' | 'vera' | 'nina') => (await request(`GET /api/jobs/${id}`, { as })).statusCode
  assert.deepEqual([await seenBy('bob'), await seenBy('vera'), await seenBy('nina')], [200, 404, 404])
  const listed = (await request('GET /api/jobs', { as: 'nina' })).json().data as { id: string }[]
  assert.ok(!listed.some(one => one.id === id))
  open()
  await ended(id)
})

test('who may only look at a deployment does not cancel what is done to it', async () => {
  const { id, open } = await begun('h', {}, { deployment: 'shop' })
  await request('PUT /api/users/2/deployments/shop', { body: { access_level: 'read' } })
  assert.equal((await request(`GET /api/jobs/${id}`, { as: 'bob' })).statusCode, 200)
  assert.equal((await request(`POST /api/jobs/${id}/cancel`, { as: 'bob' })).statusCode, 403)
  await request('PUT /api/users/2/deployments/shop', { body: { access_level: 'write' } })
  const cancelling = request(`POST /api/jobs/${id}/cancel`, { as: 'bob' })
  await new Promise(setImmediate)
  open()
  assert.equal((await cancelling).statusCode, 200)
})

test('what somebody does to himself or to his keys is his own job', async () => {
  const profile = await request('PUT /api/users/me', { as: 'vera', body: { email: 'job@example.org' }, headers })
  const key = await request('POST /api/apikeys', { as: 'bob', body: { name: 'job' }, headers })
  for (const [answer, maker, others] of [
    [profile, 'vera', ['bob', 'nina']],
    [key, 'bob', ['vera', 'nina']],
  ] as const) {
    const { job_id } = answer.json()
    await ended(job_id)
    assert.equal((await request(`GET /api/jobs/${job_id}`, { as: maker })).statusCode, 200)
    for (const as of others) assert.equal((await request(`GET /api/jobs/${job_id}`, { as })).statusCode, 404, as)
    assert.equal((await request(`GET /api/jobs/${job_id}`, { as: 'alice' })).statusCode, 200)
  }
})

test('a list of more than 10,000 says so', async () => {
  const row = agent.db.get<Record<string, string>>('SELECT * FROM runs WHERE is_job = 1 LIMIT 1') as Record<
    string,
    string
  >
  const columns = Object.keys(row)
  const sql = `INSERT INTO runs (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
  agent.db.transaction(() => {
    for (let count = 0; count < 10_001; count++) agent.db.run(sql, ...Object.values({ ...row, id: `many-${count}` }))
  })
  const { total, total_capped, data } = (await request('GET /api/jobs?limit=1')).json()
  assert.deepEqual([total, total_capped, data.length], [10_000, true, 1])
  agent.db.run("DELETE FROM runs WHERE id LIKE 'many-%'")
})
