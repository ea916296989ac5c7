import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { API_KEY, type Ask, PASSWORD, type TestAgent, testAgent } from '../../testing/agent.ts'

let agent: TestAgent
before(async () => {
  agent = await testAgent()
})
after(() => agent.stop())

const request = (line: string, ask?: Ask) => agent.request(line, ask)
const GOOD = 'long enough to pass'

async function done(line: string, ask: Ask = {}, status = 200) {
  const answer = await request(line, ask)
  assert.equal(answer.statusCode, status, `${line}: ${answer.body}`)
  return answer.json().data
}

async function refused(line: string, ask: Ask, status: number, code: string) {
  const answer = await request(line, ask)
  assert.deepEqual(
    [answer.statusCode, answer.json().code],
    [status, code],
    `${line} ${JSON.stringify(ask.body)}: ${answer.body}`,
  )
  return answer.json() as { error: string; details: { path: string }[] }
}

const made = (username: string, more: object = {}) =>
  done('POST /api/users', { body: { username, password: GOOD, ...more } }, 201)
const login = (username: string, password: string) =>
  request('POST /api/auth/login', { as: 'nobody', body: { username, password } })
const tokenOf = async (username: string, password = GOOD) => ({
  token: (await login(username, password)).json().token as string,
})

suite('creating', () => {
  test('with a plan and then really', async () => {
    const body = { username: 'dora', password: GOOD, role: 'operator' }
    const planned = await done('POST /api/users?plan=true', { body })
    assert.equal((await done('GET /api/users')).length, 4)
    const applied = await request(`POST /api/plans/${planned.id}/apply`)
    assert.equal(applied.statusCode, 201, applied.body)
    assert.equal(applied.json().data.username, 'dora')
    assert.equal(applied.json().plan.status, 'applied')
    assert.equal((await login('dora', GOOD)).statusCode, 200)
  })

  test('answers the whole user but his password, a viewer unless said otherwise', async () => {
    const { id, created_at, ...user } = await made('erik')
    assert.ok(id > 4 && Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
    assert.deepEqual(user, {
      username: 'erik',
      email: '',
      role: 'viewer',
      permissions: [],
      is_active: true,
      last_login_at: null,
      deployments: [],
    })
  })

  test('a name is taken in any case, and has only letters, digits, dot, dash and underscore', async () => {
    await refused('POST /api/users', { body: { username: 'Alice', password: GOOD } }, 409, 'ALREADY_EXISTS')
    for (const username of ['', '-a', '.a', 'a b', 'a/b', 'ü', 'a\u0000', 'x'.repeat(64)]) {
      await refused('POST /api/users', { body: { username, password: GOOD } }, 400, 'VALIDATION_FAILED')
    }
    assert.equal((await made('Up.per-case_1')).username, 'Up.per-case_1')
  })

  test('a password has at least 10 characters, and is not what is shown in place of one', async () => {
    for (const password of ['nine char', '', 'x'.repeat(1025), '[redacted]']) {
      const { details } = await refused(
        'POST /api/users',
        { body: { username: 'short', password } },
        400,
        'VALIDATION_FAILED',
      )
      assert.equal(details[0]?.path, 'password')
    }
    await done('POST /api/users', { body: { username: 'ten', password: 'ten chars!' } }, 201)
  })

  test('an e-mail address is one or empty; roles and permissions are those that exist', async () => {
    for (const more of [
      { email: 'nobody' },
      { email: 'a b@c' },
      { role: 'root' },
      { permissions: ['users'] },
      { permissions: ['users:delete'] },
      { permissions: 'audit:read' },
    ]) {
      await refused('POST /api/users', { body: { username: 'odd', password: GOOD, ...more } }, 400, 'VALIDATION_FAILED')
    }
  })

  test('a list of permissions replaces those of the role, and write includes read', async () => {
    await made('lister', { role: 'operator', permissions: ['audit:write'] })
    const me = await done('GET /api/users/me', { as: await tokenOf('lister') })
    assert.deepEqual(me.permissions, ['audit:read', 'audit:write'])
    assert.equal(me.role, 'operator')
  })
})

suite('changing', () => {
  test('what is left out stays', async () => {
    const { id, ...before } = await made('merger', {
      email: 'm@example.org',
      role: 'operator',
      permissions: ['audit:read'],
    })
    await done(`PUT /api/users/${id}`, { body: {} })
    assert.deepEqual(await done(`GET /api/users/${id}`), { id, ...before })
    const changed = await done(`PUT /api/users/${id}`, { body: { email: '' } })
    assert.deepEqual(changed, { id, ...before, email: '' })
  })

  test('nothing to change is a plan without changes', async () => {
    const { changes, summary } = await done('PUT /api/users/2?plan=true', { body: { role: 'operator' } })
    assert.deepEqual([changes, summary.update], [[], 0])
  })

  test('a new name, as long as it is free', async () => {
    const { id } = await made('old-name')
    await refused(`PUT /api/users/${id}`, { body: { username: 'BOB' } }, 409, 'ALREADY_EXISTS')
    assert.equal((await done(`PUT /api/users/${id}`, { body: { username: 'Old-Name' } })).username, 'Old-Name')
    await done(`PUT /api/users/${id}`, { body: { username: 'new-name' } })
    assert.equal((await login('old-name', GOOD)).statusCode, 401)
    assert.equal((await login('new-name', GOOD)).statusCode, 200)
  })

  test('a new password counts from then on; "[redacted]" keeps the stored one', async () => {
    const { id } = await made('reset')
    await done(`PUT /api/users/${id}`, { body: { password: 'another long one' } })
    assert.equal((await login('reset', GOOD)).statusCode, 401)
    assert.equal((await login('reset', 'another long one')).statusCode, 200)
    await done(`PUT /api/users/${id}`, { body: { password: '[redacted]', email: 'r@example.org' } })
    assert.equal((await login('reset', 'another long one')).statusCode, 200)
    assert.equal((await login('reset', '[redacted]')).statusCode, 401)
  })

  test('a plan says that the password changes, and hides both', async () => {
    const { changes } = await done('PUT /api/users/4?plan=true', { body: { password: 'another long one' } })
    assert.deepEqual(changes, [
      {
        type: 'record',
        id: 'user nina',
        action: 'update',
        before: { password_hash: '[redacted]' },
        after: { password_hash: '[redacted]' },
        sensitive: true,
      },
    ])
  })

  test('to the role admin takes his list of permissions away', async () => {
    const { id } = await made('promoted', { permissions: ['audit:read'] })
    assert.deepEqual((await done(`PUT /api/users/${id}`, { body: { role: 'admin' } })).permissions, [])
    await done(`DELETE /api/users/${id}`)
  })

  test('an unknown user is 404, an impossible id 400', async () => {
    await refused('PUT /api/users/999', { body: {} }, 404, 'NOT_FOUND')
    await refused('DELETE /api/users/999', {}, 404, 'NOT_FOUND')
    for (const id of ['0', '-1', 'x', '1.5', '1e3', '99999999999999999999'])
      await refused(`GET /api/users/${id}`, {}, 400, 'VALIDATION_FAILED')
  })
})

test('deleting takes the access and the keys along, as the plan says', async () => {
  const { id } = await made('leaver', { role: 'operator' })
  await done(`POST /api/users/${id}/deployments`, { body: { deployment_name: 'shop', access_level: 'read' } }, 201)
  await request('POST /api/apikeys', { as: await tokenOf('leaver'), body: { name: 'leavers key' } })
  const { changes } = await done(`DELETE /api/users/${id}?plan=true`)
  assert.deepEqual(
    changes.map((one: { action: string; id: string }) => `${one.action} ${one.id}`),
    [`delete access of user ${id} to shop`, 'delete API key leavers key', 'delete user leaver'],
  )
  assert.equal(await done(`DELETE /api/users/${id}`), null)
  await refused(`GET /api/users/${id}`, {}, 404, 'NOT_FOUND')
  assert.doesNotMatch((await request('GET /api/apikeys')).body, /leavers key/)
  assert.doesNotMatch((await request('GET /api/deployments/shop/users')).body, /leaver/)
})

suite('oneself', () => {
  test('me is whoever calls: a user, a key, a key of the configuration', async () => {
    const bob = await done('GET /api/users/me', { as: 'bob' })
    assert.deepEqual(
      [bob.type, bob.id, bob.username, bob.role, bob.deployments],
      ['user', 2, 'bob', 'operator', [{ deployment_name: 'shop', access_level: 'write' }]],
    )
    const configured = await done('GET /api/users/me')
    assert.deepEqual([configured.type, configured.id, configured.role], ['api_key', null, 'admin'])
    assert.ok(!configured.username.includes(API_KEY))
    assert.ok(configured.permissions.includes('users:write'))
    const { id, key } = (
      await request('POST /api/apikeys', { as: 'bob', body: { name: 'bobs', role: 'viewer', deployments: ['shop'] } })
    ).json()
    const { token } = (await request('POST /api/auth/login', { as: 'nobody', body: { api_key: key } })).json()
    const made = await done('GET /api/users/me', { as: { token } })
    assert.deepEqual([made.type, made.id, made.username, made.role], ['api_key', id, 'bobs', 'viewer'])
    assert.deepEqual(made.deployments, [{ deployment_name: 'shop', access_level: 'write' }])
  })

  test('the profile of a user is his e-mail address, and nothing else', async () => {
    assert.equal(
      (await done('PUT /api/users/me', { as: 'vera', body: { email: 'v@example.org' } })).email,
      'v@example.org',
    )
    assert.equal((await done('GET /api/users/3')).email, 'v@example.org')
    for (const more of [{ role: 'admin' }, { permissions: [] }, { username: 'x' }, { is_active: true }, { id: 1 }]) {
      await refused('PUT /api/users/me', { as: 'vera', body: more }, 400, 'VALIDATION_FAILED')
    }
    await refused('PUT /api/users/me', { body: { email: '' } }, 403, 'FORBIDDEN')
  })

  test('the password is changed by who knows the present one', async () => {
    await made('changer')
    const as = await tokenOf('changer')
    const change = (current_password: string, new_password: string) => ({
      as,
      body: { current_password, new_password },
    })
    const { details } = await refused(
      'PUT /api/users/me/password',
      change('wrong', 'another long one'),
      400,
      'VALIDATION_FAILED',
    )
    assert.equal(details[0]?.path, 'current_password')
    await refused('PUT /api/users/me/password', change(GOOD, 'short'), 400, 'VALIDATION_FAILED')
    await refused('PUT /api/users/me/password', change(GOOD, '[redacted]'), 400, 'VALIDATION_FAILED')
    assert.equal((await login('changer', GOOD)).statusCode, 200)
    assert.equal(await done('PUT /api/users/me/password', change(GOOD, 'another long one')), null)
    assert.equal((await login('changer', GOOD)).statusCode, 401)
    assert.equal((await login('changer', 'another long one')).statusCode, 200)
    await refused('PUT /api/users/me/password', { body: change(PASSWORD, GOOD).body }, 403, 'FORBIDDEN')
  })
})

suite('deployments of a user', () => {
  const nina = '/api/users/4/deployments'

  test('are given, changed and taken away, in force at once', async () => {
    const nothing = await request('GET /api/deployments/shop', { as: 'nina' })
    assert.equal(nothing.statusCode, 404)
    const given = await done(`POST ${nina}`, { body: { deployment_name: 'shop', access_level: 'read' } }, 201)
    assert.deepEqual(given, { deployment_name: 'shop', access_level: 'read' })
    assert.equal((await request('GET /api/deployments/shop', { as: 'nina' })).statusCode, 200)
    await refused(`POST ${nina}`, { body: { deployment_name: 'shop', access_level: 'write' } }, 409, 'ALREADY_EXISTS')
    await done(`PUT ${nina}/shop`, { body: { access_level: 'admin' } })
    assert.deepEqual(await done(`GET ${nina}`), [{ deployment_name: 'shop', access_level: 'admin' }])
    assert.equal(await done(`DELETE ${nina}/shop`), null)
    assert.deepEqual(await done(`GET ${nina}`), [])
    assert.equal((await request('GET /api/deployments/shop', { as: 'nina' })).statusCode, 404)
  })

  test('an unknown user, deployment or assignment is 404, an unknown level 400', async () => {
    const body = { deployment_name: 'shop', access_level: 'read' }
    await refused('POST /api/users/999/deployments', { body }, 404, 'NOT_FOUND')
    await refused('GET /api/users/999/deployments', {}, 404, 'NOT_FOUND')
    await refused(`POST ${nina}`, { body: { ...body, deployment_name: 'none' } }, 404, 'NOT_FOUND')
    await refused(`PUT ${nina}/blog`, { body: { access_level: 'read' } }, 404, 'NOT_FOUND')
    await refused(`DELETE ${nina}/blog`, {}, 404, 'NOT_FOUND')
    await refused(`POST ${nina}`, { body: { ...body, access_level: 'owner' } }, 400, 'VALIDATION_FAILED')
    await refused(`POST ${nina}`, { body: { ...body, deployment_name: '../x' } }, 400, 'VALIDATION_FAILED')
  })

  test('who has level admin on a deployment gives access to it, and sees no other', async () => {
    await done('PUT /api/users/2/deployments/shop', { body: { access_level: 'admin' } })
    await done('POST /api/users/4/deployments', { body: { deployment_name: 'blog', access_level: 'read' } }, 201)
    await done(`POST ${nina}`, { as: 'bob', body: { deployment_name: 'shop', access_level: 'write' } }, 201)
    assert.deepEqual(await done(`GET ${nina}`, { as: 'bob' }), [{ deployment_name: 'shop', access_level: 'write' }])
    await refused(`PUT ${nina}/blog`, { as: 'bob', body: { access_level: 'admin' } }, 404, 'NOT_FOUND')
    await refused(`DELETE ${nina}/blog`, { as: 'bob' }, 404, 'NOT_FOUND')
    await refused('GET /api/users', { as: 'bob' }, 403, 'FORBIDDEN')
    await done(`DELETE ${nina}/shop`, { as: 'bob' })
    await done('PUT /api/users/2/deployments/shop', { body: { access_level: 'write' } })
    await refused(
      `POST ${nina}`,
      { as: 'bob', body: { deployment_name: 'shop', access_level: 'read' } },
      403,
      'FORBIDDEN',
    )
  })
})

test('two at the same instant: one name is given once, and the last administrator stays', async () => {
  const twins = await Promise.all(
    [1, 2].map(() => request('POST /api/users', { body: { username: 'twin', password: GOOD } })),
  )
  assert.deepEqual(twins.map(one => one.statusCode).sort(), [201, 409])
  const second = await made('second', { role: 'admin' })
  const both = await Promise.all(
    [1, second.id].map(id => request(`PUT /api/users/${id}`, { body: { is_active: false } })),
  )
  assert.deepEqual(both.map(one => one.statusCode).sort(), [200, 409])
  await done(`PUT /api/users/1`, { body: { is_active: true } })
})
