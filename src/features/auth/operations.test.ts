import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { API_KEY, PASSWORD, type TestAgent, testAgent } from '../../testing/agent.ts'

let agent: TestAgent
before(async () => {
  agent = await testAgent()
})
after(() => agent.stop())

const login = (body: object, headers: Record<string, string> = {}) =>
  agent.request('POST /api/auth/login', { as: 'nobody', body, headers })

test('both forms of login answer a token and its end', async () => {
  for (const body of [
    { api_key: API_KEY },
    { username: 'alice', password: PASSWORD },
    { username: 'ALICE', password: PASSWORD },
  ]) {
    const answer = await login(body)
    assert.equal(answer.statusCode, 200)
    assert.deepEqual(Object.keys(answer.json()), ['token', 'expires_at'])
    assert.equal(answer.headers['cache-control'], 'no-store')
  }
})

test('each login is another token', async () => {
  const [one, two] = [await login({ api_key: API_KEY }), await login({ api_key: API_KEY })]
  assert.notEqual(one.json().token, two.json().token)
})

test('a login is never a job, never planned, and never answered from what was kept', async () => {
  const async = await login({ api_key: API_KEY }, { prefer: 'respond-async' })
  assert.equal(async.statusCode, 200)
  assert.ok(async.json().token)
  const [one, two] = [
    await login({ api_key: API_KEY }, { 'idempotency-key': 'same' }),
    await login({ api_key: API_KEY }, { 'idempotency-key': 'same' }),
  ]
  for (const { json } of [one, two]) assert.match(json().token, /^eyJ/)
  const planned = await agent.request('POST /api/auth/login?plan=true', { as: 'nobody', body: { api_key: API_KEY } })
  assert.equal(planned.json().code, 'VALIDATION_FAILED')
})

test('the last login of a user is noted', async t => {
  const first = await testAgent()
  await first.tokenOf('vera')
  await first.stop('keep')
  const second = await testAgent({ folder: first.folder })
  t.after(() => second.stop())
  const { last_login_at } = (await second.request('GET /api/users/3')).json().data
  assert.ok(Math.abs(Date.parse(last_login_at) - Date.now()) < 60_000)
  assert.equal((await second.request('GET /api/users/4')).json().data.last_login_at, null)
})

test('without a secret in the configuration the agent keeps one, sealed, over a restart', async t => {
  const first = await testAgent({ empty: true })
  const cleared = await first.request('PUT /api/settings', { body: { auth: { jwt_secret: null } } })
  assert.equal(cleared.statusCode, 200, cleared.body)
  const { token } = (await first.request('POST /api/auth/login', { as: 'nobody', body: { api_key: API_KEY } })).json()
  await first.stop('keep')
  const second = await testAgent({ folder: first.folder })
  t.after(() => second.stop())
  assert.equal((await second.request('GET /api/users/me', { as: { token } })).statusCode, 200)
  const kept = second.db.get<{ value: string }>("SELECT value FROM meta WHERE key = 'jwt_secret'")
  assert.match(kept?.value ?? '', /^v1:/)
})

test('many logins at once are all answered', async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => login({ username: 'bob', password: PASSWORD })))
  assert.deepEqual(new Set(answers.map(one => one.statusCode)), new Set([200]))
})
