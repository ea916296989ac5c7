// Plans: the same decision twice, what makes one stale, late or not applicable, who may apply it, and what it keeps.

import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { failing, gate, type ProbeAgent, probeAgent } from '../testing/probe.ts'

let agent: ProbeAgent
before(async () => {
  agent = await probeAgent()
})
after(() => agent.stop())
beforeEach(() => agent.probe.at.clear())

interface Planned {
  id: string
  status: string
  changes: { id: string; after?: unknown }[]
  request: { body: unknown }
  error: string | null
  applied_by: object | null
}

async function plan(line: string, body: object, as: 'key' | 'bob' | 'nina' = 'key'): Promise<Planned> {
  const answer = await agent.request(`${line}?plan=true`, { body, as })
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json().data
}

const write = (file: string, more: object = {}) =>
  plan('POST /api/probe/p/run', { steps: [{ do: 'write', file, ...more }] })
const apply = (id: string, ask = {}) => agent.request(`POST /api/plans/${id}/apply`, ask)
const shown = async (id: string) => (await agent.request(`GET /api/plans/${id}`)).json().data as Planned
const settings = (body: object) => agent.request('PUT /api/settings', { body })

function refused(answer: LightMyRequestResponse, status: number, code: string): void {
  assert.equal(answer.statusCode, status, answer.body)
  assert.equal(answer.json().code, code)
}

test('planning changes nothing, and applying answers what the request would have answered, with the plan', async () => {
  const body = { name: 'first', text: 'hello', token: 'a-token-of-its-own' }
  const { id } = await plan('POST /api/probe/notes', body)
  assert.equal((await agent.request('GET /api/probe/notes/first')).statusCode, 404)
  const applied = await apply(id)
  assert.equal(applied.statusCode, 201)
  const { data, message, plan: after } = applied.json()
  assert.deepEqual(data, { name: 'first', token: 'a-token-of-its-own' })
  assert.equal(message, 'Make a note: done.')
  assert.equal(after.status, 'applied')
  assert.equal(after.id, id)
})

test('ids and generated secrets are the same when it is planned and when it is applied', async () => {
  const { id, changes } = await write('fresh')
  assert.equal((await apply(id)).statusCode, 200)
  assert.equal((await agent.probe.files()).fresh, changes[0]?.after)
  assert.equal(String(changes[0]?.after).length, 24)
})

test('two plans of the same request generate different secrets', async () => {
  const [one, two] = [await write('fresh'), await write('fresh')]
  assert.notEqual(one.changes[0]?.after, two.changes[0]?.after)
})

test('a record that was changed makes the plan stale: nothing is done, now and ever', async () => {
  await agent.request('POST /api/probe/notes', { body: { name: 'moved', text: 'one' } })
  const { id } = await plan('PUT /api/probe/notes/moved', { text: 'two' })
  await agent.request('PUT /api/probe/notes/moved', { body: { text: 'three' } })
  const answer = await apply(id)
  refused(answer, 409, 'PLAN_STALE')
  assert.deepEqual(answer.json().details, [{ type: 'record', id: 'note moved' }])
  assert.equal((await agent.request('GET /api/probe/notes/moved')).json().data.text, 'three')
  assert.equal((await shown(id)).status, 'obsolete')
  await agent.request('PUT /api/probe/notes/moved', { body: { text: 'one' } })
  refused(await apply(id), 409, 'PLAN_STALE')
})

test('a value that a plan does not show makes it stale too', async () => {
  await agent.request('POST /api/probe/notes', { body: { name: 'hidden', text: 'one', token: 'first-token' } })
  const { id } = await plan('PUT /api/probe/notes/hidden', { text: 'two' })
  agent.db.run("UPDATE probe_notes SET token = 'second-token' WHERE name = 'hidden'")
  const answer = await apply(id)
  refused(answer, 409, 'PLAN_STALE')
  assert.deepEqual(answer.json().details, [{ type: 'record', id: 'note hidden' }])
})

test('what moves by itself does not make a plan stale', async () => {
  await agent.request('POST /api/probe/notes', { body: { name: 'seen', text: 'one' } })
  const { id } = await plan('PUT /api/probe/notes/seen', { text: 'two' })
  agent.db.run("UPDATE probe_notes SET seen = 7 WHERE name = 'seen'")
  assert.equal((await apply(id)).statusCode, 200)
})

test('a record that is gone makes the plan stale, and the details say what was missing', async () => {
  await agent.request('POST /api/probe/notes', { body: { name: 'gone', text: 'one' } })
  const { id } = await plan('PUT /api/probe/notes/gone', { text: 'two' })
  await agent.request('DELETE /api/probe/notes/gone')
  const answer = await apply(id)
  refused(answer, 409, 'PLAN_STALE')
  assert.deepEqual(answer.json().details, [{ type: 'note', id: 'gone', reason: 'There is no note "gone".' }])
})

test('a file that was changed by hand makes the plan stale, and the details name it', async () => {
  const { id } = await plan('PUT /api/settings', { jobs: { retention_days: 3 } })
  const file = join(agent.folder, 'config.yml')
  const text = await readFile(file, 'utf8')
  await writeFile(file, `${text}# a comment by hand\n`)
  const answer = await apply(id)
  await writeFile(file, text)
  refused(answer, 409, 'PLAN_STALE')
  assert.ok(answer.json().details.some((one: object) => 'id' in one && one.id === 'config.yml'))
  refused(await apply(id), 409, 'PLAN_STALE')
})

test('a state of the world that moved makes the plan stale, and the details name what moved', async () => {
  await writeFile(join(agent.probe.folder, 'there'), 'x')
  const { id } = await plan('POST /api/probe/sweep', {})
  await writeFile(join(agent.probe.folder, 'new'), 'x')
  const answer = await apply(id)
  refused(answer, 409, 'PLAN_STALE')
  assert.deepEqual(answer.json().details, [{ type: 'file', id: 'new' }])
  assert.ok('there' in (await agent.probe.files()))
})

test('the fingerprint alone is enough: a file that changed no step is compared as well', async () => {
  const { id } = await write('same', { text: 'same' })
  const row = agent.door.plans.row(id)
  const seen = { ...row, files: JSON.stringify([{ path: 'shop/.env', sha256: 'aa' }]) }
  const steps = [{ kind: 'probe.write', data: { file: 'same', text: 'same' } }]
  agent.door.plans.requireSame(seen, steps, [], [{ path: 'shop/.env', sha256: 'aa' }])
  assert.throws(() => agent.door.plans.requireSame(seen, steps, [], [{ path: 'shop/.env', sha256: 'bb' }]), {
    code: 'PLAN_STALE',
    details: [{ type: 'file', id: 'shop/.env' }],
  })
})

test('a plan that is late is 410, its time being looked at first, and the setting is in force at once', async () => {
  await agent.request('POST /api/probe/notes', { body: { name: 'late', text: 'one' } })
  const [fresh, stale, used, discarded] = [
    await write('late'),
    await plan('PUT /api/probe/notes/late', { text: 'two' }),
    await write('late'),
    await write('late'),
  ]
  await agent.request('PUT /api/probe/notes/late', { body: { text: 'three' } })
  refused(await apply(stale.id), 409, 'PLAN_STALE')
  assert.equal((await apply(used.id)).statusCode, 200)
  await agent.request(`DELETE /api/plans/${discarded.id}`)
  agent.db.run('UPDATE plans SET created_at = ?', new Date(Date.now() - 2000).toISOString())
  try {
    assert.equal((await settings({ plans: { ttl_seconds: 1 } })).statusCode, 200)
    assert.equal((await shown(fresh.id)).status, 'expired')
    for (const { id } of [fresh, stale, used, discarded]) refused(await apply(id), 410, 'PLAN_EXPIRED')
  } finally {
    await settings({ plans: { ttl_seconds: null } })
  }
  refused(await apply(fresh.id), 410, 'PLAN_EXPIRED')
  assert.equal((await shown(used.id)).status, 'applied')
})

test('applied, discarded and failed plans cannot be applied', async () => {
  const [applied, discarded, failed] = [await write('a'), await write('b'), await write('c')]
  assert.equal((await apply(applied.id)).statusCode, 200)
  assert.equal((await agent.request(`DELETE /api/plans/${discarded.id}`)).statusCode, 200)
  agent.probe.at.set('c:half', failing('UPSTREAM_FAILED', 'c broke'))
  refused(await apply(failed.id), 502, 'UPSTREAM_FAILED')
  const { status, error } = await shown(failed.id)
  assert.deepEqual([status, error], ['failed', 'c broke'])
  for (const { id } of [applied, discarded, failed]) refused(await apply(id), 409, 'PLAN_NOT_APPLICABLE')
})

test('of two concurrent applies of one plan one wins', async () => {
  const { id } = await write('race')
  const held = gate()
  agent.probe.at.set('race:half', held.hold)
  const first = apply(id)
  await held.reached
  refused(await apply(id), 409, 'PLAN_NOT_APPLICABLE')
  assert.equal((await shown(id)).status, 'applying')
  held.open()
  assert.equal((await first).statusCode, 200)
  const { id: other } = await write('race')
  const answers = await Promise.all(Array.from({ length: 5 }, () => apply(other)))
  assert.deepEqual(answers.map(answer => answer.statusCode).sort(), [200, 409, 409, 409, 409])
})

test('a refusal before the first step leaves the plan as it was', async () => {
  const { id } = await write('engine')
  agent.probe.at.set('p:decide', failing('ENGINE_UNAVAILABLE', 'The engine is gone.'))
  refused(await apply(id), 503, 'ENGINE_UNAVAILABLE')
  const { status, applied_by } = await shown(id)
  assert.deepEqual([status, applied_by], ['available', null])
  agent.probe.at.clear()
  assert.equal((await apply(id)).statusCode, 200)
})

test('somebody without the right to the operation may not apply its plan, which stays as it was', async () => {
  const { id } = await write('rights')
  const maker = { username: 'planner', password: 'long enough to pass', role: 'operator' }
  const user = (await agent.request('POST /api/users', { body: maker })).json().data
  const permissions = ['plans:write', 'deployments:read']
  await agent.request(`PUT /api/users/${user.id}`, { body: { permissions } })
  const { token } = (
    await agent.request('POST /api/auth/login', { body: { username: 'planner', password: maker.password } })
  ).json()
  refused(await apply(id, { as: { token } }), 403, 'FORBIDDEN')
  assert.equal((await shown(id)).status, 'available')
})

test('a plan about a deployment is applied with the rights of who applies it', async () => {
  const body = { deployment: 'shop', steps: [{ do: 'write', file: 'scoped' }] }
  const { id } = await plan('POST /api/probe/p/run', body)
  refused(await apply(id, { as: 'nina' }), 404, 'NOT_FOUND')
  refused(await apply(id, { as: 'vera' }), 403, 'FORBIDDEN')
  assert.equal((await shown(id)).status, 'available')
  const applied = await apply(id, { as: 'bob' })
  assert.equal(applied.statusCode, 200)
  assert.equal(applied.json().plan.applied_by.name, 'bob')
})

test('a plan is applied as a job as well, and a stale one is refused at once', async () => {
  const prefer = { headers: { prefer: 'respond-async' } }
  await agent.request('POST /api/probe/notes', { body: { name: 'job', text: 'one' } })
  const [good, stale] = [await write('job'), await plan('PUT /api/probe/notes/job', { text: 'two' })]
  await agent.request('PUT /api/probe/notes/job', { body: { text: 'three' } })
  refused(await apply(stale.id, prefer), 409, 'PLAN_STALE')
  const started = await apply(good.id, prefer)
  assert.equal(started.statusCode, 201)
  while (agent.door.isActive(started.json().job_id)) await new Promise(setImmediate)
  assert.equal((await shown(good.id)).status, 'applied')
  const job = (await agent.request(`GET /api/jobs/${started.json().job_id}`)).json().data
  assert.equal(job.result.body.plan.status, 'applied')
})

test('a streamed upload is planned as one opaque change, whose bytes are not kept', async () => {
  const answer = await agent.request('PUT /api/probe/files/big?size=5&plan=true', { payload: 'hello' })
  assert.equal(answer.statusCode, 200)
  const { id, changes } = answer.json().data
  assert.deepEqual(changes, [{ type: 'object', id: 'big', action: 'create', after: '5 bytes' }])
  refused(await apply(id), 409, 'PLAN_NOT_APPLICABLE')
  assert.equal((await shown(id)).status, 'available')
})

test('an answer outside plan mode: what has none says so, and a misspelt value never executes', async () => {
  refused(await agent.request('POST /api/auth/login?plan=true', { body: { api_key: 'x' } }), 400, 'VALIDATION_FAILED')
  refused(await apply('x?plan=true'.replace('?plan=true', ''), {}), 404, 'NOT_FOUND')
  refused(await agent.request('POST /api/plans/x/apply?plan=true'), 400, 'VALIDATION_FAILED')
  const body = { steps: [{ do: 'write', file: 'never' }] }
  for (const query of ['plan=yes', 'plna=true', 'plan=true&plan=false']) {
    refused(await agent.request(`POST /api/probe/p/run?${query}`, { body }), 400, 'VALIDATION_FAILED')
  }
  assert.ok(!('never' in (await agent.probe.files())))
})

test('the checks of the real request are done when it is planned, and refuse in the same way', async () => {
  await agent.request('POST /api/probe/notes', { body: { name: 'taken', text: 'x' } })
  const again = { body: { name: 'taken', text: 'x' } }
  refused(await agent.request('POST /api/probe/notes?plan=true', again), 409, 'ALREADY_EXISTS')
  refused(await agent.request('POST /api/probe/notes?plan=true', { ...again, as: 'vera' }), 403, 'FORBIDDEN')
  refused(
    await agent.request('POST /api/probe/notes?plan=true', { body: { name: 'UP', text: 'x' } }),
    400,
    'VALIDATION_FAILED',
  )
})

test('a secret is in no plan and in no byte of the store, and what was sealed is gone when the plan is over', async () => {
  const canary = 'canary-7c1f0b52-in-plain-sight'
  const body = { secret: canary, steps: [{ do: 'write', file: 'sealed' }] }
  const ends = {
    applied: (id: string) => apply(id),
    discarded: (id: string) => agent.request(`DELETE /api/plans/${id}`),
    expired: async (id: string) => {
      agent.db.run('UPDATE plans SET created_at = ? WHERE id = ?', new Date(0).toISOString(), id)
      agent.door.plans.sweep()
    },
  }
  const sealed: string[] = []
  for (const [status, end] of Object.entries(ends)) {
    const made = await plan('POST /api/probe/p/run', body)
    assert.equal((made.request.body as { secret: string }).secret, '[redacted]')
    assert.doesNotMatch(JSON.stringify(made), /canary/)
    sealed.push(agent.door.plans.row(made.id).sealed as string)
    await end(made.id)
    const row = agent.door.plans.rows('WHERE id = ?', made.id)[0]
    if (row) assert.deepEqual([row.status, row.sealed], [status, null])
  }
  assert.equal((await agent.probe.files()).sealed, canary)
  await agent.stop('keep')
  const data = join(agent.folder, 'data')
  const files = (await readdir(data)).filter(file => file.startsWith('fairlead.db'))
  assert.ok(files.includes('fairlead.db'))
  for (const name of files) {
    const bytes = await readFile(join(data, name), 'latin1')
    assert.ok(!bytes.includes(canary), `${name} holds the secret`)
    for (const text of sealed) assert.ok(!bytes.includes(text), `${name} still holds what was sealed`)
  }
  agent = await probeAgent({ folder: agent.folder, probeFolder: agent.probe.folder })
})
