// Who may do what: every operation with its example, for every kind of caller, against the checked-in table matrix.csv.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { WebSocket } from 'ws'
import type { Operation } from '../src/core/operation.ts'
import { operations } from '../src/features/index.ts'
import { type Ask, type Name, PASSWORD, type TestAgent } from '../src/testing/agent.ts'
import { callOf, standardWorlds, type World, type Worlds } from './walk.ts'

/**
 * The callers, in the order of the columns:
 * key, a key of the configuration; alice, an administrator; bob, operator with level write on shop; nina, operator without a
 * deployment; vera, viewer with level read on shop; adam, operator with level admin on shop; carl, with the permissions
 * audit:read and plans:read only, and level write on shop; bound, an admin key of alice's bound to shop; small, a viewer key
 * of bob's; nobody, without a token.
 */
const callers = ['key', 'alice', 'bob', 'nina', 'vera', 'adam', 'carl', 'bound', 'small', 'nobody'] as const
type Caller = (typeof callers)[number]

/** What is done for good, because it cannot be planned. */
const forGood = ['plans.apply', 'plans.discard']
const DEPLOYMENTS = ['shop', 'blog']

let worlds: Worlds
let world: World
let port: number
const tokens = new Map<Caller, string>()
before(async () => {
  worlds = await standardWorlds({ prepare: addCallers })
  world = await worlds.open({ for: operations })
  await world.app.listen({ host: '127.0.0.1', port: 0 })
  port = (world.app.server.address() as { port: number }).port
})
after(async () => {
  await untouched?.stop()
  await world.stop()
  await worlds.close()
})

test('every operation answers every caller as the table says', async () => {
  const [head, ...lines] = readFileSync(new URL('./matrix.csv', import.meta.url), 'utf8')
    .trim()
    .split('\n')
  assert.equal(head, ['operation', 'deployment', ...callers].join(','))
  const expected = new Map(lines.map(line => [line.split(',', 2).join(','), line]))
  const measured = new Map<string, string>()
  for (const { operation, deployment } of rows()) {
    const cells: string[] = []
    for (const caller of callers) cells.push(await outcome(operation, deployment, caller))
    const row = `${operation.id},${deployment ?? ''}`
    measured.set(row, `${row},${cells.join(',')}`)
  }
  const wrong = [...new Set([...expected.keys(), ...measured.keys()])]
    .filter(row => expected.get(row) !== measured.get(row))
    .map(
      row =>
        `  table:    ${expected.get(row) ?? '(no such line)'}\n  measured: ${measured.get(row) ?? '(no such operation)'}`,
    )
  assert.equal(wrong.length, 0, `${head}\n${wrong.join('\n')}`)
})

test('a key cannot make a key with more than its own', async () => {
  const by = (caller: Caller, body: object) =>
    status('POST /api/apikeys', { as: as(caller), body: { name: 'more', ...body } })
  assert.equal(await by('bob', { role: 'admin' }), 403, 'another role')
  assert.equal(await by('bob', { role: 'viewer', permissions: ['users:write'] }), 403, 'a permission he lacks')
  assert.equal(await by('bob', { role: 'viewer', deployments: ['blog'] }), 404, 'a deployment he does not see')
  assert.equal(await by('bob', { role: 'operator', deployments: ['shop'] }), 201)
  assert.equal(await by('bound', { role: 'admin', deployments: ['shop'] }), 403, 'admin of all')
  assert.equal(await by('bound', { role: 'operator' }), 403, 'no list would be all of its owner')
  assert.equal(await by('bound', { role: 'operator', deployments: [] }), 403, 'an empty list is no list')
  assert.equal(await by('bound', { role: 'operator', deployments: ['blog'] }), 404, 'a deployment it is not bound to')
  assert.equal(await by('bound', { role: 'operator', deployments: ['shop'] }), 201)
  assert.equal(await by('small', { role: 'viewer' }), 403, 'it may only look at keys')
  assert.equal(await by('key', { role: 'admin', permissions: ['users:read'] }), 400, 'role admin with permissions')
})

test('a key made by a bound key is bound as well, and its rights end with its maker', async () => {
  const made = await world.request('POST /api/apikeys', {
    as: as('bound'),
    body: { name: 'child', role: 'operator', deployments: ['shop'] },
  })
  const { token } = (
    await world.request('POST /api/auth/login', { as: 'nobody', body: { api_key: made.json().key } })
  ).json()
  assert.deepEqual((await world.request('GET /api/users/me', { as: { token } })).json().data.deployments, [
    { deployment_name: 'shop', access_level: 'admin' },
  ])
  assert.equal(
    await status('POST /api/apikeys', { as: { token }, body: { name: 'grandchild', role: 'operator' } }),
    403,
  )
})

test('an admin key bound to deployments reaches no user, no setting and no other deployment', async () => {
  const attempts: [string, Ask][] = [
    ['POST /api/users', { body: { username: 'mine', password: PASSWORD, role: 'admin' } }],
    ['POST /api/users', { body: { username: 'mine', password: PASSWORD, role: 'viewer' } }],
    ['PUT /api/users/1', { body: { password: 'taken over, long enough' } }],
    ['PUT /api/users/2', { body: { password: 'taken over, long enough' } }],
    ['PUT /api/users/4', { body: { role: 'admin' } }],
    ['DELETE /api/users/4', {}],
    ['PUT /api/settings', { body: { auth: { enabled: false } } }],
    ['PUT /api/settings', { body: { auth: { api_keys: ['mine-mine-mine-mine-mine'] } } }],
    ['POST /api/deployments', { body: { name: 'mine', compose_content: 'services: {}' } }],
    ['POST /api/audit/cleanup', { body: { older_than: 0 } }],
  ]
  for (const [line, ask] of attempts)
    assert.equal(await status(line, { ...ask, as: as('bound') }), 403, `${line} ${JSON.stringify(ask.body)}`)
  assert.equal(
    await status('POST /api/users/4/deployments', {
      as: as('bound'),
      body: { deployment_name: 'blog', access_level: 'read' },
    }),
    404,
  )
})

test('an admin key bound to deployments is no administrator to the compose policy', async () => {
  const { data } = (await world.request('GET /api/deployments/shop')).json()
  const compose_content = `${data.compose_content}    privileged: true\n`
  const put = (caller: Caller) =>
    world.request('PUT /api/deployments/shop?plan=true', { as: as(caller), body: { compose_content } })
  assert.equal((await put('bound')).json().code, 'COMPOSE_INVALID')
  assert.equal((await put('bob')).json().code, 'COMPOSE_INVALID')
  assert.equal((await put('alice')).statusCode, 200)
})

test('nobody grants what he does not have himself', async () => {
  assert.equal(await status('PUT /api/users/me', { as: 'vera', body: { role: 'admin' } }), 400, 'a profile has no role')
  assert.equal(await status('POST /api/users', { as: 'bob', body: { username: 'x', password: PASSWORD } }), 403)
  const level = (access_level: string, caller: Caller) =>
    status('POST /api/users/4/deployments?plan=true', {
      as: as(caller),
      body: { deployment_name: 'shop', access_level },
    })
  assert.equal(await level('read', 'bob'), 403, 'level write does not give access away')
  assert.equal(await level('admin', 'adam'), 200, 'level admin does')
  assert.equal(
    await status('PUT /api/users/5/deployments/shop?plan=true', { as: 'bob', body: { access_level: 'admin' } }),
    403,
  )
})

test('role admin with permissions is refused, when a user is made and when he is changed', async () => {
  const both = { role: 'admin', permissions: ['audit:read'] }
  assert.equal(await status('POST /api/users', { body: { username: 'both', password: PASSWORD, ...both } }), 400)
  assert.equal(await status('PUT /api/users/4', { body: both }), 400)
  assert.equal(await status('PUT /api/users/1', { body: { permissions: ['audit:read'] } }), 400)
})

test('the last active administrator can be neither removed, demoted nor deactivated', async () => {
  assert.equal(await status('DELETE /api/users/1', {}), 409)
  assert.equal(await status('PUT /api/users/1', { body: { role: 'operator' } }), 409)
  assert.equal(await status('PUT /api/users/1', { body: { is_active: false } }), 409)
  assert.equal(
    await status('PUT /api/users/1?plan=true', { body: { is_active: false } }),
    409,
    'a plan refuses the same',
  )
  const second = (
    await world.request('POST /api/users', { body: { username: 'second', password: PASSWORD, role: 'admin' } })
  ).json().data
  assert.equal(await status('PUT /api/users/1?plan=true', { body: { role: 'operator' } }), 200)
  assert.equal(await status(`PUT /api/users/${second.id}`, { body: { is_active: false } }), 200)
  assert.equal(await status('PUT /api/users/1', { body: { role: 'operator' } }), 409, 'an inactive one does not count')
})

test("a plan and a job of somebody else's key are not seen, and a plan of a deployment follows the deployment", async () => {
  const plan = async (line: string, ask: Ask) => (await world.request(line, ask)).json().data.id as string
  const keyPlan = await plan('POST /api/apikeys?plan=true', { as: 'bob', body: { name: 'secret plans' } })
  assert.equal(await status(`GET /api/plans/${keyPlan}`, { as: 'bob' }), 200)
  for (const other of ['nina', 'vera', 'adam', 'carl', 'bound'] as const) {
    assert.equal(await status(`GET /api/plans/${keyPlan}`, { as: as(other) }), 404, other)
  }
  assert.equal(await status(`GET /api/plans/${keyPlan}`, { as: 'alice' }), 200)

  const shopPlan = await plan('POST /api/deployments/shop/start?plan=true', { as: 'bob' })
  assert.equal(await status(`GET /api/plans/${shopPlan}`, { as: 'vera' }), 200)
  assert.equal(await status(`GET /api/plans/${shopPlan}`, { as: 'nina' }), 404)
  assert.equal(await status(`POST /api/plans/${shopPlan}/apply`, { as: 'vera' }), 403, 'who may look may not apply')
  const ids = ((await world.request('GET /api/plans', { as: 'nina' })).json().data as { id: string }[]).map(
    one => one.id,
  )
  assert.ok(!ids.includes(shopPlan) && !ids.includes(keyPlan))

  const newPlan = await plan('POST /api/deployments?plan=true', { body: { name: 'hidden', compose_content: COMPOSE } })
  assert.equal(
    await status(`GET /api/plans/${newPlan}`, { as: 'bob' }),
    404,
    'a deployment that is not there yet is nobody’s',
  )

  const job = (
    await world.request('POST /api/apikeys', {
      as: 'bob',
      body: { name: 'by job' },
      headers: { prefer: 'respond-async' },
    })
  ).json()
  assert.equal(await status(`GET /api/jobs/${job.job_id}`, { as: 'bob' }), 200)
  assert.equal(await status(`GET /api/jobs/${job.job_id}`, { as: 'nina' }), 404)
  assert.equal(await status(`POST /api/jobs/${job.job_id}/cancel`, { as: 'nina' }), 404)
})

const COMPOSE = 'services:\n  web:\n    image: fairlead-test/busybox:1\n'

async function addCallers(model: TestAgent): Promise<void> {
  const make = async (line: string, ask: Ask) => {
    const answer = await model.request(line, ask)
    assert.equal(answer.statusCode, 201, answer.body)
    return answer.json()
  }
  const person = { password: PASSWORD, role: 'operator' }
  await make('POST /api/users', { body: { ...person, username: 'adam' } })
  await make('POST /api/users', { body: { ...person, username: 'carl', permissions: ['audit:read', 'plans:read'] } })
  await make('POST /api/users/5/deployments', { body: { deployment_name: 'shop', access_level: 'admin' } })
  await make('POST /api/users/6/deployments', { body: { deployment_name: 'shop', access_level: 'write' } })
  const bound = await make('POST /api/apikeys', {
    as: 'alice',
    body: { name: 'bound', role: 'admin', deployments: ['shop'] },
  })
  const small = await make('POST /api/apikeys', { as: 'bob', body: { name: 'small', role: 'viewer' } })
  const login = async (body: object) =>
    (await model.request('POST /api/auth/login', { as: 'nobody', body })).json().token as string
  for (const name of ['key', 'alice', 'bob', 'nina', 'vera'] as Name[])
    tokens.set(name as Caller, await model.tokenOf(name))
  for (const username of ['adam', 'carl'] as const) tokens.set(username, await login({ username, password: PASSWORD }))
  tokens.set('bound', await login({ api_key: bound.key }))
  tokens.set('small', await login({ api_key: small.key }))
}

const as = (caller: Caller): NonNullable<Ask['as']> =>
  caller === 'nobody' ? caller : { token: tokens.get(caller) as string }
const status = async (line: string, ask: Ask) => (await world.request(line, ask)).statusCode

/** An operation on deployments has a line for a deployment that is the caller's and one for a foreign one. */
function rows(): { operation: Operation; deployment: string | undefined }[] {
  return operations.flatMap((operation): { operation: Operation; deployment: string | undefined }[] =>
    operation.scope
      ? DEPLOYMENTS.map(deployment => ({ operation, deployment }))
      : [{ operation, deployment: undefined }],
  )
}

async function outcome(operation: Operation, deployment: string | undefined, caller: Caller): Promise<string> {
  const input = withDeployment(operation, exampleOf(operation), deployment)
  if (operation.kind === 'follow') return followed(operation, input, caller)
  const { line, ask } = callOf(operation, input)
  if (forGood.includes(operation.id)) return doneForGood(line, ask, caller)
  const plan = operation.kind === 'command' && operation.plannable !== false ? { plan: 'true' } : {}
  const answer = await world.request(line, { ...ask, query: { ...ask.query, ...plan }, as: as(caller) })
  return answer.statusCode < 300 ? 'ok' : String(answer.statusCode)
}

/** In a world that nobody has changed yet. */
let untouched: World | undefined
async function doneForGood(line: string, ask: Ask, caller: Caller): Promise<string> {
  untouched ??= await worlds.open()
  const { statusCode } = await untouched.request(line, { ...ask, as: as(caller) })
  if (statusCode >= 300) return String(statusCode)
  await untouched.stop()
  untouched = undefined
  return 'ok'
}

/** A compose file with a project name of its own is for administrators, and nothing is started here. */
const exampleOf = (operation: Operation) =>
  operation.id === 'deployments.create' ? operation.example : world.exampleOf(operation)

function withDeployment(operation: Operation, example: object, deployment: string | undefined): object {
  const named = operation.scope?.(example as never)[0]?.deployment
  return Object.fromEntries(
    Object.entries(example).map(([field, value]) => [field, value === named && deployment ? deployment : value]),
  )
}

async function followed(operation: Operation, input: object, caller: Caller): Promise<string> {
  const { line, ask } = callOf(operation, input)
  const url = `ws://127.0.0.1:${port}${line.split(' ')[1]}?${new URLSearchParams(ask.query)}`
  const socket = new WebSocket(url)
  socket.on('open', () => socket.send(tokens.get(caller) ?? 'none'))
  const [first] = await once(socket, 'message')
  const closed = once(socket, 'close')
  if (JSON.parse(String(first)).type !== 'error') {
    socket.terminate()
    return 'ok'
  }
  const [code] = await closed
  return String(code - 4000)
}
