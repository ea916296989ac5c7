import assert from 'node:assert/strict'
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
  id: string
  tags: string[]
  containers: number
}

const seen = async (tag: string) =>
  ((await agent.request('GET /api/images')).json().data as Shown[]).find(one => one.tags.includes(tag))
const remove = (id: string, query = '') => agent.request(`DELETE /api/images/${encodeURIComponent(id)}${query}`)

/** An image of its own, so that nobody else's containers are made from it. */
async function ownImage(suffix: string): Promise<string> {
  const { engine } = world
  const id = await engine.containers.create(world.name(`for-${suffix}`), {
    Image: world.image,
    Cmd: ['true'],
    Labels: { own: suffix },
  })
  const tag = `${world.prefix}/${suffix}:1`
  const answer = await fetchEngine(`/commit?container=${id}&repo=${world.prefix}/${suffix}&tag=1`)
  assert.equal(answer, 201)
  await engine.containers.remove(id)
  await eventually(async () => (await seen(tag)) !== undefined)
  return tag
}

test('images are listed with their names and how many containers were made from them', async () => {
  const tag = await ownImage('count')
  assert.equal((await seen(tag))?.containers, 0)
  const id = await world.engine.containers.create(world.name('one'), { Image: tag, Cmd: ['true'] })
  await eventually(async () => (await seen(tag))?.containers === 1)
  await world.engine.containers.remove(id)
})

test('a name of several is only a name; with the last one the image goes', async () => {
  const tag = await ownImage('names')
  const second = `${world.prefix}/names:2`
  await world.engine.images.tag(tag, second)
  await eventually(async () => (await seen(tag))?.tags.length === 2)
  const { id } = (await seen(tag)) as Shown
  const container = await world.engine.containers.create(world.name('holder'), { Image: tag, Cmd: ['true'] })
  await eventually(async () => (await seen(tag))?.containers === 1)

  const plan = (await remove(second, '?plan=true')).json().data
  assert.deepEqual(plan.changes, [{ type: 'image', id: second, action: 'delete' }])
  assert.equal((await agent.request(`POST /api/plans/${plan.id}/apply`)).statusCode, 200)
  assert.deepEqual((await seen(tag))?.tags, [tag])

  const used = await remove(tag)
  assert.equal(used.json().code, 'IN_USE', used.body)
  assert.match(used.json().error, new RegExp(world.name('holder')))
  assert.equal((await remove(id.slice(7, 19))).json().code, 'IN_USE')
  await world.engine.containers.remove(container)
  await eventually(async () => (await seen(tag))?.containers === 0)
  await world.engine.images.tag(tag, second)
  await eventually(async () => (await seen(tag))?.tags.length === 2)
  const whole = await remove(id.slice(7, 19))
  assert.equal(whole.statusCode, 200, whole.body)
  assert.equal(await seen(tag), undefined)
  assert.equal((await remove(id)).statusCode, 404)
})

test('what runs keeps its image even by force; what is stopped gives it up only by force', async () => {
  const tag = await ownImage('force')
  const id = await world.engine.containers.create(world.name('runs'), {
    Image: tag,
    Cmd: ['sleep', '3600'],
    HostConfig: { Init: true },
  })
  await world.engine.containers.start(id)
  await eventually(async () => (await seen(tag))?.containers === 1)
  await eventually(async () => (await remove(tag, '?force=true&plan=true')).json().code === 'IN_USE')
  await world.engine.containers.kill(id)
  await eventually(async () => (await remove(tag, '?force=true&plan=true')).statusCode === 200)
  assert.equal((await remove(tag)).json().code, 'IN_USE')
  const forced = await remove(tag, '?force=true')
  assert.equal(forced.statusCode, 200, forced.body)
  assert.equal(await seen(tag), undefined)
})

test('an image that a stopped deployment refers to is in use, and others are not told whose', async () => {
  const tag = await ownImage('wanted')
  const name = world.name('dep')
  const made = await agent.request('POST /api/deployments', {
    body: { name, compose_content: `services:\n  web:\n    image: ${tag}\n` },
  })
  assert.equal(made.statusCode, 201, made.body)
  const refused = await remove(tag)
  assert.equal(refused.json().code, 'IN_USE')
  assert.match(refused.json().error, new RegExp(`deployment ${name}`))
  const nina = await agent.request(`DELETE /api/images/${encodeURIComponent(tag)}`, { as: 'nina' })
  assert.equal(nina.json().code, 'IN_USE')
  assert.doesNotMatch(nina.body, new RegExp(name))
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
  await eventually(async () => (await remove(tag)).statusCode === 200)
})

test('a name that is no image, or is at a metadata address, is refused before anything is asked', async () => {
  for (const image of [
    '$(id)',
    'a;b',
    '../x',
    'UPPER',
    'a b',
    'x:y:z',
    '169.254.169.254/latest/meta-data',
    '[fe80::1]:5000/x',
  ]) {
    const answer = await agent.request('POST /api/images/pull?plan=true', { body: { image } })
    assert.equal(answer.json().code, 'VALIDATION_FAILED', image)
    assert.equal(answer.json().details[0].path, 'image', image)
  }
  assert.equal((await remove('no-such-image')).statusCode, 404)
})

/** What the adapter has no call for. */
async function fetchEngine(path: string): Promise<number> {
  const { default: http } = await import('node:http')
  const socketPath = world.address.replace(/^unix:\/\//, '')
  return new Promise((done, failed) => {
    const request = http.request({ socketPath, method: 'POST', path: `/v1.41${path}` }, response => {
      response.resume()
      response.once('end', () => done(response.statusCode ?? 0))
    })
    request.on('error', failed)
    request.end()
  })
}

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 5000
  while (performance.now() < end) {
    if (await holds()) return
    await sleep(20)
  }
  assert.fail('it was not seen in time')
}
