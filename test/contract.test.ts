// The HTTP surface against the contract: every status, every error, the headers of every answer, and what comes first.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { type Code, catalogue, Failure } from '../src/core/failure.ts'
import { A_PLAN, type Ask, PASSWORD } from '../src/testing/agent.ts'
import { failing, gate, type ProbeAgent, probeAgent } from '../src/testing/probe.ts'

let agent: ProbeAgent
const lines: { reqId?: string; msg?: string; err?: { stack?: string } }[] = []
before(async () => {
  agent = await probeAgent({
    log: { write: line => lines.push(JSON.parse(line)) },
    config: 'api:\n  max_body_bytes: 4096\n',
  })
})
after(() => agent.stop())

const request = (line: string, ask?: Ask) => agent.request(line, ask)
const probing = (name: string, ask: Ask = {}) => request(`POST /api/probe/${name}/run`, { body: { steps: [] }, ...ask })

async function refused(
  line: string,
  ask: Ask,
  status: number,
  code: string,
): Promise<{ error: string; code: string; details: unknown }> {
  const answer = await request(line, ask)
  assert.equal(answer.statusCode, status, `${line}: ${answer.body}`)
  const body = answer.json()
  assert.equal(body.code, code, answer.body)
  assert.ok(body.error.length > 10)
  return body
}

const userCount = () => agent.db.get<{ n: number }>('SELECT count(*) AS n FROM users')?.n
const eve = { username: 'eve', password: 'long enough to pass' }

test('a read is 200, a record made is 201, and both say data and message', async () => {
  const read = await request('GET /api/users/1')
  assert.equal(read.statusCode, 200)
  assert.deepEqual(Object.keys(read.json()), ['data', 'message'])
  const made = await request('POST /api/users', { body: { ...eve, username: 'made' } })
  assert.equal(made.statusCode, 201)
  const removed = await request(`DELETE /api/users/${made.json().data.id}`)
  assert.equal(removed.statusCode, 200)
  assert.equal(removed.json().data, null)
})

test('a list that grows says its total, limit and offset beside the data', async () => {
  const { data, total, limit, offset, message } = (await request('GET /api/audit/events?limit=2&offset=1')).json()
  assert.equal(data.length, 2)
  assert.deepEqual([limit, offset, typeof total, typeof message], [2, 1, 'number', 'string'])
})

test('the answers that the specification calls flat are flat', async () => {
  assert.deepEqual((await request('GET /api/auth/status', { as: 'nobody' })).json(), { enabled: true })
  assert.ok((await request('GET /api/health', { as: 'nobody' })).json().version)
  assert.deepEqual(Object.keys((await request('GET /api/auth/validate')).json()), ['valid', 'expires_at'])
  const key = await request('POST /api/apikeys', { body: { name: 'flat' } })
  assert.deepEqual(Object.keys(key.json()).toSorted(), ['created_at', 'id', 'key', 'name'])
})

test('400 INVALID_JSON says where, and quotes nothing of the body', async () => {
  const { error } = await refused(
    'POST /api/users',
    { payload: '{"password": "hunter2-hunter2', headers: { 'content-type': 'application/json' } },
    400,
    'INVALID_JSON',
  )
  assert.doesNotMatch(error, /hunter2/)
})

test('400 VALIDATION_FAILED names every field that is missing or wrong', async () => {
  const { details, error } = await refused(
    'POST /api/users',
    { body: { username: '!', role: 'king' } },
    400,
    'VALIDATION_FAILED',
  )
  const named = details as { path: string; message: string }[]
  assert.deepEqual(named.map(one => one.path).toSorted(), ['password', 'role', 'username'])
  for (const { message } of named) assert.ok(message.length > 3)
  assert.match(error, /password/)
})

test('a body that is no object is refused', async () => {
  for (const payload of ['[]', '"text"', '1', 'true']) {
    await refused(
      'POST /api/users',
      { payload, headers: { 'content-type': 'application/json' } },
      400,
      'VALIDATION_FAILED',
    )
  }
  await refused(
    'POST /api/users',
    { payload: 'null', headers: { 'content-type': 'application/json' } },
    400,
    'VALIDATION_FAILED',
  )
})

test('an unknown field in a body is refused with its name, also deep inside', async () => {
  const { details } = await refused('POST /api/users', { body: { ...eve, admin: true } }, 400, 'VALIDATION_FAILED')
  assert.deepEqual(details, [{ path: 'admin', message: 'is not known' }])
  const deep = await refused('PUT /api/settings', { body: { plans: { tll: 1 } } }, 400, 'VALIDATION_FAILED')
  assert.equal((deep.details as { path: string }[])[0]?.path, 'plans.tll')
  const proto = await refused(
    'PUT /api/settings',
    { payload: '{"plans": {"__proto__": {"ttl_seconds": 1}}}', headers: { 'content-type': 'application/json' } },
    400,
    'VALIDATION_FAILED',
  )
  assert.match(proto.error, /__proto__/)
})

test('an unknown query parameter is refused with its name: ?plna=true never executes', async () => {
  const before = userCount()
  const { details } = await refused('POST /api/users?plna=true', { body: eve }, 400, 'VALIDATION_FAILED')
  assert.deepEqual(details, [{ path: 'plna', message: 'is not known' }])
  await refused('GET /api/users?nmae=x', {}, 400, 'VALIDATION_FAILED')
  await refused('DELETE /api/users/4?forse=true', {}, 400, 'VALIDATION_FAILED')
  assert.equal(userCount(), before)
})

test('a boolean that is neither true nor false is refused, in the query and in the body', async () => {
  const before = userCount()
  for (const plan of ['yes', '1', '', 'TRUE', 'true,true']) {
    await refused('POST /api/users', { body: eve, query: { plan } }, 400, 'VALIDATION_FAILED')
  }
  await refused('POST /api/users?plan=true&plan=false', { body: eve }, 400, 'VALIDATION_FAILED')
  await refused('GET /api/audit/events?success=maybe', {}, 400, 'VALIDATION_FAILED')
  await refused('PUT /api/users/4', { body: { is_active: 'false' } }, 400, 'VALIDATION_FAILED')
  assert.equal(userCount(), before)
})

test('plan=true is refused where nothing could be planned', async () => {
  const noPlan = [
    'GET /api/users', 'GET /api/health', 'POST /api/auth/login', `POST /api/plans/${A_PLAN}/apply`, `DELETE /api/plans/${A_PLAN}`,
    'POST /api/audit/export',
  ] // biome-ignore format: a table of requests
  for (const line of noPlan) {
    const body = line.startsWith('POST /api/auth') ? { api_key: agent.apiKey } : undefined
    const { details } = await refused(line, { query: { plan: 'true' }, body }, 400, 'VALIDATION_FAILED')
    assert.equal((details as { path: string }[])[0]?.path, 'plan', line)
  }
})

test('limit is 1 to 1000 and offset at least 0', async () => {
  for (const list of ['/api/audit/events', '/api/plans', '/api/jobs']) {
    for (const query of [
      'limit=0',
      'limit=1001',
      'limit=-1',
      'limit=1.5',
      'limit=ten',
      'limit=',
      'limit=1e3',
      'offset=-1',
      'offset=x',
      'limit=1&limit=2',
    ]) {
      await refused(`GET ${list}?${query}`, {}, 400, 'VALIDATION_FAILED')
    }
    for (const query of ['limit=1', 'limit=1000', 'offset=0', 'offset=99999']) {
      assert.equal((await request(`GET ${list}?${query}`)).statusCode, 200, `${list}?${query}`)
    }
    assert.equal((await request(`GET ${list}`)).json().limit, 50)
  }
})

test('the 401 answers are the three texts of the specification and the one of the user form, and carry only error', async () => {
  const cases: [string, Ask, string][] = [
    ['POST /api/auth/login', { as: 'nobody', body: { api_key: 'wrong' } }, 'Invalid API key'],
    [
      'POST /api/auth/login',
      { as: 'nobody', body: { username: 'alice', password: 'wrong' } },
      'Invalid username or password',
    ],
    [
      'POST /api/auth/login',
      { as: 'nobody', body: { username: 'nobody', password: PASSWORD } },
      'Invalid username or password',
    ],
    ['GET /api/users/me', { as: 'nobody' }, 'Authorization header required'],
    [
      'GET /api/users/me',
      { as: 'nobody', headers: { authorization: 'Basic YWxpY2U6eA==' } },
      'Authorization header required',
    ],
    ['GET /api/users/me', { as: 'nobody', headers: { authorization: 'Bearer' } }, 'Authorization header required'],
    [
      'GET /api/users/me',
      { as: 'nobody', headers: { authorization: await agent.tokenOf('key') } },
      'Authorization header required',
    ],
    ['GET /api/users/me', { as: { token: 'not.a.token' } }, 'Invalid or expired token'],
  ]
  for (const [line, ask, error] of cases) {
    const answer = await request(line, ask)
    assert.equal(answer.statusCode, 401, line)
    assert.deepEqual(answer.json(), { error })
  }
})

test('403 FORBIDDEN for who is known but may not', async () => {
  const { error } = await refused('GET /api/users', { as: 'vera' }, 403, 'FORBIDDEN')
  assert.match(error, /vera/)
  await refused('GET /api/audit/events', { as: 'bob' }, 403, 'FORBIDDEN')
})

test('404 for an unknown record and for an unknown path, the latter also without a token', async () => {
  await refused('GET /api/users/999', {}, 404, 'NOT_FOUND')
  await refused('GET /api/plans/none', {}, 404, 'NOT_FOUND')
  await refused('GET /api/nothing/here', {}, 404, 'NOT_FOUND')
  await refused('GET /api/nothing/here', { as: 'nobody' }, 404, 'NOT_FOUND')
  await refused(
    'POST /api/nothing',
    { as: 'nobody', payload: '{', headers: { 'content-type': 'application/json' } },
    404,
    'NOT_FOUND',
  )
  await refused('GET /elsewhere', { as: 'nobody' }, 404, 'NOT_FOUND')
  await refused('GET /api/users/', { as: 'nobody' }, 404, 'NOT_FOUND')
})

test('405 with Allow for another method on a known path, before any token or body is looked at', async () => {
  const cases: [string, string][] = [
    ['DELETE /api/users', 'GET, POST, HEAD'],
    ['POST /api/users/1', 'GET, PUT, DELETE, HEAD'],
    ['PATCH /api/settings', 'GET, PUT, HEAD'],
    ['GET /api/auth/login', 'POST'],
    ['HEAD /api/auth/login', 'POST'],
    ['OPTIONS /api/users', 'GET, POST, HEAD'],
    ['GET /api/audit/cleanup', 'POST, DELETE'],
    ['PROPFIND /api/users', 'GET, POST, HEAD'],
    ['PROPFIND /api/users/me', 'GET, PUT, HEAD'],
  ]
  for (const [line, allow] of cases) {
    const answer = await request(line, { as: 'nobody', payload: line.startsWith('P') ? 'not json' : undefined } as Ask)
    assert.equal(answer.statusCode, 405, line)
    const listed = (text: string | undefined) => text?.split(', ').toSorted()
    assert.deepEqual(listed(answer.headers.allow as string), listed(allow), line)
    if (!line.startsWith('HEAD')) assert.equal(answer.json().code, 'METHOD_NOT_ALLOWED')
  }
})

test('a missing token comes before everything about the request but its path and method', async () => {
  const json = { 'content-type': 'application/json' }
  const cases: [string, Ask][] = [
    ['POST /api/users', { payload: '{', headers: json }],
    ['POST /api/users', { payload: 'x'.repeat(5000), headers: json }],
    ['POST /api/users', { payload: 'x', headers: { 'content-type': 'text/plain' } }],
    ['POST /api/users?plna=true', { body: {} }],
    ['GET /api/users/999', {}],
    ['GET /api/users/not-a-number', {}],
    ['GET /api/audit/events?limit=0', {}],
  ]
  for (const [line, ask] of cases) assert.equal((await request(line, { ...ask, as: 'nobody' })).statusCode, 401, line)
})

test('permission comes before validation, so that who may not use something learns nothing about it', async () => {
  await refused('POST /api/users', { as: 'vera', body: { nonsense: 1 } }, 403, 'FORBIDDEN')
  await refused('GET /api/users/999', { as: 'vera' }, 403, 'FORBIDDEN')
})

test('409 ALREADY_EXISTS, CONFLICT and the two of plans', async () => {
  await refused('POST /api/users', { body: { ...eve, username: 'ALICE' } }, 409, 'ALREADY_EXISTS')
  await refused('DELETE /api/users/1', {}, 409, 'CONFLICT')
  const plan = (await request('PUT /api/users/4?plan=true', { body: { email: 'n@example.org' } })).json().data
  assert.equal((await request(`POST /api/plans/${plan.id}/apply`)).statusCode, 200)
  await refused(`POST /api/plans/${plan.id}/apply`, {}, 409, 'PLAN_NOT_APPLICABLE')
  const stale = (await request('PUT /api/users/4?plan=true', { body: { email: 'm@example.org' } })).json().data
  await request('PUT /api/users/4', { body: { email: 'o@example.org' } })
  const { details } = await refused(`POST /api/plans/${stale.id}/apply`, {}, 409, 'PLAN_STALE')
  assert.match(JSON.stringify(details), /user nina/)
})

test('410 PLAN_EXPIRED once its time is over, now and ever', async () => {
  const { id } = (await request('PUT /api/users/4?plan=true', { body: { email: 'late@example.org' } })).json().data
  agent.db.run('UPDATE plans SET created_at = ? WHERE id = ?', new Date(Date.now() - 25 * 3_600_000).toISOString(), id)
  await refused(`POST /api/plans/${id}/apply`, {}, 410, 'PLAN_EXPIRED')
  assert.equal((await request(`GET /api/plans/${id}`)).json().data.status, 'expired')
  await refused(`POST /api/plans/${id}/apply`, {}, 410, 'PLAN_EXPIRED')
})

test('412 PRECONDITION_FAILED when If-Match names another version', async () => {
  const etag = (await request('GET /api/users/4')).headers.etag as string
  assert.equal(
    (await request('PUT /api/users/4', { body: { email: 'p@example.org' }, headers: { 'if-match': etag } })).statusCode,
    200,
  )
  const body = { email: 'q@example.org' }
  await refused('PUT /api/users/4', { body, headers: { 'if-match': etag } }, 412, 'PRECONDITION_FAILED')
  await refused('PUT /api/users/4?plan=true', { body, headers: { 'if-match': etag } }, 412, 'PRECONDITION_FAILED')
  await refused('DELETE /api/users/4', { headers: { 'if-match': '"other"' } }, 412, 'PRECONDITION_FAILED')
  await refused('DELETE /api/users/999', { headers: { 'if-match': '"other"' } }, 404, 'NOT_FOUND')
  assert.equal((await request('PUT /api/users/4', { body, headers: { 'if-match': '*' } })).statusCode, 200)
  const now = (await request('GET /api/users/4')).headers.etag as string
  const several = { 'if-match': `"other", W/${now}` }
  assert.equal((await request('PUT /api/users/4', { body: { email: '' }, headers: several })).statusCode, 200)
})

test('a login or the use of a key does not change the version that If-Match compares', async () => {
  const user = (await request('GET /api/users/4')).headers.etag as string
  await request('POST /api/auth/login', { as: 'nobody', body: { username: 'nina', password: PASSWORD } })
  const { id, key } = (await request('POST /api/apikeys', { body: { name: 'used' } })).json()
  const version = (await request(`GET /api/apikeys/${id}`)).headers.etag as string
  const { token } = (await request('POST /api/auth/login', { as: 'nobody', body: { api_key: key } })).json()
  await request('GET /api/users/me', { as: { token } })
  agent.db.run('UPDATE api_keys SET last_used_at = ? WHERE id = ?', new Date().toISOString(), id)
  agent.db.run('UPDATE users SET last_login_at = ? WHERE id = 4', new Date().toISOString())
  assert.equal((await request(`DELETE /api/apikeys/${id}`, { headers: { 'if-match': version } })).statusCode, 200)
  assert.equal((await request('PUT /api/users/4', { body: {}, headers: { 'if-match': user } })).statusCode, 200)
})

test('413 for a body over api.max_body_bytes, 415 for one that is not JSON', async () => {
  const json = { 'content-type': 'application/json' }
  await refused(
    'POST /api/users',
    { payload: `{"username":"${'x'.repeat(4100)}"}`, headers: json },
    413,
    'PAYLOAD_TOO_LARGE',
  )
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/xml',
    'nonsense',
    'application/jsonx',
  ]) {
    await refused(
      'POST /api/users',
      { payload: 'a=b', headers: { 'content-type': type } },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    )
  }
  await refused('POST /api/users', { payload: 'a=b', headers: {} }, 415, 'UNSUPPORTED_MEDIA_TYPE')
  for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON']) {
    const body = { payload: '{}', headers: { 'content-type': type } }
    assert.equal((await request('POST /api/apikeys', body)).json().code, 'VALIDATION_FAILED', type)
  }
})

test('426 for a plain request to a websocket', async () => {
  const answer = await request('GET /api/probe/shop/follow')
  assert.equal(answer.statusCode, 426)
  assert.equal(answer.headers.upgrade, 'websocket')
  assert.equal(answer.json().code, 'UPGRADE_REQUIRED')
})

test('500 for a defect of ours: no stack, no path, and the cause in the log under the request id', async () => {
  agent.probe.at.set('broken:decide', () => {
    throw new Error('cannot read /var/lib/fairlead/secret-place')
  })
  const answer = await probing('broken')
  assert.equal(answer.statusCode, 500)
  assert.deepEqual(Object.keys(answer.json()), ['error', 'code'])
  assert.equal(answer.json().code, 'INTERNAL')
  assert.doesNotMatch(answer.body, /\/var|secret-place|\.ts|at /)
  const logged = lines.filter(line => line.reqId === answer.headers['x-request-id'])
  assert.ok(
    logged.some(line => line.err?.stack?.includes('secret-place')),
    'the cause is logged',
  )
})

test('every code of the catalogue comes with the status that the contract gives it', async () => {
  const statuses: Record<Code, number> = {
    INVALID_JSON: 400, VALIDATION_FAILED: 400, COMPOSE_INVALID: 400, UNAUTHENTICATED: 401, FORBIDDEN: 403, NOT_FOUND: 404,
    METHOD_NOT_ALLOWED: 405, ALREADY_EXISTS: 409, CONFLICT: 409, BUSY: 409, CONTAINER_RUNNING: 409, IN_USE: 409, PLAN_STALE: 409,
    PLAN_NOT_APPLICABLE: 409, PLAN_EXPIRED: 410, PRECONDITION_FAILED: 412, PAYLOAD_TOO_LARGE: 413, UNSUPPORTED_MEDIA_TYPE: 415,
    UPGRADE_REQUIRED: 426, INTERNAL: 500, DEPLOY_FAILED: 502, UPSTREAM_FAILED: 502, ENGINE_UNAVAILABLE: 503,
    SERVICE_UNAVAILABLE: 503, TIMEOUT: 504,
  } // biome-ignore format: a table
  assert.deepEqual(Object.keys(catalogue).toSorted(), Object.keys(statuses).toSorted())
  for (const [code, status] of Object.entries(statuses)) {
    agent.probe.at.set('coded:decide', failing(code as Code, 'It is so.'))
    const answer = await probing('coded')
    assert.equal(answer.statusCode, status, code)
    assert.deepEqual(answer.json(), code === 'UNAUTHENTICATED' ? { error: 'It is so.' } : { error: 'It is so.', code })
  }
  agent.probe.at.delete('coded:decide')
})

test('the cause of a failure is never sent', async () => {
  agent.probe.at.set('caused:decide', () => {
    throw new Failure('UPSTREAM_FAILED', 'The registry refused.', { registry: 'r' }, new Error('password=hunter2'))
  })
  const answer = await probing('caused')
  assert.deepEqual(answer.json(), {
    error: 'The registry refused.',
    code: 'UPSTREAM_FAILED',
    details: { registry: 'r' },
  })
})

const everyKindOfAnswer: [string, Ask, number][] = [
  ['GET /api/users', {}, 200],
  ['GET /api/health', { as: 'nobody' }, 200],
  ['HEAD /api/users', {}, 200],
  ['POST /api/audit/export', { body: {} }, 200],
  ['GET /api/docs', { as: 'nobody' }, 200],
  ['GET /api/users', { as: 'nobody' }, 401],
  ['GET /api/users', { as: 'vera' }, 403],
  ['GET /api/none', {}, 404],
  ['DELETE /api/users', {}, 405],
  ['POST /api/users', { payload: 'x' }, 415],
  ['POST /api/users', { body: {} }, 400],
  ['GET /api/users/%zz', {}, 400],
  [`GET /api/users/${'1'.repeat(600)}`, {}, 400],
]

test('every answer has hardened headers and a request id of its own', async () => {
  const ids = new Set<string>()
  for (const [line, ask, status] of everyKindOfAnswer) {
    const answer = await request(line, ask)
    assert.equal(answer.statusCode, status, `${line}: ${answer.body}`)
    const { headers } = answer
    assert.equal(headers['x-content-type-options'], 'nosniff', line)
    assert.equal(headers['x-frame-options'], 'DENY', line)
    assert.equal(headers['referrer-policy'], 'no-referrer', line)
    assert.match(String(headers['content-security-policy']), /default-src .*frame-ancestors 'none'/, line)
    assert.equal(headers['cross-origin-resource-policy'], 'same-origin', line)
    assert.match(String(headers['cache-control']), /no-store|no-cache/, line)
    assert.equal(headers.server, undefined)
    assert.equal(headers['x-powered-by'], undefined)
    assert.equal(headers['strict-transport-security'], undefined, 'only over HTTPS')
    assert.ok(headers['x-request-id'], line)
    ids.add(String(headers['x-request-id']))
  }
  assert.equal(ids.size, everyKindOfAnswer.length)
})

test('a request id that the caller sends is not taken over', async () => {
  const { headers } = await request('GET /api/users', { headers: { 'x-request-id': 'mine', 'request-id': 'mine' } })
  assert.notEqual(headers['x-request-id'], 'mine')
})

test('the request id is on the log line and on the audit event', async () => {
  const { headers } = await request('PUT /api/users/4', { body: { email: 'id@example.org' } })
  const id = headers['x-request-id']
  assert.ok(lines.some(line => line.reqId === id && line.msg === 'request'))
  const { data } = (await request('GET /api/audit/events?action=user.update&limit=1')).json()
  assert.equal(data[0].request_id, id)
})

test('lists and details carry an ETag and answer 304 to If-None-Match', async () => {
  for (const line of [
    'GET /api/users',
    'GET /api/users/1',
    'GET /api/apikeys',
    'GET /api/settings',
    'GET /api/plans',
    `GET /api/plans/${A_PLAN}`,
  ]) {
    const first = await request(line)
    const etag = first.headers.etag as string
    assert.match(etag, /^"[\w.-]+"$/, line)
    for (const header of [etag, `"other", ${etag}`, `W/${etag}`, '*']) {
      const again = await request(line, { headers: { 'if-none-match': header } })
      assert.equal(again.statusCode, 304, `${line} ${header}`)
      assert.equal(again.body, '')
      assert.equal(again.headers.etag, etag)
    }
    assert.equal((await request(line, { headers: { 'if-none-match': '"other"' } })).statusCode, 200)
  }
})

test('the ETag changes with the record', async () => {
  const before = (await request('GET /api/users/4')).headers.etag
  await request('PUT /api/users/4', { body: { email: 'changed@example.org' } })
  assert.notEqual((await request('GET /api/users/4')).headers.etag, before)
})

test('HEAD is GET without the body', async () => {
  const [get, head] = [await request('GET /api/users'), await request('HEAD /api/users')]
  assert.equal(head.statusCode, 200)
  assert.equal(head.body, '')
  assert.equal(head.headers.etag, get.headers.etag)
  assert.equal(head.headers['content-length'], get.headers['content-length'])
  assert.equal((await request('HEAD /api/users', { as: 'nobody' })).statusCode, 401)
  assert.equal((await request('HEAD /api/users/999')).statusCode, 404)
})

const keyed = (key: string) => ({ 'idempotency-key': key })
const comparable = (answer: LightMyRequestResponse) => [answer.statusCode, answer.json()]

test('the same Idempotency-Key and request return the first answer and do nothing again', async () => {
  const ask = { body: { ...eve, username: 'once' }, headers: keyed('k1') }
  const first = await request('POST /api/users', ask)
  assert.equal(first.statusCode, 201)
  const count = userCount()
  assert.deepEqual(comparable(await request('POST /api/users', ask)), comparable(first))
  assert.equal(userCount(), count)
})

test('a refusal is a first answer too', async () => {
  const ask = { body: { email: 'x@example.org' }, headers: keyed('k2') }
  await refused('PUT /api/users/900', ask, 404, 'NOT_FOUND')
  assert.equal((await request('PUT /api/users/900', ask)).statusCode, 404)
})

test('another request under the same key is 409 CONFLICT; another caller, method or path is another key', async () => {
  const body = { name: 'idem' }
  assert.equal((await request('POST /api/apikeys', { body, headers: keyed('k3') })).statusCode, 201)
  await refused('POST /api/apikeys', { body: { name: 'other' }, headers: keyed('k3') }, 409, 'CONFLICT')
  await refused('POST /api/apikeys?plan=true', { body, headers: keyed('k3') }, 409, 'CONFLICT')
  const bobs = await request('POST /api/apikeys', { as: 'bob', body: { name: 'bobs' }, headers: keyed('k3') })
  assert.equal(bobs.statusCode, 201)
  assert.equal((await request('PUT /api/users/4', { body: { email: '' }, headers: keyed('k3') })).statusCode, 200)
})

test('a secret that was shown once is not shown again', async () => {
  const ask = { body: { name: 'secret' }, headers: keyed('k4') }
  const first = (await request('POST /api/apikeys', ask)).json()
  assert.match(first.key, /^fl_[A-Za-z0-9]{40}$/)
  assert.deepEqual((await request('POST /api/apikeys', ask)).json(), { ...first, key: '[redacted]' })

  const plan = (await request('POST /api/apikeys?plan=true', { body: { name: 'planned secret' } })).json().data
  const applied = (await request(`POST /api/plans/${plan.id}/apply`, { headers: keyed('k5') })).json()
  assert.match(applied.key, /^fl_[A-Za-z0-9]{40}$/)
  const again = await request(`POST /api/plans/${plan.id}/apply`, { headers: keyed('k5') })
  assert.equal(again.statusCode, 201)
  assert.equal(again.json().key, '[redacted]')
})

test('a twin still in flight is 409 BUSY', async () => {
  const held = gate()
  agent.probe.at.set('twin:decide', held.hold)
  const first = probing('twin', { headers: keyed('k6') })
  await held.reached
  assert.equal((await probing('twin', { headers: keyed('k6') })).json().code, 'BUSY')
  held.open()
  assert.equal((await first).statusCode, 200)
  assert.equal((await probing('twin', { headers: keyed('k6') })).statusCode, 200)
  assert.equal(agent.probe.reached.filter(point => point === 'twin:decide').length, 1)
})

test('a 5xx is not kept', async () => {
  agent.probe.at.set('again:decide', failing('UPSTREAM_FAILED'))
  assert.equal((await probing('again', { headers: keyed('k7') })).statusCode, 502)
  agent.probe.at.delete('again:decide')
  assert.equal((await probing('again', { headers: keyed('k7') })).statusCode, 200)
})

test('a job started under a key is the same job ever after', async () => {
  const ask = { headers: { ...keyed('k8'), prefer: 'respond-async' } }
  const first = (await probing('job', ask)).json()
  while ((await request(`GET /api/jobs/${first.job_id}`)).json().data.status !== 'completed')
    await new Promise(setImmediate)
  const again = await probing('job', ask)
  assert.deepEqual([again.statusCode, again.json()], [201, first])
})

test('Prefer: respond-async answers 201 with a job at once, and refuses at once what it would refuse', async () => {
  const held = gate()
  agent.probe.at.set('later:reply', held.hold)
  const answer = await probing('later', { headers: { prefer: 'respond-async' } })
  assert.equal(answer.statusCode, 201)
  assert.deepEqual(Object.keys(answer.json()), ['job_id', 'message'])
  held.open()
  await refused(
    'POST /api/users',
    { body: { ...eve, username: 'alice' }, headers: { prefer: 'respond-async' } },
    409,
    'ALREADY_EXISTS',
  )
})

test('Accept: application/x-ndjson streams the steps, the last line being the result', async () => {
  const steps = [{ do: 'write', file: 'a', text: 'x' }]
  const answer = await probing('lines', { body: { steps }, headers: { accept: 'application/x-ndjson' } })
  assert.match(String(answer.headers['content-type']), /^application\/x-ndjson/)
  assert.equal(answer.headers['x-content-type-options'], 'nosniff')
  const told = answer.body
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.equal(told[0].type, 'step')
  assert.equal(told.at(-1).type, 'result')
  assert.equal(told.at(-1).status, 200)
  assert.equal(told.at(-1).body.data.name, 'lines')
})

test('ndjson that fails in the middle says so in its last line, and a success without steps is one line', async () => {
  agent.probe.at.set('b:half', failing('UPSTREAM_FAILED', 'It broke in the middle.'))
  const headers = { accept: 'application/x-ndjson' }
  const failed = await probing('lines', { body: { steps: [{ do: 'write', file: 'b', text: 'xy' }] }, headers })
  const last = JSON.parse(failed.body.trim().split('\n').at(-1) as string)
  assert.deepEqual([last.type, last.status, last.body.code], ['result', 502, 'UPSTREAM_FAILED'])
  const short = await request('PUT /api/users/4', { body: {}, headers })
  const only = short.body
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.deepEqual(
    only.map(line => [line.type, line.status]),
    [['result', 200]],
  )
  await refused('POST /api/users', { body: { ...eve, username: 'alice' }, headers }, 409, 'ALREADY_EXISTS')
})

test('CORS is off by default: an origin gets no permission, and a preflight is 405', async () => {
  const origin = { origin: 'https://console.example.com' }
  const answer = await request('GET /api/users', { headers: origin })
  assert.equal(answer.headers['access-control-allow-origin'], undefined)
  const preflight = await request('OPTIONS /api/users', {
    as: 'nobody',
    headers: { ...origin, 'access-control-request-method': 'GET' },
  })
  assert.equal(preflight.statusCode, 405)
})

test('CORS, when on, serves the listed origins only, in force without a restart', async () => {
  const origin = 'https://console.example.com'
  const on = await request('PUT /api/settings', { body: { api: { enable_cors: true, allowed_origins: [origin] } } })
  assert.equal(on.statusCode, 200, on.body)
  const listed = await request('GET /api/users', { headers: { origin } })
  assert.equal(listed.headers['access-control-allow-origin'], origin)
  assert.equal(listed.headers['access-control-expose-headers'], 'ETag, X-Request-Id, Content-Disposition')
  assert.match(String(listed.headers.vary), /origin/i)
  assert.equal(listed.headers['access-control-allow-credentials'], undefined)
  const refusedOne = await request('GET /api/users', { as: 'nobody', headers: { origin } })
  assert.equal(refusedOne.headers['access-control-allow-origin'], origin, 'a script may read why it was refused')
  for (const other of ['https://evil.example.com', 'null', `${origin}.evil.com`, 'http://console.example.com']) {
    const { headers } = await request('GET /api/users', { headers: { origin: other } })
    assert.equal(headers['access-control-allow-origin'], undefined, other)
    assert.match(String(headers.vary), /origin/i)
  }
  assert.match(String((await request('GET /api/users')).headers.vary), /origin/i, 'a cache tells origins apart')

  const preflight = {
    origin,
    'access-control-request-method': 'PUT',
    'access-control-request-headers': 'authorization',
  }
  const asked = await request('OPTIONS /api/users/1', { as: 'nobody', headers: preflight })
  assert.equal(asked.statusCode, 200)
  assert.match(String(asked.headers['access-control-allow-methods']), /PUT/)
  assert.match(String(asked.headers['access-control-allow-headers']), /Authorization.*Idempotency-Key/)
  const evil = { ...preflight, origin: 'https://evil.example.com' }
  assert.equal(
    (await request('OPTIONS /api/users/1', { as: 'nobody', headers: evil })).headers['access-control-allow-origin'],
    undefined,
  )

  const star = await refused(
    'PUT /api/settings',
    { body: { api: { allowed_origins: ['*'] } } },
    400,
    'VALIDATION_FAILED',
  )
  assert.match(star.error, /origin/)
})
