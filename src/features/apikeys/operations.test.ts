import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Ask, type TestAgent, testAgent } from '../../testing/agent.ts'

let agent: TestAgent
before(async () => {
  agent = await testAgent()
})
after(() => agent.stop())

const request = (line: string, ask?: Ask) => agent.request(line, ask)
interface Made {
  id: number
  key: string
  name: string
  created_at: string
}

async function made(body: object = {}, ask: Ask = {}): Promise<Made> {
  const answer = await request('POST /api/apikeys', { ...ask, body: { name: 'made', ...body } })
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json()
}

const shown = async (id: number, ask?: Ask) => (await request(`GET /api/apikeys/${id}`, ask)).json().data
const tokenOf = async (api_key: string) => ({
  token: (await request('POST /api/auth/login', { as: 'nobody', body: { api_key } })).json().token as string,
})
const names = async (ask?: Ask) =>
  ((await request('GET /api/apikeys', ask)).json().data as { name: string }[]).map(one => one.name)

test('a key is fl_ and 40 characters, shown in the answer that makes it and never again', async () => {
  const answer = await made({ name: 'once' })
  assert.match(answer.key, /^fl_[A-Za-z0-9]{40}$/)
  assert.equal(answer.name, 'once')
  const all = (await request('GET /api/apikeys')).body + (await request(`GET /api/apikeys/${answer.id}`)).body
  assert.ok(!all.includes(answer.key))
  assert.notEqual((await made()).key, answer.key)
})

test('a key shows its prefix, rights, times and owner', async () => {
  const { id, key } = await made(
    {
      name: 'full',
      description: 'for CI',
      role: 'operator',
      permissions: ['audit:read'],
      deployments: ['shop'],
      expires_in: 60,
    },
    { as: 'alice' },
  )
  const { created_at, expires_at, ...rest } = await shown(id)
  assert.equal(Date.parse(expires_at) - Date.parse(created_at), 60_000)
  assert.deepEqual(rest, {
    id,
    name: 'full',
    description: 'for CI',
    key_prefix: key.slice(0, 10),
    role: 'operator',
    permissions: ['audit:read'],
    deployments: ['shop'],
    is_active: true,
    last_used_at: null,
    owner: 'alice',
  })
})

test('left out: a viewer without an end, of all deployments of its owner', async () => {
  const { role, permissions, deployments, expires_at, description } = await shown((await made()).id)
  assert.deepEqual([role, permissions, deployments, expires_at, description], ['viewer', [], [], null, ''])
})

test('keys made by a key of the configuration belong to system, those of a user to him', async () => {
  assert.equal((await shown((await made()).id)).owner, 'system')
  const bobs = await made({ name: 'bobs own' }, { as: 'bob' })
  assert.equal((await shown(bobs.id)).owner, 'bob')
  const child = await made(
    { name: 'bobs second', role: 'viewer' },
    { as: await tokenOf((await made({ role: 'operator' }, { as: 'bob' })).key) },
  )
  assert.equal((await shown(child.id)).owner, 'bob', 'a key of a key belongs to the user behind it')
})

test('everybody sees his own keys, an administrator all', async () => {
  const { id } = await made({ name: 'of nina' }, { as: 'nina' })
  assert.deepEqual(await names({ as: 'nina' }), ['of nina'])
  assert.ok((await names()).includes('of nina') && (await names()).includes('first'))
  assert.ok(!(await names({ as: 'bob' })).includes('of nina'))
  for (const line of [`GET /api/apikeys/${id}`, `POST /api/apikeys/${id}/revoke`, `DELETE /api/apikeys/${id}`]) {
    assert.equal((await request(line, { as: 'bob' })).statusCode, 404, line)
  }
  assert.equal((await request(`GET /api/apikeys/${id}`, { as: 'alice' })).statusCode, 200)
  assert.equal((await request('POST /api/apikeys', { as: 'vera', body: { name: 'no' } })).statusCode, 403)
  assert.deepEqual(await names({ as: 'vera' }), [])
})

test('a revoked key stays in the list, refused; to revoke it again changes nothing', async () => {
  const { id } = await made({ name: 'revoked' })
  const answer = await request(`POST /api/apikeys/${id}/revoke`)
  assert.deepEqual([answer.statusCode, answer.json().data.is_active], [200, false])
  assert.equal((await shown(id)).is_active, false)
  assert.deepEqual((await request(`POST /api/apikeys/${id}/revoke?plan=true`)).json().data.changes, [])
  assert.equal((await request(`POST /api/apikeys/${id}/revoke`)).statusCode, 200)
  assert.equal((await request(`DELETE /api/apikeys/${id}`)).json().data, null)
  assert.equal((await request(`GET /api/apikeys/${id}`)).statusCode, 404)
})

test('a plan shows the key to be made, and neither it nor its prefix', async () => {
  const { data } = (await request('POST /api/apikeys?plan=true', { body: { name: 'planned', expires_in: 60 } })).json()
  const [change] = data.changes
  assert.deepEqual([change.id, change.action, change.sensitive], ['API key planned', 'create', true])
  assert.deepEqual(
    [change.after.key_hash, change.after.key_prefix, change.after.expires_at],
    ['[redacted]', '[redacted]', '(known after apply)'],
  )
  const applied = await request(`POST /api/plans/${data.id}/apply`)
  assert.equal(applied.statusCode, 201)
  assert.equal((await request('GET /api/users/me', { as: await tokenOf(applied.json().key) })).statusCode, 200)
})

test('bad input is refused by name', async () => {
  for (const [body, path] of [
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'x', expires_in: 0 }, 'expires_in'],
    [{ name: 'x', expires_in: '60' }, 'expires_in'],
    [{ name: 'x', permissions: ['none:read'] }, 'permissions.0'],
    [{ name: 'x', deployments: ['../up'] }, 'deployments.0'],
    [{ name: 'x', key: 'mine' }, 'key'],
  ] as const) {
    const answer = await request('POST /api/apikeys', { body })
    assert.deepEqual([answer.statusCode, answer.json().details?.[0]?.path], [400, path], answer.body)
  }
})

test('two keys may have one name', async () => {
  const [one, two] = [await made({ name: 'same' }), await made({ name: 'same' })]
  assert.notEqual(one.id, two.id)
})

test('when it was used last is kept over a restart', async t => {
  const first = await testAgent()
  const { id, key } = (await first.request('POST /api/apikeys', { body: { name: 'used' } })).json()
  const { token } = (await first.request('POST /api/auth/login', { as: 'nobody', body: { api_key: key } })).json()
  await first.request('GET /api/users/me', { as: { token } })
  await first.stop('keep')
  const second = await testAgent({ folder: first.folder })
  t.after(() => second.stop())
  const { last_used_at } = (await second.request(`GET /api/apikeys/${id}`)).json().data
  assert.ok(Math.abs(Date.parse(last_used_at) - Date.now()) < 60_000)
  assert.equal((await second.request('GET /api/users/me', { as: { token } })).statusCode, 200, 'and so is the token')
})
