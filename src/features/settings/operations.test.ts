import assert from 'node:assert/strict'
import { chmod, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pino from 'pino'
import { openAgent } from '../../agent.ts'
import { loadConfig } from '../../config.ts'
import { API_KEY, type Ask, type TestAgent, testAgent } from '../../testing/agent.ts'

const COMMENTED = `# the first line
auth:
  jwt_secret: test-secret-of-this-agent-only # keep it
  api_keys:
    # of the pipeline
    - ${API_KEY}
    - fl_another89012345678901234567890123456789012

plans: { ttl_seconds: 7200 }   # two hours
log:
  level: info
`

let agent: TestAgent
let file: string
before(async () => {
  agent = await testAgent()
  file = join(agent.folder, 'config.yml')
})
after(() => agent.stop())

const request = (line: string, ask?: Ask) => agent.request(line, ask)
const text = () => readFile(file, 'utf8')
const change = (body: object, query: Record<string, string> = {}) => request('PUT /api/settings', { body, query })
const settings = async () => (await request('GET /api/settings')).json().data

/** As if somebody had written it by hand, and the agent had been told. */
async function write(content: string): Promise<void> {
  await agent.configuration.write(content, (await agent.configuration.read()).sha256)
}

async function refused(body: object, path: string, status = 400, code = 'VALIDATION_FAILED') {
  const before = await text()
  const answer = await change(body)
  assert.deepEqual([answer.statusCode, answer.json().code], [status, code], `${JSON.stringify(body)}: ${answer.body}`)
  const { details } = answer.json()
  if (path !== '')
    assert.ok(
      details.some((one: { path: string }) => one.path.startsWith(path)),
      answer.body,
    )
  assert.equal(await text(), before, 'the file is as it was')
  return answer.json() as { error: string; details: unknown }
}

test('the settings are the nested keys of the configuration, its secrets hidden', async () => {
  await write(COMMENTED)
  const shown = await settings()
  assert.deepEqual(shown.auth, {
    enabled: true,
    api_keys: ['[redacted]', '[redacted]'],
    jwt_secret: '[redacted]',
    token_ttl: 86_400,
  })
  assert.equal(shown.plans.ttl_seconds, 7200)
  assert.deepEqual(shown.restart_required, [])
  assert.doesNotMatch(JSON.stringify(shown), /fl_|test-secret/)
})

test('a change is merged, written back with the comments, and in force at once', async () => {
  await write(COMMENTED)
  const answer = await change({ plans: { ttl_seconds: 60 }, audit: { retention_days: 30 } })
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal(answer.json().data.plans.ttl_seconds, 60)
  const now = await text()
  for (const comment of ['# the first line', '# keep it', '# of the pipeline', '# two hours'])
    assert.ok(now.includes(comment), now)
  assert.match(now, /ttl_seconds: 60/)
  assert.match(now, /retention_days: 30/)
  assert.match(now, /level: info/, 'what was left out stays')
  const plan = (await request('PUT /api/users/4?plan=true', { body: { email: 'x@example.org' } })).json().data
  assert.equal(Date.parse(plan.expires_at) - Date.parse(plan.created_at), 60_000)
})

test('"[redacted]" sent back keeps what is stored, in a list item by item', async () => {
  await write(COMMENTED)
  const before = await text()
  const same = await change(await settings().then(({ restart_required: _, ...rest }) => rest))
  assert.equal(same.statusCode, 200, same.body)
  assert.equal(await text(), before, 'the whole sent back changes nothing')
  await change({ auth: { api_keys: ['[redacted]', 'a-new-key-0123456789'] } })
  assert.deepEqual(agent.configuration.current.auth.api_keys, [API_KEY, 'a-new-key-0123456789'])
  assert.match(await text(), /# of the pipeline/)
  await refused({ auth: { api_keys: ['[redacted]', '[redacted]', '[redacted]'] } }, 'auth.api_keys')
})

test('null puts a key back to its default', async () => {
  await write(COMMENTED)
  await change({ plans: { ttl_seconds: null } })
  assert.equal((await settings()).plans.ttl_seconds, 86_400)
  assert.doesNotMatch(await text(), /ttl_seconds/)
})

test('what is unknown, of the wrong type or impossible is refused by its key, and nothing is written', async () => {
  await write(COMMENTED)
  await refused({ plns: {} }, 'plns')
  await refused({ plans: { ttl: 1 } }, 'plans.ttl')
  await refused({ plans: { ttl_seconds: '60' } }, 'plans.ttl_seconds')
  await refused({ plans: { ttl_seconds: 0 } }, 'plans.ttl_seconds')
  await refused({ plans: 60 }, 'plans')
  await refused({ plans: [] }, 'plans')
  await refused({ log: { level: 'loud' } }, 'log.level')
  await refused({ auth: { enabled: 'no' } }, 'auth.enabled')
  await refused({ api: { allowed_origins: ['*'] } }, 'api.allowed_origins')
  await refused({ api: { port: 70_000 } }, 'api.port')
  await refused({ api: { domain: 'not a domain' } }, 'api.domain')
  const { error } = await refused({ api: { tls: { cert: 'only-half.pem' } } }, 'api.tls.key')
  assert.doesNotMatch(error, new RegExp(agent.folder), 'the caller is not told where the file lies')
})

test('restart_required lists what waits for a restart, until it is put back', async () => {
  await write(COMMENTED)
  const answer = await change({ api: { port: 9999, host: '127.0.0.2' }, jobs: { retention_days: 5 } })
  assert.deepEqual(answer.json().data.restart_required.toSorted(), ['api.host', 'api.port'])
  assert.deepEqual((await settings()).restart_required.toSorted(), ['api.host', 'api.port'])
  await change({ api: { port: null, host: null } })
  assert.deepEqual((await settings()).restart_required, [])
})

test('a plan shows the file with a diff in which secrets are hidden, and writes nothing', async () => {
  await write(COMMENTED)
  const body = {
    auth: { jwt_secret: 'a-brand-new-secret-of-some-length', api_keys: ['[redacted]', 'a-new-key-0123456789'] },
    plans: { ttl_seconds: 60 },
  }
  const { data } = (await change(body, { plan: 'true' })).json()
  assert.equal(await text(), COMMENTED)
  const [only, ...others] = data.changes
  assert.deepEqual([only.type, only.id, only.action, others.length], ['file', 'config.yml', 'update', 0])
  assert.match(only.diff, /^-plans: \{ ttl_seconds: 7200 \}/m)
  assert.match(only.diff, /^\+plans: \{ ttl_seconds: 60 \}/m)
  assert.doesNotMatch(JSON.stringify(data), /brand-new|a-new-key|fl_|test-secret/)
  assert.deepEqual(data.request.body.auth, { jwt_secret: '[redacted]', api_keys: ['[redacted]', '[redacted]'] })
  assert.match(JSON.stringify(only), /redacted/)
})

test('another secret is a change, although it looks the same hidden', async () => {
  await write(COMMENTED)
  const { data } = (
    await change({ auth: { jwt_secret: 'a-brand-new-secret-of-some-length' } }, { plan: 'true' })
  ).json()
  assert.equal(data.changes.length, 1)
  assert.equal(data.changes[0].sensitive, true)
})

test('the file keeps its mode', async () => {
  await write(COMMENTED)
  await chmod(file, 0o640)
  await change({ plans: { ttl_seconds: 61 } })
  assert.equal((await stat(file)).mode & 0o777, 0o640)
  await chmod(file, 0o600)
})

test('an edit by hand is neither lost nor overwritten', async () => {
  await write(COMMENTED)
  await writeFile(file, COMMENTED.replace('7200', '7300'))
  const answer = await change({ jobs: { retention_days: 6 } })
  assert.equal(answer.statusCode, 200, answer.body)
  assert.match(await text(), /ttl_seconds: 7300/)
  await writeFile(file, 'auth: [broken')
  const broken = await change({ jobs: { retention_days: 7 } })
  assert.equal(broken.statusCode, 400)
  assert.equal(await text(), 'auth: [broken')
  await writeFile(file, COMMENTED)
})

test('without its file nothing can be changed, and the answer says so', async () => {
  await write(COMMENTED)
  await rename(file, `${file}.away`)
  const answer = await change({ jobs: { retention_days: 8 } })
  assert.deepEqual([answer.statusCode, answer.json().code], [503, 'SERVICE_UNAVAILABLE'])
  assert.ok(!answer.body.includes(agent.folder))
  await rename(`${file}.away`, file)
})

test('two changes at the same instant are both made', async () => {
  await write(COMMENTED)
  const both = await Promise.all([change({ jobs: { retention_days: 11 } }), change({ audit: { retention_days: 12 } })])
  assert.deepEqual(
    both.map(one => one.statusCode),
    [200, 200],
  )
  const now = await settings()
  assert.deepEqual([now.jobs.retention_days, now.audit.retention_days], [11, 12])
})

test('settings/security changes its own part', async () => {
  await write(COMMENTED)
  const answer = await request('PUT /api/settings/security', {
    body: { retention_days: 9, auto_block: { enabled: true } },
  })
  assert.equal(answer.statusCode, 200, answer.body)
  assert.deepEqual([answer.json().data.retention_days, answer.json().data.auto_block.enabled], [9, true])
  assert.deepEqual((await settings()).security, answer.json().data)
  assert.equal((await request('PUT /api/settings/security', { body: { plans: {} } })).statusCode, 400)
  assert.equal(
    (await request('PUT /api/settings/security', { body: { thresholds: { not_found: 0 } } })).statusCode,
    400,
  )
})

test('settings are read with settings:read and changed by administrators only', async () => {
  assert.equal((await request('GET /api/settings', { as: 'bob' })).statusCode, 403)
  const body = { username: 'reader', password: 'long enough to pass', role: 'viewer', permissions: ['settings:write'] }
  await request('POST /api/users', { body })
  const { token } = (
    await request('POST /api/auth/login', {
      as: 'nobody',
      body: { username: 'reader', password: 'long enough to pass' },
    })
  ).json()
  assert.equal((await request('GET /api/settings', { as: { token } })).statusCode, 200)
  assert.equal((await request('PUT /api/settings', { as: { token }, body: {} })).statusCode, 403)
  assert.equal((await request('PUT /api/settings/security', { as: { token }, body: {} })).statusCode, 403)
})

test('log.level is in force at once', async t => {
  const lines: string[] = []
  const quiet = await testAgent({
    empty: true,
    log: { write: line => lines.push(line) },
    config: 'log:\n  level: error\n',
  })
  t.after(() => quiet.stop())
  const count = async () => {
    lines.length = 0
    await quiet.request('GET /api/health')
    return lines.length
  }
  await quiet.request('PUT /api/settings', { body: { log: { level: 'info' } } })
  assert.ok((await count()) > 0)
  await quiet.request('PUT /api/settings', { body: { log: { level: 'error' } } })
  assert.equal(await count(), 0)
})

test('what an environment variable sets is refused with 409: the file would not win over it', async t => {
  const first = await testAgent({ empty: true })
  await first.stop('keep')
  const env = { FAIRLEAD_PLANS_TTL_SECONDS: '60', FAIRLEAD_API_PORT: '0' }
  const loaded = await loadConfig({ file: join(first.folder, 'config.yml'), env, cwd: first.folder })
  const set = await openAgent({ loaded, env: { ...process.env, ...env }, log: pino({ level: 'silent' }) })
  t.after(() => set.close())
  const { token } = (
    await set.app.inject({ method: 'POST', url: '/api/auth/login', body: { api_key: API_KEY } })
  ).json()
  const put = (body: object) =>
    set.app.inject({ method: 'PUT', url: '/api/settings', headers: { authorization: `Bearer ${token}` }, body })
  const refusal = await put({ plans: { ttl_seconds: 90 }, jobs: { retention_days: 3 } })
  assert.deepEqual([refusal.statusCode, refusal.json().code], [409, 'CONFLICT'])
  assert.match(refusal.json().error, /plans\.ttl_seconds .*environment/)
  assert.equal((await put({ jobs: { retention_days: 3 } })).statusCode, 200)
  const same = await put({ plans: { ttl_seconds: 60 } })
  assert.equal(same.statusCode, 200, 'what is sent back as it is changes nothing')
  assert.equal(set.configuration.current.plans.ttl_seconds, 60)
})
