import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { silentServer, type TestRegistry, testRegistry } from '../../testing/registry.ts'

let agent: TestAgent
let world: TestEngine
let registry: TestRegistry
let image: string
const lines: string[] = []
const ids: Record<'right' | 'wrong', string> = { right: '', wrong: '' }

before(async () => {
  world = testEngine()
  registry = await testRegistry()
  agent = await testAgent({ log: { write: line => void lines.push(line) } })
  image = await registry.push(world.address, world.image, `${world.prefix}/app:1`)
  for (const name of ['right', 'wrong'] as const) {
    const password = name === 'right' ? registry.password : 'not the password'
    const credentials = { username: registry.username, password }
    const made = await agent.request('POST /api/credentials', { body: { name, type: 'registry', credentials } })
    assert.equal(made.statusCode, 201, made.body)
    ids[name] = made.json().data.id
  }
})
after(async () => {
  await forget()
  await agent.stop()
  await world.cleanup()
  await registry.stop()
})

const pull = (body: object, as: 'key' | 'bob' | 'nina' = 'key') => agent.request('POST /api/images/pull', { as, body })
/** The engine has it no longer, and the agent has seen that. */
async function forget(): Promise<void> {
  if (!image) return
  await world.engine.images.remove(image, { force: true }).catch(() => {})
  await eventually(async () => !(await agent.request('GET /api/images')).body.includes(image))
}

test('an image is pulled with the credential that was asked for, and not with a wrong one or none', async () => {
  const wrong = await pull({ image, credential_id: ids.wrong })
  assert.equal(wrong.statusCode, 502, wrong.body)
  assert.equal(wrong.json().code, 'UPSTREAM_FAILED')
  assert.match(wrong.json().error, /unauthorized.*Check the credential/)
  const none = await pull({ image })
  assert.equal(none.statusCode, 502)
  assert.match(none.json().error, /no basic auth credentials/)
  const right = await pull({ image, credential_id: ids.right })
  assert.equal(right.statusCode, 200, right.body)
  assert.ok(right.json().data.tags.includes(image))
  const missing = await pull({ image: `${registry.host}/nobody/nothing:1`, credential_id: ids.right })
  assert.equal(missing.statusCode, 502)
  assert.match(missing.json().error, /manifest unknown/)
  assert.equal((await pull({ image, credential_id: 'no-such-id' })).statusCode, 404)
  await forget()
})

test('the credential of the matching registry is used by itself, the plan names it not, and progress is told', async () => {
  const url = `${registry.host}/${world.prefix}`
  const made = await agent.request('POST /api/registries', {
    body: { name: 'Team Registry', url, credential_id: ids.right },
  })
  assert.equal(made.statusCode, 201, made.body)
  assert.deepEqual(made.json().data, {
    slug: 'team-registry',
    name: 'Team Registry',
    url,
    type: 'generic',
    insecure: false,
    credential_id: ids.right,
  })
  const plan = (await agent.request('POST /api/images/pull?plan=true', { body: { image } })).json().data
  assert.deepEqual(plan.changes, [{ type: 'image', id: image, action: 'create' }])
  const pulled = await agent.request('POST /api/images/pull', {
    body: { image },
    headers: { accept: 'application/x-ndjson' },
  })
  const events = pulled.body
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.equal(events.at(-1).status, 200, pulled.body)
  assert.ok(events.some(event => event.type === 'progress' && event.phase.startsWith('pulling ')))
  const again = (await agent.request('POST /api/images/pull?plan=true', { body: { image } })).json().data
  assert.equal(again.changes[0].action, 'update')
  const elsewhere = await pull({ image: `${registry.host}/other/app:1` })
  assert.match(elsewhere.json().error, /no basic auth credentials/)
  assert.equal((await pull({ image, credential_id: null })).statusCode, 502)
  await forget()
})

test('who may not read credentials uses one only when it was shared with a deployment of his', async () => {
  const nina = await pull({ image }, 'nina')
  assert.match(nina.json().error, /no basic auth credentials/)
  assert.equal((await pull({ image, credential_id: ids.right }, 'bob')).statusCode, 404)
  const shared = await agent.request(`PUT /api/credentials/${ids.right}`, { body: { shared_with: ['shop'] } })
  assert.deepEqual(shared.json().data.shared_with, ['shop'])
  assert.equal((await pull({ image }, 'bob')).statusCode, 200)
  assert.equal((await pull({ image, credential_id: ids.right }, 'bob')).statusCode, 200)
  assert.equal((await pull({ image, credential_id: ids.right }, 'nina')).statusCode, 404)
  assert.equal((await agent.request('GET /api/credentials', { as: 'bob' })).statusCode, 403)
  await forget()
})

test('a deployment is brought up from a private registry by who was given its credential, and gives it back when it goes', async () => {
  const name = world.name('private')
  const compose_content = `services:\n  web:\n    image: ${image}\n    command: sleep 3600\n    init: true\n    stop_grace_period: 1s\n`
  const made = await agent.request('POST /api/deployments', { body: { name, compose_content } })
  assert.equal(made.statusCode, 201, made.body)
  await agent.request('POST /api/users/2/deployments', { body: { deployment_name: name, access_level: 'write' } })
  await forget()
  const refused = await agent.request(`POST /api/deployments/${name}/start`, { as: 'bob' })
  assert.equal(refused.statusCode, 502, refused.body)
  assert.match(refused.json().error, /no basic auth credentials/)
  await agent.request(`PUT /api/credentials/${ids.right}`, { body: { shared_with: ['shop', name] } })
  const started = await agent.request(`POST /api/deployments/${name}/start`, { as: 'bob' })
  assert.equal(started.statusCode, 200, started.body)
  assert.equal(started.json().data.status, 'running')
  const gone = await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
  assert.equal(gone.statusCode, 200, gone.body)
  assert.deepEqual((await agent.request(`GET /api/credentials/${ids.right}`)).json().data.shared_with, ['shop'])
  await forget()
})

test('a password never goes to another registry than its own', async () => {
  const other = await pull({ image: 'registry.example.com/team/app:1', credential_id: ids.right })
  assert.equal(other.statusCode, 400, other.body)
  assert.match(other.json().error, new RegExp(`is for ${registry.host}, not for registry.example.com`))
  const holder = {
    username: world.name('rick'),
    password: 'long enough to pass',
    role: 'operator',
    permissions: ['registries:write'],
  }
  const { id } = (await agent.request('POST /api/users', { body: holder })).json().data
  const { token } = (
    await agent.request('POST /api/auth/login', {
      as: 'nobody',
      body: { username: holder.username, password: holder.password },
    })
  ).json()
  const moved = await agent.request('PUT /api/registries/team-registry', {
    as: { token },
    body: { url: 'https://evil.example.com' },
  })
  assert.equal(moved.statusCode, 403, moved.body)
  const bound = await agent.request('POST /api/registries', {
    as: { token },
    body: { name: 'x', url: 'https://evil.example.com', credential_id: ids.right },
  })
  assert.equal(bound.statusCode, 403)
  const renamed = await agent.request('PUT /api/registries/team-registry', { as: { token }, body: { name: 'Ours' } })
  assert.equal(renamed.statusCode, 200, renamed.body)
  await agent.request(`DELETE /api/users/${id}`)
})

test('registries are changed, listed and deleted; addresses that must not be asked are refused', async () => {
  const cases: [object, RegExp][] = [
    [{ url: 'ftp://x' }, /must be the address/],
    [{ url: 'https://me:pw@registry.example.com' }, /must be the address/],
    [{ url: 'http://registry.example.com' }, /without TLS/],
    [{ url: 'http://169.254.169.254' }, /metadata/],
    [{ url: 'http://2852039166' }, /metadata/],
    [{ url: 'https://[fe80::1]' }, /metadata/],
    [{ url: 'x', type: 'A B' }, /type/],
    [{ url: 'x', slug: '../x' }, /slug/],
  ]
  for (const [more, words] of cases) {
    const answer = await agent.request('POST /api/registries', { body: { name: 'Bad', ...more } })
    assert.equal(answer.json().code, 'VALIDATION_FAILED', JSON.stringify(more))
    assert.match(answer.json().error, words)
  }
  assert.equal(
    (await agent.request('POST /api/registries', { body: { name: 'Local', url: 'x.example.com' } })).json().code,
    'ALREADY_EXISTS',
  )
  const insecure = await agent.request('POST /api/registries', {
    body: { slug: 'lan', name: 'LAN', url: 'http://registry.lan:5000', insecure: true },
  })
  assert.equal(insecure.statusCode, 201, insecure.body)
  assert.equal((await agent.request('PUT /api/registries/lan', { body: { insecure: false } })).statusCode, 400)
  assert.equal((await agent.request('PUT /api/registries/lan', { body: { credential_id: 'nope' } })).statusCode, 404)
  assert.equal(
    (await agent.request('PUT /api/registries/lan', { body: { type: 'harbor' } })).json().data.type,
    'harbor',
  )
  assert.deepEqual(
    (await agent.request('GET /api/registries')).json().data.map((one: { slug: string }) => one.slug),
    ['lan', 'local', 'team-registry'],
  )
  const { etag } = (await agent.request('GET /api/registries/lan')).headers as { etag: string }
  assert.equal(
    (await agent.request('DELETE /api/registries/lan', { headers: { 'if-match': '"other"' } })).statusCode,
    412,
  )
  assert.equal((await agent.request('DELETE /api/registries/lan', { headers: { 'if-match': etag } })).statusCode, 200)
  assert.equal((await agent.request('GET /api/registries/lan')).statusCode, 404)
})

test('a registry that hangs holds up nobody, and its pull ends at once when it is cancelled', async () => {
  const silent = await silentServer()
  const body = { image: `${silent.host}/team/app:1` }
  const begun = await agent.request('POST /api/images/pull', { body, headers: { prefer: 'respond-async' } })
  assert.equal(begun.statusCode, 201, begun.body)
  const { job_id } = begun.json()
  await sleep(300)
  assert.equal((await agent.request(`GET /api/jobs/${job_id}`)).json().data.status, 'running')
  const startedAt = performance.now()
  assert.equal((await agent.request('GET /api/images')).statusCode, 200)
  assert.equal((await pull({ image })).statusCode, 200)
  assert.ok(performance.now() - startedAt < 3000)
  const cancelAt = performance.now()
  const cancelled = await agent.request(`POST /api/jobs/${job_id}/cancel`)
  assert.equal(cancelled.json().data.status, 'cancelled', cancelled.body)
  assert.ok(performance.now() - cancelAt < 5000)
  await silent.close()
})

test('the engine is given up on when a registry says nothing for too long', async () => {
  const silent = await silentServer()
  const pulling = world.engine.images.pull(`${silent.host}/team/app:1`, { stallMs: 700 })
  await assert.rejects(pulling, { code: 'TIMEOUT', message: /sent nothing for 1 s/ })
  await silent.close()
})

test('the password is in no file, log line, audit event, plan or answer', async () => {
  const outputs = [
    ...lines,
    (await agent.request('GET /api/audit/events?limit=1000')).body,
    (await agent.request('GET /api/plans')).body,
    (await agent.request('GET /api/credentials')).body,
    (await agent.request('GET /api/jobs')).body,
    (await agent.request('GET /api/openapi.json')).body,
  ]
  for (const secret of [registry.password, 'not the password']) {
    const spellings = [
      secret,
      Buffer.from(secret).toString('base64'),
      Buffer.from(`${registry.username}:${secret}`).toString('base64'),
    ]
    for (const text of spellings) assert.ok(!outputs.some(output => output.includes(text)), `shown: ${text}`)
    for (const file of await filesBelow(agent.folder)) {
      const content = await readFile(file)
      for (const text of spellings) assert.ok(!content.includes(text), `${file} holds ${text}`)
    }
  }
})

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 5000
  while (performance.now() < end) {
    if (await holds()) return
    await sleep(20)
  }
  assert.fail('it was not seen in time')
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
}
