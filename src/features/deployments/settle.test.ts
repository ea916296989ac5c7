import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine, testImage } from '../../testing/engine.ts'

let world: TestEngine
let agent: TestAgent
before(async () => {
  world = testEngine()
  agent = await testAgent({ empty: true, config: 'deployments:\n  ready_timeout: 15\n' })
})
after(async () => {
  await agent.stop()
  await world.cleanup()
})

const compose = (command: string, restart = 'no') =>
  `services:\n  web:\n    image: ${testImage}\n    command: ${JSON.stringify(['sh', '-c', command])}\n    restart: "${restart}"\n    stop_signal: SIGKILL\n`

const make = async (name: string, compose_content: string, auto_start = false) => {
  const answer = await agent.request('POST /api/deployments', { body: { name, compose_content, auto_start } })
  assert.equal(answer.statusCode, 201, answer.body)
}
const detail = async (name: string) => (await agent.request(`GET /api/deployments/${name}`)).json().data
const containersOf = (project: string) =>
  world.engine.containers.list({ label: [`com.docker.compose.project=${project}`] })

describe('what crashes is not believed', { concurrency: 4 }, () => {
  for (const restart of ['no', 'always']) {
    test(`a start whose container dies at once fails, with restart: ${restart}`, async () => {
      const name = world.name(`once-${restart}`)
      await make(name, compose('echo last words; exit 1', restart))
      const answer = await agent.request(`POST /api/deployments/${name}/start`)
      assert.equal(answer.statusCode, 502, answer.body)
      const { code, details } = answer.json()
      assert.equal(code, 'DEPLOY_FAILED')
      assert.equal(details.services[0].service, 'web')
      assert.ok(details.services[0].log.includes('last words'), answer.body)
      assert.equal((await detail(name)).status, 'stopped')
      assert.deepEqual(await containersOf(name), [])
    })
  }

  test('a start whose container dies a moment later is seen as an error right afterwards', async () => {
    const name = world.name('later')
    await make(name, compose('sleep 1; exit 1'))
    const answer = await agent.request(`POST /api/deployments/${name}/start`)
    assert.equal(answer.statusCode, 200, answer.body)
    const end = performance.now() + 3000
    while ((await detail(name)).status !== 'error') {
      assert.ok(performance.now() < end, 'it was not seen in time')
      await new Promise(next => setTimeout(next, 20))
    }
  })

  test('an update whose new version dies after 300 ms is rolled back', async () => {
    const name = world.name('update')
    await make(name, compose('sleep 3600'), true)
    const answer = await agent.request(`PUT /api/deployments/${name}`, {
      body: { compose_content: compose('sleep 0.3; exit 1') },
    })
    assert.equal(answer.statusCode, 502, answer.body)
    assert.equal(answer.json().details.rolled_back, true)
    const { status, compose_content } = await detail(name)
    assert.equal(status, 'running')
    assert.equal(compose_content, compose('sleep 3600'))
  })
})
