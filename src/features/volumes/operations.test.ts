import assert from 'node:assert/strict'
import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'

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
  name: string
  deployment: string | null
  in_use_by: string[]
}

const listed = async (as: 'key' | 'bob' | 'nina' = 'key') =>
  (await agent.request('GET /api/volumes', { as })).json().data as Shown[]
const seen = async (name: string, as: 'key' | 'bob' | 'nina' = 'key') =>
  (await listed(as)).find(one => one.name === name)
const create = (body: object, as: 'key' | 'nina' = 'key') => agent.request('POST /api/volumes', { as, body })

test('a volume is created with its labels and deleted by name, as planned', async () => {
  const name = world.name('plain')
  const body = { name, labels: { team: 'web; $(id)' } }
  const plan = (await agent.request('POST /api/volumes?plan=true', { body })).json().data
  assert.deepEqual(plan.changes, [
    { type: 'volume', id: name, action: 'create', after: { driver: 'local', driver_opts: [], labels: body.labels } },
  ])
  assert.equal(await seen(name), undefined)
  const made = await agent.request(`POST /api/plans/${plan.id}/apply`)
  assert.equal(made.statusCode, 201, made.body)
  assert.deepEqual((await world.engine.volumes.inspect(name)).Labels, body.labels)
  assert.deepEqual([made.json().data.in_use_by, made.json().data.deployment], [[], null])
  const again = await create({ name })
  assert.equal(again.json().code, 'ALREADY_EXISTS')
  const gone = await agent.request(`DELETE /api/volumes/${name}`)
  assert.equal(gone.statusCode, 200, gone.body)
  assert.equal(await seen(name), undefined)
  assert.equal((await agent.request(`DELETE /api/volumes/${name}`)).statusCode, 404)
})

test('a volume that a container has, running or not, is in use', async () => {
  const name = world.name('used')
  await create({ name })
  const HostConfig = { Mounts: [{ Type: 'volume', Source: name, Target: '/data' }] }
  const id = await world.engine.containers.create(world.name('user'), { Image: world.image, Cmd: ['true'], HostConfig })
  await eventually(async () => (await seen(name))?.in_use_by[0] === world.name('user'))
  const refused = await agent.request(`DELETE /api/volumes/${name}`)
  assert.equal(refused.json().code, 'IN_USE')
  assert.match(refused.json().error, new RegExp(world.name('user')))
  await world.engine.containers.remove(id)
  await eventually(async () => (await seen(name))?.in_use_by.length === 0)
  assert.equal((await agent.request(`DELETE /api/volumes/${name}`)).statusCode, 200)
})

test('only administrators bind folders of the host or choose drivers; memory is for everybody', async () => {
  const bind = { type: 'none', o: 'bind', device: '/etc' }
  const cases: [object, number][] = [
    [{ driver_opts: bind }, 403],
    [{ driver_opts: { type: 'nfs', o: 'addr=10.0.0.1', device: ':/export' } }, 403],
    [{ driver_opts: { type: 'tmpfs', device: 'tmpfs', o: 'size=1m,bind' } }, 403],
    [{ driver_opts: { type: 'tmpfs', device: '/etc', o: 'size=1m' } }, 403],
    [{ driver_opts: { mountpoint: '/etc' } }, 403],
    [{ driver: 'vieux/sshfs' }, 403],
    [{ driver_opts: { type: 'tmpfs', device: 'tmpfs', o: 'size=1m,mode=0700' } }, 201],
  ]
  for (const [index, [more, status]] of cases.entries()) {
    const answer = await create({ name: world.name(`nina-${index}`), ...more }, 'nina')
    assert.equal(answer.statusCode, status, `${JSON.stringify(more)} ${answer.body}`)
  }
  const bound = await create({ name: world.name('bound'), driver_opts: bind })
  assert.equal(bound.statusCode, 201, bound.body)
})

test('the options of a driver may hold a password and are shown nowhere', async () => {
  const secret = 'canary-of-a-share'
  const body = { name: world.name('share'), driver_opts: { type: 'cifs', o: `password=${secret}`, device: '//h/s' } }
  const planned = await agent.request('POST /api/volumes?plan=true', { body })
  assert.equal(planned.statusCode, 200, planned.body)
  assert.ok(!planned.body.includes(secret))
  assert.equal(planned.json().data.changes[0].sensitive, true)
  assert.ok(!(await agent.request('GET /api/audit/events')).body.includes(secret))
})

test("a name that is no name, a label of Compose's own and what the driver does not know are refused in words", async () => {
  const marker = join(agent.folder, 'marker')
  for (const name of [
    '',
    'a',
    '../x',
    'a/b',
    '-rf',
    'a b',
    `$(touch ${marker})`,
    `\`touch ${marker}\``,
    'a;b',
    'ä',
    'x'.repeat(200),
  ]) {
    const answer = await create({ name })
    assert.equal(answer.json().code, 'VALIDATION_FAILED', name)
  }
  await assert.rejects(access(marker))
  const labelled = await create({ name: world.name('l'), labels: { 'com.docker.compose.project': 'shop' } })
  assert.equal(labelled.json().code, 'VALIDATION_FAILED')
  const unknown = await create({ name: world.name('d'), driver_opts: { colour: 'red' } })
  assert.equal(unknown.statusCode, 502, unknown.body)
  assert.match(unknown.json().error, /colour/)
  assert.equal(await seen(world.name('d')), undefined)
  assert.equal((await create({ name: world.name('f'), lables: {} })).json().details[0].path, 'lables')
})

test('a volume of a deployment follows it: hidden from others, deleted only at level admin', async () => {
  const name = world.name('dep')
  const compose_content = `services:\n  web:\n    image: ${world.image}\n    command: 'true'\n    volumes: [data:/data]\nvolumes:\n  data: {}\n`
  const made = await agent.request('POST /api/deployments', { body: { name, compose_content } })
  assert.equal(made.statusCode, 201, made.body)
  const volume = `${name}_data`
  const taken = await create({ name: volume })
  assert.equal(taken.json().code, 'CONFLICT', taken.body)
  await world.engine.volumes.create({
    name: volume,
    labels: { 'com.docker.compose.project': name, 'com.docker.compose.volume': 'data' },
  })
  await eventually(async () => (await seen(volume))?.deployment === name)
  assert.equal(await seen(volume, 'nina'), undefined)
  assert.equal((await agent.request(`DELETE /api/volumes/${volume}`, { as: 'nina' })).statusCode, 404)
  await agent.request('POST /api/users/2/deployments', { body: { deployment_name: name, access_level: 'write' } })
  assert.equal((await seen(volume, 'bob'))?.deployment, name)
  assert.equal((await agent.request(`DELETE /api/volumes/${volume}`, { as: 'bob' })).statusCode, 403)
  await agent.request(`PUT /api/users/2/deployments/${name}`, { body: { access_level: 'admin' } })

  // Also while its file is broken.
  await writeFile(join(agent.folder, 'deployments', name, 'compose.yaml'), 'services: [')
  await eventually(async () => (await agent.request(`GET /api/deployments/${name}`)).json().data.status === 'invalid')
  assert.equal(await seen(volume, 'nina'), undefined)
  assert.equal((await agent.request(`DELETE /api/volumes/${volume}`, { as: 'bob' })).statusCode, 200)
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
})

test('a volume that a compose file only uses is in use, also when nothing of it runs', async () => {
  const [name, volume] = [world.name('ext'), world.name('precious')]
  await create({ name: volume })
  const compose_content = `services:\n  web:\n    image: ${world.image}\n    volumes: [data:/data]\nvolumes:\n  data:\n    external: true\n    name: ${volume}\n`
  const made = await agent.request('POST /api/deployments', { body: { name, compose_content } })
  assert.equal(made.statusCode, 201, made.body)
  const refused = await agent.request(`DELETE /api/volumes/${volume}`)
  assert.equal(refused.json().code, 'IN_USE', refused.body)
  assert.match(refused.json().error, new RegExp(name))
  assert.doesNotMatch((await agent.request(`DELETE /api/volumes/${volume}`, { as: 'nina' })).body, new RegExp(name))
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
  await eventually(async () => (await agent.request(`DELETE /api/volumes/${volume}`)).statusCode === 200)
})

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 5000
  while (performance.now() < end) {
    if (await holds()) return
    await sleep(20)
  }
  assert.fail('it was not seen in time')
}
