import assert from 'node:assert/strict'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { A_PLAN, type Ask, type TestAgent, testAgent } from '../../testing/agent.ts'

let agent: TestAgent
before(async () => {
  agent = await testAgent()
})
after(() => agent.stop())

const request = (line: string, ask?: Ask) => agent.request(line, ask)
const plan = async (email: string, ask: Ask = {}) =>
  (await request('PUT /api/users/4?plan=true', { ...ask, body: { email } })).json().data as { id: string }
const status = async (id: string) => (await request(`GET /api/plans/${id}`)).json().data?.status
const listed = async (query = '', ask?: Ask) =>
  ((await request(`GET /api/plans${query}`, ask)).json().data as { id: string; status: string }[]).map(one => one.id)

test('a plan says everything about itself', async () => {
  const { data } = (
    await request('PUT /api/users/4?plan=true', { as: 'alice', body: { email: 'a@example.org' } })
  ).json()
  const { id, created_at, expires_at, ...rest } = data
  assert.ok(id)
  assert.equal(Date.parse(expires_at) - Date.parse(created_at), 86_400_000)
  assert.deepEqual(rest, {
    action: 'user.update',
    status: 'available',
    resource: { type: 'user', id: '4' },
    request: { method: 'PUT', path: '/api/users/4', query: {}, body: { email: 'a@example.org' } },
    changes: [
      { type: 'record', id: 'user nina', action: 'update', before: { email: '' }, after: { email: 'a@example.org' } },
    ],
    summary: { create: 0, update: 1, replace: 0, delete: 0, run: 0 },
    files: [],
    created_by: { type: 'user', id: 1, name: 'alice' },
    applied_at: null,
    applied_by: null,
    error: null,
  })
  assert.deepEqual((await request(`GET /api/plans/${id}`)).json().data, data)
})

test('the list is newest first, in pages, and filtered by status', async () => {
  const [one, two] = [await plan('1@example.org'), await plan('2@example.org')]
  const all = await listed()
  assert.ok(all.indexOf(two.id) < all.indexOf(one.id))
  assert.deepEqual(await listed('?limit=1&offset=1'), [all[1]])
  assert.equal((await request('GET /api/plans?limit=1')).json().total, all.length)
  await request(`POST /api/plans/${two.id}/apply`)
  assert.deepEqual(await listed('?status=applied'), [two.id])
  assert.ok(!(await listed('?status=available')).includes(two.id))
  assert.equal((await request('GET /api/plans?status=nonsense')).statusCode, 400)
})

test('a discarded plan is kept as discarded; an applied one only leaves the list', async () => {
  const open = await plan('d@example.org')
  const answer = await request(`DELETE /api/plans/${open.id}`)
  assert.deepEqual([answer.statusCode, answer.json().data], [200, null])
  assert.equal(await status(open.id), 'discarded')
  const applied = await plan('e@example.org')
  await request(`POST /api/plans/${applied.id}/apply`)
  await request(`DELETE /api/plans/${applied.id}`)
  assert.equal((await request(`GET /api/plans/${applied.id}`)).statusCode, 404)
  assert.equal((await request('GET /api/users/4')).json().data.email, 'e@example.org', 'what it did stays done')
  assert.equal((await request('DELETE /api/plans/none')).statusCode, 404)
})

test('what the plan had sealed is wiped when it is applied, discarded or stale', async () => {
  const sealed = (id: string) =>
    agent.db.get<{ sealed: string | null }>('SELECT sealed FROM plans WHERE id = ?', id)?.sealed
  const [applied, discarded, stale] = [
    await plan('s1@example.org'),
    await plan('s2@example.org'),
    await plan('s3@example.org'),
  ]
  assert.match(sealed(applied.id) ?? '', /^v1:/)
  await request(`POST /api/plans/${applied.id}/apply`)
  await request(`DELETE /api/plans/${discarded.id}`)
  assert.equal((await request(`POST /api/plans/${stale.id}/apply`)).json().code, 'PLAN_STALE')
  for (const { id } of [applied, discarded, stale]) assert.equal(sealed(id), null)
  assert.equal(await status(stale.id), 'obsolete')
})

test('an applied plan says when and by whom', async () => {
  const { id } = await plan('w@example.org')
  const { plan: applied } = (await request(`POST /api/plans/${id}/apply`, { as: 'alice' })).json()
  assert.deepEqual([applied.status, applied.applied_by.name], ['applied', 'alice'])
  assert.ok(Math.abs(Date.parse(applied.applied_at) - Date.now()) < 60_000)
  assert.equal(applied.created_by.type, 'api_key')
})

test('plans.ttl_seconds is in force at once, for plans that exist too', async () => {
  const { id } = await plan('t@example.org')
  agent.db.run('UPDATE plans SET created_at = ? WHERE id = ?', new Date(Date.now() - 5000).toISOString(), id)
  await request('PUT /api/settings', { body: { plans: { ttl_seconds: 1 } } })
  assert.equal(await status(id), 'expired')
  assert.equal((await request(`POST /api/plans/${id}/apply`)).statusCode, 410)
  await request('PUT /api/settings', { body: { plans: { ttl_seconds: null } } })
  assert.equal((await request(`POST /api/plans/${id}/apply`)).statusCode, 410, 'now and ever')
  for (const ttl of [0, -1, 'x']) {
    assert.equal((await request('PUT /api/settings', { body: { plans: { ttl_seconds: ttl } } })).statusCode, 400)
  }
})

test('a plan of settings lists the file it read, and is stale when somebody edits that by hand', async () => {
  const { data } = (await request('PUT /api/settings?plan=true', { body: { jobs: { retention_days: 7 } } })).json()
  assert.deepEqual(
    data.files.map((file: { path: string }) => file.path),
    ['config.yml'],
  )
  assert.match(data.files[0].sha256, /^[0-9a-f]{64}$/)
  await appendFile(join(agent.folder, 'config.yml'), '# a remark\n')
  const answer = await request(`POST /api/plans/${data.id}/apply`)
  assert.deepEqual([answer.statusCode, answer.json().code], [409, 'PLAN_STALE'])
  assert.ok(
    answer.json().details.some((one: { type: string; id: string }) => one.type === 'file' && one.id === 'config.yml'),
  )
})

test('to see plans needs plans:read, to apply or discard them plans:write', async () => {
  assert.equal((await request(`POST /api/plans/${A_PLAN}/apply`, { as: 'vera' })).statusCode, 403)
  assert.equal((await request(`DELETE /api/plans/${A_PLAN}`, { as: 'vera' })).statusCode, 403)
  const own = (await request('PUT /api/users/me?plan=true', { as: 'vera', body: { email: 'own@example.org' } })).json()
    .data
  assert.deepEqual(await listed('', { as: 'vera' }), [own.id], 'she sees her own and no other')
  assert.deepEqual(await listed('', { as: 'bob' }), [])
})
