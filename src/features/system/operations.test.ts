import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { engineProxy } from '../../testing/engine-proxy.ts'

let agent: TestAgent
let world: TestEngine
const log: Record<string, unknown>[] = []
before(async () => {
  world = testEngine()
  agent = await testAgent({ log: { write: line => void log.push(JSON.parse(line)) } })
})
after(async () => {
  await agent.stop()
  await world.cleanup()
})

const health = async (of = agent) => (await of.request('GET /api/health', { as: 'nobody' })).json()

/** Asks again until it is so, for a few seconds. */
async function eventually<T>(ask: () => Promise<T>, isSo: (found: T) => boolean): Promise<T> {
  for (let tries = 0; ; tries++) {
    const found = await ask()
    if (isSo(found) || tries === 100) return found
    await sleep(50)
  }
}

test('health is flat and public, and names every part', async () => {
  const found = await eventually(health, one => one.status === 'healthy')
  assert.deepEqual(Object.keys(found), ['status', 'version', 'uptime', 'checks'])
  assert.match(found.uptime, /^\d+s$/)
  assert.deepEqual(found.checks, {
    engine: { status: 'ok' },
    store: { status: 'ok' },
    proxy: { status: 'off', message: 'No proxy is configured.' },
    disk: { status: 'ok' },
  })
})

test('a store that cannot be written degrades the health until a write succeeds', async () => {
  const body = { username: 'overflow', password: 'long enough a word', role: 'viewer' }
  // As when the file system is mounted read-only.
  agent.db.get('PRAGMA query_only = ON')
  const refused = await agent.request('POST /api/users', { body })
  assert.equal(refused.statusCode, 503, refused.body)
  const { status, checks } = await health()
  assert.equal(status, 'degraded')
  assert.equal(checks.store.status, 'failed')
  assert.match(checks.store.message, /could not be written: attempt to write a readonly database/)

  agent.db.get('PRAGMA query_only = OFF')
  assert.equal((await agent.request('POST /api/users', { body })).statusCode, 201)
  assert.equal((await health()).status, 'healthy')
})

test('stats count what the caller may see and tell of the machine', async () => {
  const name = world.name('counted')
  const compose_content =
    'services:\n  web:\n    image: fairlead-test/busybox:1\n    command: sleep 3600\n    init: true\n'
  const made = await agent.request('POST /api/deployments', { body: { name, compose_content, auto_start: true } })
  assert.equal(made.statusCode, 201, made.body)

  const all = (await agent.request('GET /api/stats')).json().data
  const own = (await agent.request('GET /api/stats', { as: 'vera' })).json().data
  assert.equal(all.deployments.total, 3)
  assert.equal(all.deployments.running, 1)
  assert.equal(all.deployments.stopped, 2)
  assert.deepEqual(
    { ...own.deployments, total: own.deployments.total },
    { ...own.deployments, total: 1, running: 0, stopped: 1 },
  )
  assert.equal(all.containers.total - own.containers.total, 1)
  assert.equal(all.containers.running - own.containers.running, 1)
  assert.equal(all.networks - own.networks, 1)
  assert.ok(all.images >= 1)
  assert.ok(all.system.memory.total > all.system.memory.available)
  assert.equal(all.system.disk.path, undefined)
  assert.equal(all.system.load.length, 3)
  assert.ok(all.agent.rss > 10_000_000)
  assert.equal(all.agent.version, (await health()).version)

  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
})

test('stats need the permission system:read', async () => {
  const body = { username: 'blind', password: 'long enough a word', role: 'viewer', permissions: ['images:read'] }
  assert.equal((await agent.request('POST /api/users', { body })).statusCode, 201)
  const login = await agent.request('POST /api/auth/login', {
    as: 'nobody',
    body: { username: body.username, password: body.password },
  })
  for (const path of ['/api/stats', '/api/system/logs?deployment=shop', '/api/system/logs/sources']) {
    assert.equal((await agent.request(`GET ${path}`, { as: { token: login.json().token } })).statusCode, 403, path)
  }
})

test('with the engine gone the health says why, and the stats what was last known', async () => {
  const proxy = await engineProxy(process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock')
  const other = await testAgent({ empty: true, config: `engine:\n  socket: ${proxy.address}\n` })
  try {
    await eventually(
      () => health(other),
      one => one.status === 'healthy',
    )
    const before = (await other.request('GET /api/stats')).json().data
    await proxy.stop()
    const { checks, status } = await eventually(
      () => health(other),
      one => one.status === 'degraded',
    )
    assert.equal(status, 'degraded')
    assert.equal(checks.engine.status, 'failed')
    assert.ok(checks.engine.message.length > 10)
    const after = await other.request('GET /api/stats')
    assert.equal(after.statusCode, 200)
    assert.ok(before.images > 0)
    assert.equal(after.json().data.images, before.images)
  } finally {
    await other.stop()
    await proxy.close()
  }
})

test('a change of log.level is in force at once, for request lines and for what a request logs itself', async () => {
  const setLevel = async (level: string) => {
    const answer = await agent.request('PUT /api/settings', { body: { log: { level } } })
    assert.equal(answer.statusCode, 200, answer.body)
    assert.deepEqual(answer.json().data.restart_required, [])
  }
  // A bad token is told only at level debug, by the logger of the request.
  const linesOfBadToken = async () => {
    const from = log.length
    await agent.request('GET /api/users/me', { as: { token: 'bad' } })
    return log.slice(from).map(line => line.msg)
  }
  await setLevel('error')
  assert.deepEqual(await linesOfBadToken(), [])
  await setLevel('debug')
  assert.deepEqual(await linesOfBadToken(), ['Invalid or expired token', 'request'])
  await setLevel('info')
  assert.deepEqual(await linesOfBadToken(), ['request'])
})

test('the line of a request names the deployment it was about', async () => {
  await agent.request('GET /api/deployments/shop', { as: 'vera' })
  const line = log.findLast(one => one.path === '/api/deployments/shop')
  assert.equal(line?.deployment, 'shop')
  assert.equal(line?.actor, 'vera')
  await agent.request('GET /api/deployments')
  assert.equal(log.findLast(one => one.path === '/api/deployments')?.deployment, undefined)
})

test('the sources show their path to administrators and their file name to others', async () => {
  const path = join(agent.folder, 'data', 'logs', 'agent.log')
  const sources = async (as: 'key' | 'vera') =>
    (await agent.request('GET /api/system/logs/sources', { as })).json().data
  assert.deepEqual(await sources('key'), [{ id: 'agent', name: 'The agent', type: 'file', path }])
  assert.deepEqual(await sources('vera'), [{ id: 'agent', name: 'The agent', type: 'file', path: 'agent.log' }])
})
