// A canary in every secret field, in the configuration, in headers and passwords: it sings in no answer, plan, event, log
// line, error, export or document, and lies in clear in no file of the data folder.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import type { Command, Operation } from '../src/core/operation.ts'
import type { Annotated, TSchema } from '../src/core/schema.ts'
import { operations } from '../src/features/index.ts'
import { API_KEY, type Ask, PASSWORD } from '../src/testing/agent.ts'
import { callOf, standardWorlds, type World, type Worlds } from './walk.ts'

const mark = `canary${randomBytes(6).toString('hex')}`
/** What the standard world keeps secret, and what it is configured with. */
const JWT_SECRET = `${mark}-jwt-secret-long-enough`
const standing = { 'the signing secret': JWT_SECRET, 'the configured key': API_KEY, 'a password': PASSWORD }

let worlds: Worlds
let world: World
const heard: { where: string; text: string }[] = []
const logged: string[] = []
/** Made by the agent and answered once: they must not be found anywhere after that. */
const shownOnce = new Map<string, string>()

before(async () => {
  worlds = await standardWorlds({ config: `  token_ttl: 3600\nlog:\n  level: trace\n` })
  world = await worlds.open({ log: { write: line => logged.push(line) } })
  const changed = await world.request('PUT /api/settings', { body: { auth: { jwt_secret: JWT_SECRET } } })
  assert.equal(changed.statusCode, 200, changed.body)
  const { token } = (await world.request('POST /api/auth/login', { as: 'nobody', body: { api_key: API_KEY } })).json()
  shownOnce.set('a token', token)
  admin = { token }
  configured = (await world.configuration.read()).text
})
after(async () => {
  await world.stop()
  await worlds.close()
})

let admin: { token: string }
let configured: string | undefined
let count = 0
const canary = () => `${mark}-${count++}-secret`

const withSecrets = operations.filter(
  (one): one is Command => one.kind === 'command' && secretPaths(one.input).length > 0,
)

test('the fields known to be secret are found by their mark', () => {
  const found = withSecrets.map(
    one =>
      `${one.id}: ${secretPaths(one.input)
        .map(path => path.join('.'))
        .join(' ')}`,
  )
  for (const line of [
    'auth.login: api_key password',
    'users.change_password: current_password new_password',
    'users.update: password',
  ]) {
    assert.ok(found.includes(line), `${line} in\n${found.join('\n')}`)
  }
  assert.ok(found.some(line => line.startsWith('settings.update: auth.api_keys')))
})

for (const operation of withSecrets) {
  test(`${operation.id} with canaries in its secret fields`, async () => {
    const filled = () => fill(operation.input, world.exampleOf(operation)) as Record<string, unknown>
    const send = (where: string, input: object, ask: Ask = {}) => {
      const call = callOf(operation, input)
      return keep(`${operation.id} ${where}`, call.line, {
        ...call.ask,
        ...ask,
        query: { ...call.ask.query, ...ask.query },
      })
    }
    const succeeded: LightMyRequestResponse[] = []
    if (operation.plannable !== false) {
      const plan = await send('planned', filled(), { query: { plan: 'true' } })
      if (plan.statusCode === 200) {
        assert.match(plan.body, /\[redacted\]/, 'the plan shows that there is a secret')
        await keep(`${operation.id} plan`, `GET /api/plans/${plan.json().data.id}`)
        const apply = `POST /api/plans/${plan.json().data.id}/apply`
        const headers = { 'idempotency-key': 'c' }
        succeeded.push(await keep(`${operation.id} applied`, apply, { headers }))
        await keep(`${operation.id} applied again`, apply, { headers })
      }
    }
    succeeded.push(await send('as it is', world.exampleOf(operation), { as: 'alice' }))
    const twice = filled()
    const headers = { 'idempotency-key': `canary-${operation.id}` }
    succeeded.push(await send('done', twice, { headers }))
    assert.ok(
      succeeded.some(answer => answer.statusCode < 300),
      'at least one of them was carried out',
    )
    await send('replayed', twice, { headers })
    await send('as a job', { ...filled(), ...fresh(operation) }, { headers: { prefer: 'respond-async' } })
    await send('as lines', { ...filled(), ...fresh(operation) }, { headers: { accept: 'application/x-ndjson' } })
    await send('by somebody else', filled(), { as: 'vera' })
    await send('with an unknown field', { ...filled(), unknown_field: canary() })
    await send('with an unknown parameter', filled(), { query: { secret: canary() } })
    for (const [name] of secretPaths(operation.input) as string[][]) {
      for (const wrong of [[canary()], { inside: canary() }, canary().repeat(2000)])
        await send('of the wrong type', { ...filled(), [name as string]: wrong })
    }
    const { line } = callOf(operation, world.exampleOf(operation))
    await keep(`${operation.id} broken`, line, {
      payload: `{"password": "${canary()}`,
      headers: { 'content-type': 'application/json' },
    })
    await keep(`${operation.id} other media`, line, {
      payload: `password=${canary()}`,
      headers: { 'content-type': 'text/plain' },
    })
  })
}

test('canaries in headers and paths that carry credentials', async () => {
  const headers = (name: string, value: string) => ({ as: 'nobody' as const, headers: { [name]: value } })
  for (const [name, value] of [
    ['authorization', `Bearer ${canary()}`],
    ['authorization', `Basic ${canary()}`],
    ['proxy-authorization', canary()],
    ['cookie', `session=${canary()}`],
    ['x-api-key', canary()],
  ] as const) {
    await keep(`header ${name}`, 'GET /api/users/me', headers(name, value))
    await keep(`header ${name}`, 'POST /api/users', headers(name, value))
    await keep(`header ${name}`, 'GET /api/nothing', headers(name, value))
  }
  await keep('a token in the query', `GET /api/users/me?token=${canary()}`, {})
  await keep('a password in the query', `GET /api/nothing?password=${canary()}`, { as: 'nobody' })
  for (const body of [
    { api_key: canary() },
    { username: 'alice', password: canary() },
    { username: 'nobody', password: canary() },
  ]) {
    await keep('a failed login', 'POST /api/auth/login', { as: 'nobody', body })
  }
})

test('what is generated is shown once', async () => {
  await restoreConfiguration()
  const made = await world.request('POST /api/apikeys', {
    as: admin,
    body: { name: 'generated' },
    headers: { 'idempotency-key': 'g' },
  })
  shownOnce.set('a new key', made.json().key)
  await keep('the key again', 'POST /api/apikeys', { body: { name: 'generated' }, headers: { 'idempotency-key': 'g' } })
  const login = await world.request('POST /api/auth/login', { as: 'nobody', body: { api_key: made.json().key } })
  shownOnce.set('its token', login.json().token)
  await keep('the key used', 'GET /api/users/me', { as: { token: login.json().token } })
})

test('nothing is heard of any of them in all that can be read afterwards', async () => {
  for (const operation of operations) {
    if (operation.kind !== 'query' && operation.kind !== 'download') continue
    const { line, ask } = callOf(operation, world.exampleOf(operation))
    for (const as of [admin, 'bob', 'vera'] as const) await keep(`read ${operation.id}`, line, { ...ask, as })
  }
  for (const format of ['json', 'csv']) await keep(`export ${format}`, 'POST /api/audit/export', { body: { format } })
  await keep('all events', 'GET /api/audit/events?limit=1000')
  await keep('all plans', 'GET /api/plans?limit=1000')
  await keep('all jobs', 'GET /api/jobs?limit=1000')
  const secrets = Object.entries(standing)
  for (const { where, text } of heard) {
    assert.ok(!text.includes(mark), `${where}: ${around(text, mark)}`)
    for (const [name, secret] of [...secrets, ...shownOnce]) assert.ok(!text.includes(secret), `${where} tells ${name}`)
  }
  assert.ok(heard.length > 200)
})

test('nor in any line of the log at its most talkative', () => {
  assert.ok(logged.length > 200)
  for (const line of logged) {
    assert.ok(!line.includes(mark), around(line, mark))
    for (const [name, secret] of [...Object.entries(standing), ...shownOnce])
      assert.ok(!line.includes(secret), `${name}: ${line}`)
  }
})

test('nor in clear in any file of the data folder, the write-ahead log included', async () => {
  const folder = join(world.folder, 'data')
  const names = (await readdir(folder, { recursive: true, withFileTypes: true })).filter(entry => entry.isFile())
  assert.ok(names.some(entry => entry.name === 'fairlead.db-wal'))
  for (const entry of names) {
    const bytes = await readFile(join(entry.parentPath, entry.name))
    for (const [name, secret] of [['a canary', mark], ...Object.entries(standing), ...shownOnce]) {
      assert.ok(!bytes.includes(secret as string), `${entry.name} holds ${name} in clear`)
    }
  }
})

async function keep(where: string, line: string, ask: Ask = {}): Promise<LightMyRequestResponse> {
  await restoreConfiguration()
  const answer = await world.request(line, { as: admin, ...ask })
  assert.notEqual(answer.statusCode, 500, `${where}: ${answer.body}`)
  heard.push({
    where: `${where} (${line.split('?')[0]}, ${answer.statusCode})`,
    text: `${JSON.stringify(answer.headers)}\n${visible(answer)}`,
  })
  return answer
}

/** A canary written into the configuration would end the session that looks for it. */
async function restoreConfiguration(): Promise<void> {
  const { current } = world.configuration
  if (configured === undefined || (current.auth.jwt_secret === JWT_SECRET && current.auth.api_keys.includes(API_KEY)))
    return
  await world.configuration.write(configured, (await world.configuration.read()).sha256)
}

/** Who may write to a deployment sees the values of its variables: that is the one place where they are shown. */
function visible({ body, statusCode }: LightMyRequestResponse): string {
  if (statusCode >= 300 || !body.includes('"env_vars"')) return oneTime(body)
  return body.replace(/("key":"(?:[^"\\]|\\.)*","value":)"(?:[^"\\]|\\.)*"/g, '$1"…"')
}

/** A token or a key in the answer that makes it is remembered, and must be nowhere else. */
function oneTime(body: string): string {
  return body.replace(/"(token|key)":"(eyJ[\w.-]+|fl_\w{40})"/g, (_, name: string, secret: string) => {
    shownOnce.set(`${name} ${shownOnce.size}`, secret)
    return `"${name}":"…"`
  })
}

/** So that a second creation is not refused for its name before anything else happens. */
function fresh({ input }: Operation): object {
  const named = ['username', 'name'].find(field => field in input.properties && !('id' in input.properties))
  return named === undefined ? {} : { [named]: `canary-${count++}` }
}

/** Where the secrets are, as paths of field names; the items of a list and the fields of a map are `*`. */
function secretPaths(schema: TSchema): string[][] {
  const node = schema as Annotated
  if (node['x-secret']) return [[]]
  const inner = Object.entries(node.properties ?? {})
  const items = node.items ? [['*', node.items] as [string, TSchema]] : []
  const maps = Object.values(node.patternProperties ?? {}).map((value): [string, TSchema] => ['*', value])
  const open =
    typeof node.additionalProperties === 'object' ? [['*', node.additionalProperties] as [string, TSchema]] : []
  const fields = [...inner, ...items, ...maps, ...open].flatMap(([name, field]) =>
    secretPaths(field).map(path => [name, ...path]),
  )
  return [...fields, ...(node.anyOf ?? []).flatMap(secretPaths)]
}

/** The value with a canary in every secret field that it has or could have. */
function fill(schema: TSchema, value: unknown): unknown {
  const node = schema as Annotated
  if (node['x-secret']) return canary()
  const branch = node.anyOf?.find(option => secretPaths(option).length > 0)
  if (branch) return fill(branch, value)
  if (node.items)
    return secretPaths(node.items).length === 0
      ? value
      : ((value as unknown[]) ?? [undefined]).map(item => fill(node.items as TSchema, item))
  const [map] = [
    ...Object.values(node.patternProperties ?? {}),
    ...(typeof node.additionalProperties === 'object' ? [node.additionalProperties] : []),
  ]
  if (map && secretPaths(map).length > 0)
    return Object.fromEntries(Object.keys((value as object) ?? { some: '' }).map(key => [key, fill(map, undefined)]))
  if (!node.properties) return value
  const given = (value ?? {}) as Record<string, unknown>
  const secret = Object.entries(node.properties).filter(([, field]) => secretPaths(field).length > 0)
  return { ...given, ...Object.fromEntries(secret.map(([name, field]) => [name, fill(field, given[name])])) }
}

const around = (text: string, found: string) =>
  text.slice(Math.max(0, text.indexOf(found) - 200), text.indexOf(found) + 100)
