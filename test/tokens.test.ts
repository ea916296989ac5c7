// Tokens and what stands behind them: forged ones are refused, and rights are those of this moment, never the token's.

import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import { API_KEY, type Ask, PASSWORD, type TestAgent, testAgent } from '../src/testing/agent.ts'

const SECRET = 'test-secret-of-this-agent-only'
const SECOND_KEY = 'fl_second678901234567890123456789012345678901'

let agent: TestAgent
before(async () => {
  agent = await testAgent()
})
after(() => agent.stop())

const request = (line: string, ask?: Ask) => agent.request(line, ask)
const status = async (token: string) => (await request('GET /api/users/me', { as: { token } })).statusCode

async function requireRefused(token: string, why: string): Promise<void> {
  const answer = await request('GET /api/users/me', { as: { token } })
  assert.equal(answer.statusCode, 401, why)
  assert.deepEqual(answer.json(), { error: 'Invalid or expired token' }, why)
}

async function login(body: object): Promise<string> {
  const answer = await request('POST /api/auth/login', { as: 'nobody', body })
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json().token
}

async function newKey(body: object = {}, ask: Ask = {}): Promise<{ id: number; key: string; token: string }> {
  const answer = await request('POST /api/apikeys', { ...ask, body: { name: 'made', role: 'viewer', ...body } })
  assert.equal(answer.statusCode, 201, answer.body)
  const { id, key } = answer.json()
  return { id, key, token: await login({ api_key: key }) }
}

async function newUser(username: string, more: object = {}): Promise<{ id: number; token: string }> {
  const answer = await request('POST /api/users', { body: { username, password: PASSWORD, role: 'viewer', ...more } })
  assert.equal(answer.statusCode, 201, answer.body)
  return { id: answer.json().data.id, token: await login({ username, password: PASSWORD }) }
}

const base64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const inAnHour = () => Math.floor(Date.now() / 1000) + 3600
const claims = (more: object = {}) => ({
  sub: '1',
  typ: 'user',
  iat: inAnHour() - 3600,
  exp: inAnHour(),
  jti: randomUUID(),
  ...more,
})
const signed = (header: object, payload: object, algorithm = 'sha256', secret = SECRET) => {
  const text = `${base64(header)}.${base64(payload)}`
  return `${text}.${createHmac(algorithm, secret).update(text).digest('base64url')}`
}

test('the token is a JWT, HS256, with the claims sub, typ, iat, exp and jti, valid for a day', async () => {
  for (const [body, typ] of [
    [{ api_key: API_KEY }, 'api_key'],
    [{ username: 'alice', password: PASSWORD }, 'user'],
  ] as const) {
    const answer = (await request('POST /api/auth/login', { as: 'nobody', body })).json()
    assert.deepEqual(Object.keys(answer).toSorted(), ['expires_at', 'token'])
    assert.equal(decodeProtectedHeader(answer.token).alg, 'HS256')
    const read = decodeJwt(answer.token)
    assert.deepEqual(Object.keys(read).toSorted(), ['exp', 'iat', 'jti', 'sub', 'typ'])
    assert.equal(read.typ, typ)
    assert.equal((read.exp as number) - (read.iat as number), 86_400)
    assert.equal(answer.expires_at, new Date((read.exp as number) * 1000).toISOString())
  }
})

test('a token signed as the agent signs is taken, so that the forgeries below fail for their own reason', async () => {
  assert.equal(await status(signed({ alg: 'HS256', typ: 'JWT' }, claims())), 200)
})

test('alg none is refused, with and without a signature', async () => {
  for (const alg of ['none', 'None', 'NONE', 'nOnE']) {
    const text = `${base64({ alg, typ: 'JWT' })}.${base64(claims())}`
    await requireRefused(`${text}.`, alg)
    await requireRefused(text, alg)
    await requireRefused(`${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`, alg)
  }
})

test('another algorithm is refused, even under the right secret', async () => {
  await requireRefused(signed({ alg: 'HS512', typ: 'JWT' }, claims(), 'sha512'), 'HS512')
  await requireRefused(signed({ alg: 'HS384', typ: 'JWT' }, claims(), 'sha384'), 'HS384')
  await requireRefused(signed({ alg: 'RS256', typ: 'JWT' }, claims()), 'RS256 with an HMAC')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  await requireRefused(await new SignJWT(claims()).setProtectedHeader({ alg: 'RS256' }).sign(privateKey), 'RS256')
  await requireRefused(signed({ alg: 'HS256', typ: 'JWT', crit: ['x'], x: 1 }, claims()), 'an unknown critical header')
})

test('changed claims, a changed header and a cut signature are refused', async () => {
  const good = await login({ username: 'vera', password: PASSWORD })
  const [header, payload, signature] = good.split('.') as [string, string, string]
  const altered = base64({ ...JSON.parse(Buffer.from(payload, 'base64url').toString()), sub: '1' })
  await requireRefused(`${header}.${altered}.${signature}`, 'another subject')
  await requireRefused(`${base64({ alg: 'HS256' })}.${payload}.${signature}`, 'another header')
  await requireRefused(`${header}.${payload}.${signature.slice(0, -2)}`, 'a cut signature')
  await requireRefused(`${header}.${payload}.`, 'no signature')
  await requireRefused(`${header}.${payload}.${signature}.x`, 'something behind it')
  assert.equal(await status(good), 200)
})

test('a token of another secret, without an expiry, or from the future is refused', async () => {
  await requireRefused(signed({ alg: 'HS256' }, claims(), 'sha256', 'another secret'), 'another secret')
  for (const claim of ['exp', 'iat', 'jti', 'sub']) {
    const { [claim]: _, ...rest } = claims() as Record<string, unknown>
    await requireRefused(signed({ alg: 'HS256' }, rest), `without ${claim}`)
  }
  await requireRefused(signed({ alg: 'HS256' }, claims({ nbf: inAnHour() })), 'not yet valid')
})

test('a subject or type that does not exist is refused', async () => {
  for (const more of [
    { sub: '999' },
    { sub: 'abc' },
    { sub: '-1' },
    { sub: '1e0' },
    { sub: ' 1' },
    { sub: '0x1' },
    { sub: '' },
    { typ: 'system' },
    { typ: 'admin' },
    { typ: 'api_key', sub: '99' },
    { typ: 'api_key', sub: 'config:' },
  ]) {
    await requireRefused(signed({ alg: 'HS256' }, claims(more)), JSON.stringify(more))
  }
})

test('an expired token is refused, also one that was taken a moment before', async t => {
  await requireRefused(signed({ alg: 'HS256' }, claims({ exp: inAnHour() - 3601 })), 'expired')
  const brief = signed({ alg: 'HS256' }, claims({ exp: inAnHour() - 3600 + 5 }))
  assert.equal(await status(brief), 200)
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 6000 })
  await requireRefused(brief, 'expired meanwhile')
})

test('the lifetime is auth.token_ttl, in force at once for tokens made from now on', async () => {
  await request('PUT /api/settings', { body: { auth: { token_ttl: 60 } } })
  const read = decodeJwt(await login({ api_key: API_KEY }))
  assert.equal((read.exp as number) - (read.iat as number), 60)
  await request('PUT /api/settings', { body: { auth: { token_ttl: null } } })
})

test('a revoked, a deleted and an expired key are refused at once, at the token and at login', async () => {
  const ends: [string, (id: number) => Promise<unknown>][] = [
    ['revoked', id => request(`POST /api/apikeys/${id}/revoke`)],
    ['deleted', id => request(`DELETE /api/apikeys/${id}`)],
    [
      'expired',
      async id =>
        agent.db.run('UPDATE api_keys SET expires_at = ? WHERE id = ?', new Date(Date.now() - 1).toISOString(), id),
    ],
  ]
  for (const [why, end] of ends) {
    const { id, key, token } = await newKey()
    assert.equal(await status(token), 200)
    await end(id)
    await requireRefused(token, why)
    const again = await request('POST /api/auth/login', { as: 'nobody', body: { api_key: key } })
    assert.deepEqual([again.statusCode, again.json()], [401, { error: 'Invalid API key' }], why)
  }
})

test('a key ends by itself after expires_in', async () => {
  const { id, token } = await newKey({ expires_in: 3600 })
  assert.equal(await status(token), 200)
  const { expires_at, created_at } = (await request(`GET /api/apikeys/${id}`)).json().data
  assert.equal(Date.parse(expires_at) - Date.parse(created_at), 3_600_000)
})

test('a deactivated and a deleted user are refused at once, at the token and at login, and so are their keys', async () => {
  for (const [why, end] of [
    ['deactivated', (id: number) => request(`PUT /api/users/${id}`, { body: { is_active: false } })],
    ['deleted', (id: number) => request(`DELETE /api/users/${id}`)],
  ] as const) {
    const username = `gone-${why}`
    const { id, token } = await newUser(username, { role: 'operator' })
    const key = await newKey({}, { as: { token } })
    assert.equal(await status(key.token), 200)
    assert.equal((await end(id)).statusCode, 200)
    await requireRefused(token, why)
    await requireRefused(key.token, `${why}: his key`)
    const again = await request('POST /api/auth/login', { as: 'nobody', body: { username, password: PASSWORD } })
    assert.deepEqual([again.statusCode, again.json()], [401, { error: 'Invalid username or password' }], why)
    assert.equal((await request('POST /api/auth/login', { as: 'nobody', body: { api_key: key.key } })).statusCode, 401)
  }
})

test('an id is not given out again: the token of a deleted user never becomes another one', async () => {
  const { id, token } = await newUser('first-of-id')
  await request(`DELETE /api/users/${id}`)
  const next = await newUser('next-of-id')
  assert.notEqual(next.id, id)
  await requireRefused(token, 'deleted')
})

test('rights are looked up at each request: a changed role is in force at once', async () => {
  const { id, token } = await newUser('riser')
  const usersList = async () => (await request('GET /api/users', { as: { token } })).statusCode
  assert.equal(await usersList(), 403)
  await request(`PUT /api/users/${id}`, { body: { role: 'admin' } })
  assert.equal(await usersList(), 200)
  await request(`PUT /api/users/${id}`, { body: { role: 'operator', permissions: ['audit:read'] } })
  assert.equal(await usersList(), 403)
  assert.equal((await request('GET /api/audit/events', { as: { token } })).statusCode, 200)
  assert.equal((await request('GET /api/deployments', { as: { token } })).statusCode, 403, 'the list replaces the role')
})

test('a key falls with its owner: it acts with the smaller of his rights and its own', async () => {
  const owner = await newUser('owner', { role: 'operator' })
  await request(`POST /api/users/${owner.id}/deployments`, { body: { deployment_name: 'shop', access_level: 'write' } })
  const key = await newKey({ role: 'operator' }, { as: { token: owner.token } })
  const me = async () => (await request('GET /api/users/me', { as: { token: key.token } })).json().data
  assert.ok((await me()).permissions.includes('deployments:write'))
  assert.deepEqual((await me()).deployments, [{ deployment_name: 'shop', access_level: 'write' }])
  await request(`PUT /api/users/${owner.id}/deployments/shop`, { body: { access_level: 'read' } })
  assert.deepEqual((await me()).deployments, [{ deployment_name: 'shop', access_level: 'read' }])
  await request(`PUT /api/users/${owner.id}`, { body: { role: 'viewer' } })
  assert.ok(!(await me()).permissions.includes('deployments:write'))
  assert.equal((await me()).role, 'viewer')
  await request(`DELETE /api/users/${owner.id}/deployments/shop`)
  assert.deepEqual((await me()).deployments, [])
})

test('a key taken out of auth.api_keys loses its tokens at once', async () => {
  await request('PUT /api/settings', { body: { auth: { api_keys: ['[redacted]', SECOND_KEY] } } })
  const token = await login({ api_key: SECOND_KEY })
  assert.equal(await status(token), 200)
  await request('PUT /api/settings', { body: { auth: { api_keys: ['[redacted]'] } } })
  await requireRefused(token, 'taken out')
  assert.equal((await request('POST /api/auth/login', { as: 'nobody', body: { api_key: SECOND_KEY } })).statusCode, 401)
  assert.equal((await request('GET /api/users/me')).statusCode, 200, 'the other key still holds')
})

test('another auth.jwt_secret ends all sessions, in force at once', async t => {
  const own = await testAgent()
  t.after(() => own.stop())
  const before = await own.tokenOf('key')
  assert.equal(
    (await own.request('PUT /api/settings', { body: { auth: { jwt_secret: 'another secret, long enough to pass' } } }))
      .statusCode,
    200,
  )
  assert.equal((await own.request('GET /api/users/me', { as: { token: before } })).statusCode, 401)
  const { token } = (await own.request('POST /api/auth/login', { as: 'nobody', body: { api_key: API_KEY } })).json()
  assert.equal((await own.request('GET /api/users/me', { as: { token } })).statusCode, 200)
})

test('with auth.enabled false everybody is an administrator of type system, and login still answers a token', async t => {
  const open = await testAgent({ config: '  enabled: false\n' })
  t.after(() => open.stop())
  const me = await open.request('GET /api/users/me', { as: 'nobody' })
  assert.equal(me.statusCode, 200)
  assert.deepEqual([me.json().data.type, me.json().data.role, me.json().data.id], ['system', 'admin', null])
  assert.equal((await open.request('GET /api/users/me', { as: { token: 'nonsense' } })).statusCode, 200)
  assert.deepEqual((await open.request('GET /api/auth/status', { as: 'nobody' })).json(), { enabled: false })
  const { token } = (await open.request('POST /api/auth/login', { as: 'nobody', body: { api_key: API_KEY } })).json()
  assert.equal(decodeProtectedHeader(token).alg, 'HS256')
  const made = await open.request('POST /api/apikeys', { as: 'nobody', body: { name: 'anybody' } })
  const { data } = (await open.request(`GET /api/apikeys/${made.json().id}`, { as: 'nobody' })).json()
  assert.equal(data.owner, 'system')
})

test('exactly one form of login is taken', async () => {
  const wrong = [
    {},
    { api_key: API_KEY, username: 'alice', password: PASSWORD },
    { username: 'alice' },
    { password: PASSWORD },
    { api_key: API_KEY, password: 'x' },
    { api_key: '' },
  ]
  for (const body of wrong) {
    const answer = await request('POST /api/auth/login', { as: 'nobody', body })
    assert.deepEqual([answer.statusCode, answer.json().code], [400, 'VALIDATION_FAILED'], JSON.stringify(body))
  }
})

test('a key that only resembles a configured one is refused, whatever its length', async () => {
  const alike = [
    API_KEY.slice(0, -1),
    `${API_KEY}x`,
    API_KEY.toUpperCase(),
    ` ${API_KEY}`,
    `${API_KEY.slice(0, -1)}\u0000`,
    `${API_KEY}\u0000`,
  ]
  for (const api_key of alike) {
    const answer = await request('POST /api/auth/login', { as: 'nobody', body: { api_key } })
    assert.deepEqual([answer.statusCode, answer.json()], [401, { error: 'Invalid API key' }], JSON.stringify(api_key))
  }
})

test('the time of a wrong key does not tell how much of it was right, nor that of an unknown name that it is unknown', async () => {
  const source = await readFile(new URL('../src/features/auth/identity.ts', import.meta.url), 'utf8')
  assert.match(
    source,
    /timingSafeEqual\(digest\(known\), given\)/,
    'configured keys are compared as digests, in constant time',
  )
  const timed = async (body: object) => {
    const times: number[] = []
    for (let count = 0; count < 7; count++) {
      const began = performance.now()
      await request('POST /api/auth/login', { as: 'nobody', body })
      times.push(performance.now() - began)
    }
    return times.sort((a, b) => a - b)[3] as number
  }
  const [known, unknown] = [
    await timed({ username: 'alice', password: 'wrong' }),
    await timed({ username: 'nobody-here', password: 'wrong' }),
  ]
  // Without the password computed for an unknown name too, this ratio is far below a tenth.
  assert.ok(unknown / known > 0.3, `unknown ${unknown} ms, known ${known} ms`)
})

test('at rest there are argon2id hashes of passwords and hashes of keys, nothing else of either', async () => {
  const { key } = await newKey({ name: 'at rest' })
  const hashes = agent.db.all<{ password_hash: string }>('SELECT password_hash FROM users')
  for (const { password_hash } of hashes)
    assert.match(password_hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w-]{22}\$[\w-]{43}$/)
  assert.equal(new Set(hashes.map(one => one.password_hash)).size, hashes.length, 'each with a salt of its own')
  agent.db.run('PRAGMA wal_checkpoint(PASSIVE)')
  for (const file of ['fairlead.db', 'fairlead.db-wal']) {
    const bytes = await readFile(join(agent.folder, 'data', file)).catch(() => Buffer.alloc(0))
    for (const secret of [key, PASSWORD, API_KEY, SECRET])
      assert.ok(!bytes.includes(secret), `${file} holds a secret in clear`)
  }
})

test('validate tells until when the token holds', async () => {
  const token = await agent.tokenOf('bob')
  const answer = await request('GET /api/auth/validate', { as: { token } })
  assert.deepEqual(answer.json(), {
    valid: true,
    expires_at: new Date((decodeJwt(token).exp as number) * 1000).toISOString(),
  })
  assert.equal((await request('GET /api/auth/validate', { as: { token: 'x' } })).statusCode, 401)
})
