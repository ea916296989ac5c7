import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import { system } from '../../core/permission.ts'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { type ContainerParts, containerReader } from './container.ts'

let agent: TestAgent
let world: TestEngine
before(async () => {
  world = testEngine()
  agent = await testAgent()
})
after(async () => {
  await agent.stop()
  await world.cleanup()
})

interface Shown {
  id: string
  name: string
  state: string
  status: string
  deployment: string | null
  service: string | null
}

const init = { HostConfig: { Init: true }, StopTimeout: 1 }
const listed = async (as: 'key' | 'bob' | 'vera' | 'nina' = 'key', query = '') =>
  (await agent.request(`GET /api/containers${query}`, { as })).json().data as Shown[]
const seen = async (name: string) => (await listed()).find(one => one.name === name)
const changesOf = (plan: { changes: { action: string; type: string; id: string; reason?: string }[] }) =>
  plan.changes.map(({ action, type, id, reason }) => `${action} ${type} ${id}${reason ? `: ${reason}` : ''}`)

test('a container is stopped, started, restarted and removed, each as planned and each seen at once', async () => {
  const name = world.name('life')
  const id = await world.run('life', 'sleep 3600', init)
  await eventually(async () => (await seen(name))?.state === 'running')

  const running = await agent.request(`DELETE /api/containers/${name}`)
  assert.equal(running.statusCode, 409)
  assert.equal(running.json().code, 'CONTAINER_RUNNING')
  assert.equal((await agent.request(`DELETE /api/containers/${name}?plan=true`)).json().code, 'CONTAINER_RUNNING')

  const plan = (await agent.request(`POST /api/containers/${name}/stop?plan=true`)).json().data
  assert.deepEqual(changesOf(plan), [`update container ${name}: it is stopped`])
  const stopped = await agent.request(`POST /api/plans/${plan.id}/apply`)
  assert.equal(stopped.statusCode, 200, stopped.body)
  assert.equal(stopped.json().data.state, 'exited')
  assert.equal((await world.engine.containers.inspect(id)).State.Status, 'exited')
  assert.deepEqual((await agent.request(`POST /api/containers/${name}/stop?plan=true`)).json().data.changes, [])

  const started = await agent.request(`POST /api/containers/${id.slice(0, 12)}/start`)
  assert.equal(started.statusCode, 200, started.body)
  assert.equal(started.json().data.state, 'running')
  assert.equal((await agent.request(`POST /api/containers/${name}/start`)).statusCode, 200)
  const first = (await world.engine.containers.inspect(id)).State.StartedAt
  const restarted = await agent.request(`POST /api/containers/${id}/restart`)
  assert.equal(restarted.json().data.state, 'running')
  assert.notEqual((await world.engine.containers.inspect(id)).State.StartedAt, first)

  await agent.request(`POST /api/containers/${name}/stop`)
  const removed = await agent.request(`DELETE /api/containers/${name}`)
  assert.equal(removed.statusCode, 200, removed.body)
  assert.equal(removed.json().data, null)
  assert.equal(await seen(name), undefined)
  assert.equal((await agent.request(`POST /api/containers/${name}/start`)).statusCode, 404)
})

test('a plan is stale once the container is in another state', async () => {
  const name = world.name('drift')
  const id = await world.run('drift', 'sleep 3600', init)
  await eventually(async () => (await seen(name))?.state === 'running')
  const { id: plan } = (await agent.request(`POST /api/containers/${name}/stop?plan=true`)).json().data
  await world.engine.containers.kill(id)
  await eventually(async () => (await seen(name))?.state === 'exited')
  const applied = await agent.request(`POST /api/plans/${plan}/apply`)
  assert.equal(applied.statusCode, 409)
  assert.equal(applied.json().code, 'PLAN_STALE')
})

test('a paused container is woken by start, and stopped by stop', async () => {
  const name = world.name('paused')
  const id = await world.run('paused', 'sleep 3600', init)
  await world.engine.containers.pause(id)
  await eventually(async () => (await seen(name))?.state === 'paused')
  assert.equal((await agent.request(`DELETE /api/containers/${name}`)).json().code, 'CONTAINER_RUNNING')
  assert.equal((await agent.request(`POST /api/containers/${name}/start`)).json().data.state, 'running')
  await world.engine.containers.pause(id)
  await eventually(async () => (await seen(name))?.state === 'paused')
  assert.equal((await agent.request(`POST /api/containers/${name}/stop`)).json().data.state, 'exited')
})

test('a container that cannot start answers 502 with the words of the engine, and is as it was', async () => {
  const name = world.name('broken')
  await world.engine.containers.create(name, { Image: world.image, Cmd: ['/no-such-program'] })
  await eventually(async () => (await seen(name)) !== undefined)
  const answer = await agent.request(`POST /api/containers/${name}/start`)
  assert.equal(answer.statusCode, 502, answer.body)
  assert.equal(answer.json().code, 'UPSTREAM_FAILED')
  assert.match(answer.json().error, /no-such-program/)
  assert.notEqual((await seen(name))?.state, 'running')
})

test('one that vanishes at its end is stopped with success', async () => {
  const name = world.name('vanishing')
  await world.run('vanishing', 'sleep 3600', { ...init, HostConfig: { Init: true, AutoRemove: true } })
  await eventually(async () => (await seen(name))?.state === 'running')
  const answer = await agent.request(`POST /api/containers/${name}/stop`)
  assert.equal(answer.statusCode, 200, answer.body)
  await eventually(async () => (await seen(name)) === undefined)
})

test('removing a container leaves its nameless volume', async () => {
  const name = world.name('data')
  const mounts = [{ Type: 'volume', Target: '/data' }]
  const id = await world.engine.containers.create(name, {
    Image: world.image,
    Cmd: ['true'],
    HostConfig: { Mounts: mounts },
  })
  const volume = (await world.engine.containers.inspect(id)).Mounts?.[0]?.Name as string
  await eventually(async () => (await seen(name)) !== undefined)
  assert.equal((await agent.request(`DELETE /api/containers/${name}`)).statusCode, 200)
  assert.equal((await world.engine.volumes.inspect(volume)).Name, volume)
  await world.engine.volumes.remove(volume)
})

test('`all=false` leaves out what does not run, and an unknown parameter is refused', async () => {
  const name = world.name('created')
  await world.engine.containers.create(name, { Image: world.image, Cmd: ['true'] })
  await eventually(async () => (await seen(name))?.status === 'Created')
  assert.ok(!(await listed('key', '?all=false')).some(one => one.name === name))
  assert.equal((await agent.request('GET /api/containers?al=false')).statusCode, 400)
  assert.equal((await agent.request('GET /api/containers?all=maybe')).statusCode, 400)
})

test("what belongs to somebody else's deployment does not exist, and below level write it is only looked at", async () => {
  const [mine, other] = [world.name('mine'), world.name('other')]
  const compose_content = `services:\n  web:\n    image: ${world.image}\n    command: sleep 3600\n    init: true\n    stop_grace_period: 1s\n`
  for (const name of [mine, other]) {
    const made = await agent.request('POST /api/deployments', { body: { name, compose_content, auto_start: true } })
    assert.equal(made.statusCode, 201, made.body)
  }
  await agent.request('POST /api/users/2/deployments', { body: { deployment_name: mine, access_level: 'write' } })
  await agent.request('POST /api/users/3/deployments', { body: { deployment_name: mine, access_level: 'read' } })
  const foreign = world.name('foreign')
  await world.engine.containers.create(foreign, { Image: world.image, Cmd: ['true'] })
  await eventually(async () => (await seen(foreign)) !== undefined)

  const own = (await listed('bob')).find(one => one.name === `${mine}-web-1`)
  assert.deepEqual([own?.deployment, own?.service], [mine, 'web'])
  const names = async (as: 'bob' | 'nina') =>
    (await listed(as)).map(one => one.name).filter(name => name.startsWith(world.prefix))
  assert.ok(!(await names('bob')).includes(`${other}-web-1`))
  assert.ok((await names('bob')).includes(foreign))
  assert.ok(!(await names('nina')).some(name => name.endsWith('-web-1')))

  for (const line of ['POST /start', 'POST /stop', 'POST /restart', 'DELETE ', 'GET /logs']) {
    const [method, rest] = line.split(' ')
    const hidden = await agent.request(`${method} /api/containers/${other}-web-1${rest}`, { as: 'bob' })
    assert.equal(hidden.statusCode, 404, line)
    assert.match(hidden.json().error, /There is no container/)
  }
  assert.equal((await agent.request(`POST /api/containers/${mine}-web-1/stop`, { as: 'vera' })).statusCode, 403)
  const reads = { username: world.name('rita'), password: 'long enough to pass', role: 'operator' }
  const { id } = (await agent.request('POST /api/users', { body: reads })).json().data
  await agent.request(`POST /api/users/${id}/deployments`, { body: { deployment_name: mine, access_level: 'read' } })
  const { token } = (
    await agent.request('POST /api/auth/login', {
      as: 'nobody',
      body: { username: reads.username, password: reads.password },
    })
  ).json()
  const refused = await agent.request(`POST /api/containers/${mine}-web-1/stop`, { as: { token } })
  assert.equal(refused.statusCode, 403, refused.body)
  assert.equal((await agent.request(`GET /api/containers/${mine}-web-1/logs`, { as: { token } })).statusCode, 200)

  assert.equal((await agent.request(`POST /api/containers/${mine}-web-1/stop`, { as: 'bob' })).statusCode, 200)
  assert.equal((await agent.request(`GET /api/deployments/${mine}`)).json().data.status, 'stopped')
  assert.equal((await agent.request(`DELETE /api/containers/${mine}-web-1`, { as: 'bob' })).statusCode, 200)
  for (const name of [mine, other]) await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
})

test('a container of a deployment waits for what changes the deployment, and its plans are seen by who sees that', async () => {
  const name = world.name('turns')
  const compose_content = `services:\n  web:\n    image: ${world.image}\n    command: sleep 3600\n    stop_grace_period: 2s\n`
  const made = await agent.request('POST /api/deployments', { body: { name, compose_content, auto_start: true } })
  assert.equal(made.statusCode, 201, made.body)
  const plan = (await agent.request(`POST /api/containers/${name}-web-1/stop?plan=true`)).json().data
  assert.equal((await agent.request(`GET /api/plans/${plan.id}`, { as: 'nina' })).statusCode, 404)
  assert.equal((await agent.request(`GET /api/plans/${plan.id}`, { as: 'alice' })).statusCode, 200)
  const stopping = agent.request(`POST /api/deployments/${name}/stop`)
  await sleep(300)
  const started = await agent.request(`POST /api/containers/${name}-web-1/start`)
  assert.equal((await stopping).statusCode, 200)
  assert.equal(started.statusCode, 200, started.body)
  assert.equal((await world.engine.containers.inspect(`${name}-web-1`)).State.Status, 'running')
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
})

test('logs are filtered first, then cut to their end; streams are told apart, and 0 is all', async () => {
  const name = world.name('talks')
  await world.run(
    'talks',
    'for i in $(seq 1 300); do echo "line $i"; done; sleep 0.2; echo trouble >&2; sleep 3600',
    init,
  )
  await eventually(async () => (await logs(name, 'tail=1'))[0]?.line === 'trouble')
  assert.equal((await logs(name, '')).length, 100)
  const all = await logs(name, 'tail=0')
  assert.equal(all.length, 301)
  assert.deepEqual(all.map(one => one.line).slice(0, 2), ['line 1', 'line 2'])
  assert.deepEqual({ ...all.at(-1), time: '' }, { time: '', service: name, stream: 'stderr', line: 'trouble' })
  assert.deepEqual(
    (await logs(name, 'tail=2&filter=line%2029')).map(one => one.line),
    ['line 298', 'line 299'],
  )
  const last = all.at(-1)?.time.slice(0, 23)
  assert.ok((await logs(name, `tail=0&since=${last}Z`)).length < 301)
  assert.deepEqual(await logs(name, `tail=0&since=${encodeURIComponent('2999-01-01T00:00:00Z')}`), [])
  assert.equal((await agent.request(`GET /api/containers/${name}/logs?since=yesterday`)).statusCode, 400)
  assert.equal((await agent.request('GET /api/containers/nobody/logs')).statusCode, 404)
})

test('the output of a terminal has no carriage returns and is all stdout', async () => {
  const name = world.name('tty')
  await world.run('tty', 'echo one; echo two >&2; sleep 3600', { ...init, Tty: true })
  await eventually(async () => (await logs(name, 'tail=0')).length === 2)
  assert.deepEqual(
    (await logs(name, 'tail=0')).map(({ stream, line }) => `${stream} ${line}`),
    ['stdout one', 'stdout two'],
  )
})

test('the beginning of an id that two have is refused with both', async () => {
  const entry = (id: string, name: string) => ({ id, name, compose: null }) as ContainerEntry
  const containers = new Map([entry('abcd1', 'one'), entry('abcd2', 'two')].map(one => [one.id, one]))
  const mirror = { ready: Promise.resolve(), state: 'up', containers }
  const parts = { mirror, folders: { all: async () => [] } } as unknown as ContainerParts
  const reader = containerReader(parts, { actor: system, noteFile: () => {} })
  await assert.rejects(reader.target('abcd'), {
    code: 'CONFLICT',
    details: [
      { id: 'abcd1', name: 'one' },
      { id: 'abcd2', name: 'two' },
    ],
  })
  assert.equal((await reader.target('abcd2')).name, 'two')
  await assert.rejects(reader.target('ab'), { code: 'NOT_FOUND' })
})

test('shell characters in an id are only characters', async () => {
  for (const id of ['$(touch /tmp/fairlead-marker)', '`id`', '; ls', '../x', 'a b']) {
    const answer = await agent.request(`POST /api/containers/${encodeURIComponent(id)}/start`)
    assert.equal(answer.statusCode, 404, id)
  }
})

interface Line {
  time: string
  service: string
  stream: string
  line: string
}

const logs = async (name: string, query: string): Promise<Line[]> => {
  const answer = await agent.request(`GET /api/containers/${name}/logs?${query}`)
  return answer.statusCode === 200 ? answer.json().data : []
}

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 5000
  while (performance.now() < end) {
    if (await holds()) return
    await sleep(20)
  }
  assert.fail('it was not seen in time')
}
