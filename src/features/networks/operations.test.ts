import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { holds, isPrivate, overlap, parseSubnet, type Subnet, subnetOf } from './subnet.ts'

let agent: TestAgent
let world: TestEngine
/** Others may test networks at the same time, on the same engine. */
const block = 16 + (process.pid % 200)
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
  subnets: string[]
  containers: string[]
  deployment: string | null
  internal: boolean
}

const listed = async (as: 'key' | 'bob' | 'nina' = 'key') =>
  (await agent.request('GET /api/networks', { as })).json().data as Shown[]
const seen = async (name: string, as: 'key' | 'bob' | 'nina' = 'key') =>
  (await listed(as)).find(one => one.name === name)
const create = (body: object, as: 'key' | 'nina' = 'key') => agent.request('POST /api/networks', { as, body })

test('a network is created with the subnet that was asked for, and deleted, as planned', async () => {
  const name = world.name('net')
  const subnet = `10.211.${block}.0/24`
  const body = { name, internal: true, subnet, gateway: `10.211.${block}.1`, labels: { team: 'web' } }
  const plan = (await agent.request('POST /api/networks?plan=true', { body })).json().data
  assert.equal(plan.changes[0].id, name)
  assert.equal(await seen(name), undefined)
  const made = await agent.request(`POST /api/plans/${plan.id}/apply`)
  assert.equal(made.statusCode, 201, made.body)
  const { subnets, internal, containers, deployment } = made.json().data
  assert.deepEqual(
    { subnets, internal, containers, deployment },
    { subnets: [subnet], internal: true, containers: [], deployment: null },
  )
  assert.equal((await create({ name })).json().code, 'ALREADY_EXISTS')
  const overlapping = await create({ name: world.name('clash'), subnet: `10.211.${block}.128/25` })
  assert.equal(overlapping.json().code, 'CONFLICT', overlapping.body)
  assert.match(overlapping.json().error, /overlaps/)
  const gone = await agent.request(`DELETE /api/networks/${made.json().data.id.slice(0, 12)}`)
  assert.equal(gone.statusCode, 200, gone.body)
  assert.equal(await seen(name), undefined)
})

test('a network with a container on it is in use, and the predefined ones stay', async () => {
  const name = world.name('busy')
  await create({ name })
  const id = await world.engine.containers.create(world.name('guest'), {
    Image: world.image,
    Cmd: ['true'],
    HostConfig: { NetworkMode: name },
  })
  await eventually(async () => (await seen(name))?.containers[0] === world.name('guest'))
  assert.equal((await agent.request(`DELETE /api/networks/${name}`)).json().code, 'IN_USE')
  await world.engine.containers.remove(id)
  await eventually(async () => (await seen(name))?.containers.length === 0)
  assert.equal((await agent.request(`DELETE /api/networks/${name}`)).statusCode, 200)
  for (const one of ['bridge', 'host', 'none']) {
    const refused = await agent.request(`DELETE /api/networks/${one}`)
    assert.equal(refused.statusCode, 409, one)
    assert.match(refused.json().error, /belongs to the engine/)
    assert.equal((await create({ name: one })).json().code, 'ALREADY_EXISTS')
  }
  assert.equal((await agent.request('DELETE /api/networks/no-such-network')).statusCode, 404)
})

test('a subnet or gateway that cannot be is refused with its field', async () => {
  const cases: [object, string][] = [
    [{ subnet: '10.1.2.3/24' }, 'subnet'],
    [{ subnet: '10.1.2.0' }, 'subnet'],
    [{ subnet: '10.1.2.0/33' }, 'subnet'],
    [{ subnet: '10.0.0.0/7' }, 'subnet'],
    [{ subnet: 'fd00::/64' }, 'subnet'],
    [{ subnet: '10.01.2.0/24' }, 'subnet'],
    [{ gateway: '10.1.2.1' }, 'gateway'],
    [{ subnet: '10.1.2.0/24', gateway: '10.1.3.1' }, 'gateway'],
    [{ subnet: '10.1.2.0/24', gateway: '10.1.2.255' }, 'gateway'],
    [{ subnet: '10.1.2.0/24', gateway: '10.1.2.0' }, 'gateway'],
    [{ labels: { 'com.docker.compose.project': 'x' } }, 'labels.com.docker.compose.project'],
  ]
  for (const [more, path] of cases) {
    const answer = await create({ name: world.name('bad'), ...more })
    assert.equal(answer.json().code, 'VALIDATION_FAILED', JSON.stringify(more))
    assert.equal(answer.json().details[0].path, path, JSON.stringify(more))
  }
  for (const name of ['a', '../x', '$(id)', 'a b', '-x'])
    assert.equal((await create({ name })).json().code, 'VALIDATION_FAILED', name)
  assert.equal((await create({ name: world.name('host'), subnet: '127.0.0.0/8' })).json().code, 'CONFLICT')
})

test('other drivers and public ranges are for administrators', async () => {
  assert.equal((await create({ name: world.name('mac'), driver: 'macvlan' }, 'nina')).statusCode, 403)
  assert.equal((await create({ name: world.name('pub'), subnet: '8.8.8.0/24' }, 'nina')).statusCode, 403)
  const unknown = await create({ name: world.name('drv'), driver: 'overlay' })
  assert.equal(unknown.statusCode, 502, unknown.body)
  assert.match(unknown.json().error, /swarm/)
  assert.equal((await create({ name: world.name('ok') }, 'nina')).statusCode, 201)
})

test('a network of a deployment follows it', async () => {
  const name = world.name('dep')
  const compose_content = `services:\n  web:\n    image: ${world.image}\n    command: sleep 3600\n    init: true\n    stop_grace_period: 1s\n`
  const made = await agent.request('POST /api/deployments', { body: { name, compose_content, auto_start: true } })
  assert.equal(made.statusCode, 201, made.body)
  const network = await seen(`${name}_default`)
  assert.deepEqual([network?.deployment, network?.containers], [name, [`${name}-web-1`]])
  assert.equal(await seen(`${name}_default`, 'nina'), undefined)
  assert.equal((await agent.request(`DELETE /api/networks/${name}_default`, { as: 'nina' })).statusCode, 404)
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
})

test('subnets are compared as numbers', () => {
  const at = (text: string) => subnetOf(text) as Subnet
  assert.equal(overlap(at('10.0.0.0/8'), at('10.200.3.4/32')), true)
  assert.equal(overlap(at('10.0.0.0/24'), at('10.0.1.0/24')), false)
  assert.equal(overlap(at('255.255.255.0/24'), at('0.0.0.0/8')), false)
  assert.deepEqual(parseSubnet('172.16.0.0/12'), { base: 2886729728, prefix: 12 })
  assert.equal(holds(at('10.0.0.0/30'), '10.0.0.2'), true)
  assert.equal(holds(at('10.0.0.0/30'), '10.0.0.3'), false)
  for (const text of ['10.0.0.0/8', '172.31.0.0/16', '192.168.1.0/24']) assert.equal(isPrivate(at(text)), true, text)
  for (const text of ['172.32.0.0/16', '11.0.0.0/8', '169.254.0.0/16', '8.0.0.0/8'])
    assert.equal(isPrivate(at(text)), false, text)
})

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 5000
  while (performance.now() < end) {
    if (await holds()) return
    await sleep(20)
  }
  assert.fail('it was not seen in time')
}
