import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { system } from '../../core/permission.ts'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestRegistry, testRegistry } from '../../testing/registry.ts'

let agent: TestAgent
let registry: TestRegistry
before(async () => {
  registry = await testRegistry()
  agent = await testAgent()
})
after(async () => {
  await agent.stop()
  await registry.stop()
})

const create = (body: object) => agent.request('POST /api/credentials', { body })
const stored = (id: string) => agent.door.askAs(system).credentials.row(id).credentials

test('a credential is made, shown without its values, changed and deleted', async () => {
  const body = {
    name: 'bucket',
    type: 's3',
    credentials: { access_key: 'AK', secret_key: 'canary-secret' },
    shared_with: ['shop'],
  }
  const planned = await agent.request('POST /api/credentials?plan=true', { body })
  assert.equal(planned.statusCode, 200, planned.body)
  assert.ok(!planned.body.includes('canary-secret'))
  assert.equal(planned.json().data.changes[0].after.credentials, '[redacted]')
  const made = await agent.request(`POST /api/plans/${planned.json().data.id}/apply`)
  assert.equal(made.statusCode, 201, made.body)
  const { id, created_at, updated_at, ...rest } = made.json().data
  assert.deepEqual(rest, {
    name: 'bucket',
    type: 's3',
    credentials: { access_key: '[redacted]', secret_key: '[redacted]' },
    shared_with: ['shop'],
    used_by: [],
  })
  assert.equal(created_at, updated_at)
  assert.equal((await create({ ...body, name: 'Bucket' })).json().code, 'ALREADY_EXISTS')
  assert.equal((await agent.request(`GET /api/credentials/${id}`)).json().data.name, 'bucket')

  const changed = await agent.request(`PUT /api/credentials/${id}`, {
    body: { name: 'store', credentials: { secret_key: '[redacted]', access_key: 'AK2', region: 'eu' } },
  })
  assert.equal(changed.statusCode, 200, changed.body)
  assert.deepEqual(stored(id), { access_key: 'AK2', secret_key: 'canary-secret', region: 'eu' })
  await agent.request(`PUT /api/credentials/${id}`, { body: { credentials: { region: null } } })
  assert.deepEqual(stored(id), { access_key: 'AK2', secret_key: 'canary-secret' })
  assert.deepEqual(
    (
      await agent.request(`PUT /api/credentials/${id}?plan=true`, {
        body: { name: 'store', credentials: { secret_key: '[redacted]' } },
      })
    ).json().data.changes,
    [],
  )

  assert.equal((await agent.request(`DELETE /api/credentials/${id}`)).statusCode, 200)
  assert.equal((await agent.request(`GET /api/credentials/${id}`)).statusCode, 404)
})

test('at rest a credential is sealed, and it survives a restart', async () => {
  const made = (await create({ name: 'sealed', type: 'generic', credentials: { token: 'canary-at-rest' } })).json().data
  const row = agent.db.get<{ credentials: string }>('SELECT credentials FROM credentials WHERE id = ?', made.id)
  assert.match(row?.credentials ?? '', /^v1:/)
  const { folder } = agent
  await agent.stop('keep')
  agent = await testAgent({ folder })
  assert.deepEqual(stored(made.id), { token: 'canary-at-rest' })
})

test('what is incomplete, unknown or only a mask is refused with its field', async () => {
  const cases: [object, string][] = [
    [{ type: 'registry', credentials: { username: 'a' } }, 'credentials.password'],
    [{ type: 'generic', credentials: {} }, 'credentials'],
    [{ type: 'generic', credentials: { token: '[redacted]' } }, 'credentials.token'],
    [{ type: 'generic', credentials: { 'a b': 'x' } }, 'credentials.a b'],
    [{ type: 'generic', credentials: { a: 7 } }, 'credentials.a'],
    [{ type: 'other', credentials: { a: 'x' } }, 'type'],
    [{ type: 'generic', credentials: { a: 'x' }, secret: 'y' }, 'secret'],
  ]
  for (const [more, path] of cases) {
    const answer = await create({ name: 'bad', ...more })
    assert.equal(answer.json().code, 'VALIDATION_FAILED', answer.body)
    assert.equal(answer.json().details[0].path, path)
  }
  assert.equal(
    (await create({ name: 'bad', type: 'generic', credentials: { a: 'x' }, shared_with: ['no-such'] })).statusCode,
    404,
  )
})

test('one that a registry uses says so, and can be neither deleted nor become another type', async () => {
  const detail = (await agent.request('GET /api/credentials/test-credential')).json().data
  assert.deepEqual(detail.used_by, [{ type: 'registry', id: 'local' }])
  const refused = await agent.request('DELETE /api/credentials/test-credential')
  assert.equal(refused.json().code, 'IN_USE')
  assert.match(refused.json().error, /registry local/)
  assert.equal(
    (await agent.request('PUT /api/credentials/test-credential', { body: { type: 'generic' } })).json().code,
    'IN_USE',
  )
})

test('testing really logs in, at the registry that uses it or at its own server', async () => {
  const { host: server, username, password } = registry
  const test = async (credentials: object) => {
    const { id } = (
      await create({ name: `for ${JSON.stringify(credentials).length}`, type: 'registry', credentials })
    ).json().data
    const answer = await agent.request(`POST /api/credentials/${id}/test`)
    await agent.request(`DELETE /api/credentials/${id}`)
    return answer
  }
  const right = await test({ username, password, server })
  assert.equal(right.statusCode, 200, right.body)
  assert.equal(right.json().data.success, true)
  const wrong = await test({ username, password: 'wrong', server })
  assert.equal(wrong.statusCode, 200)
  assert.equal(wrong.json().data.success, false)
  assert.match(wrong.json().data.error, /refused the username or password/)
  assert.equal((await test({ username, password: 'nowhere' })).json().code, 'VALIDATION_FAILED')
  assert.match(
    (await test({ username, password: 'meta!', server: 'http://169.254.169.254' })).json().data.error,
    /metadata/,
  )

  const used = await agent.request('POST /api/credentials/test-credential/test')
  assert.equal(used.json().data.tested[0].registry, '127.0.0.1:5000')
  assert.equal((await agent.request('POST /api/credentials/test-credential/test?plan=true')).statusCode, 400)
  assert.equal((await agent.request('POST /api/credentials/nobody/test')).statusCode, 404)
})

test('other types are tested where they are used', async () => {
  const { id } = (await create({ name: 'mail', type: 'smtp', credentials: { password: 'x' } })).json().data
  const answer = await agent.request(`POST /api/credentials/${id}/test`)
  assert.equal(answer.statusCode, 400)
  assert.match(answer.json().error, /cannot be tested by itself/)
})

test('operators and viewers see no credentials', async () => {
  for (const as of ['bob', 'vera'] as const) {
    for (const line of [
      'GET /api/credentials',
      'GET /api/credentials/test-credential',
      'DELETE /api/credentials/test-credential',
      'POST /api/credentials/test-credential/test',
    ]) {
      assert.equal((await agent.request(line, { as })).statusCode, 403, `${as} ${line}`)
    }
  }
})

test('a deployment that goes takes its share of credentials with it', async () => {
  const made = (
    await create({ name: 'shared', type: 'generic', credentials: { a: 'x' }, shared_with: ['blog', 'shop'] })
  ).json().data
  const steps = agent.door.askAs(system).credentials.withoutDeployment('blog')
  assert.deepEqual(
    steps.map(step => (step.data as { after: { shared_with: string[] } }).after.shared_with),
    [['shop']],
  )
  await agent.request(`DELETE /api/credentials/${made.id}`)
})
