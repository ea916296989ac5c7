import assert from 'node:assert/strict'
import { mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'

const IMAGE = 'fairlead-test/busybox:1'
const service = (command: string, more = '') =>
  `services:\n  web:\n    image: ${IMAGE}\n    command: ${command}\n    init: true\n    stop_grace_period: 1s\n${more}`

let agent: TestAgent
let world: TestEngine
before(async () => {
  world = testEngine()
  agent = await testAgent({ config: 'deployments:\n  ready_timeout: 20\n' })
})
after(async () => {
  await agent.stop()
  await world.cleanup()
})

const containersOf = (project: string) =>
  world.engine.containers.list({ label: [`com.docker.compose.project=${project}`] })

test('a deployment is created, started, changed and deleted on a real engine', async () => {
  const name = world.name('life')
  const body = {
    name,
    compose_content: `# keep me\n${service('sleep 3600')}`,
    env_vars: [{ key: 'A', value: 'one two' }],
    auto_start: true,
  }
  const plan = (await agent.request('POST /api/deployments?plan=true', { body })).json()
  assert.deepEqual(
    plan.data.changes.map((one: { type: string; id: string; action: string }) => `${one.action} ${one.type} ${one.id}`),
    [
      `create file ${name}/`,
      'create file compose.yaml',
      'create file .env',
      `create network ${name}_default`,
      `create container ${name}-web-1`,
    ],
  )
  await assert.rejects(stat(join(agent.folder, 'deployments', name)))

  const created = await agent.request(`POST /api/plans/${plan.data.id}/apply`)
  assert.equal(created.statusCode, 201, created.body)
  assert.equal(created.json().data.status, 'running')
  assert.equal(created.json().data.compose_content, body.compose_content)
  assert.equal((await containersOf(name)).length, 1)

  const again = await agent.request(`POST /api/deployments/${name}/start?plan=true`)
  assert.deepEqual(again.json().data.changes, [])

  const changed = await agent.request(`PUT /api/deployments/${name}`, {
    body: { compose_content: body.compose_content.replace('3600', '3601') },
  })
  assert.equal(changed.statusCode, 200, changed.body)
  assert.equal(changed.json().data.services[0].in_sync, true)

  const deleted = await agent.request(`DELETE /api/deployments/${name}`)
  assert.equal(deleted.statusCode, 200, deleted.body)
  assert.equal((await containersOf(name)).length, 0)
  assert.equal((await agent.request(`GET /api/deployments/${name}`)).statusCode, 404)
  assert.match(await readFile(join(agent.folder, 'deployments', name, 'compose.yaml'), 'utf8'), /keep me/)

  const takenUp = await agent.request('POST /api/deployments', { body: { name } })
  assert.equal(takenUp.statusCode, 201, takenUp.body)
  assert.equal(takenUp.json().data.env_vars[0].value, 'one two')
  const gone = await agent.request(`DELETE /api/deployments/${name}?remove_files=true&remove_volumes=true`)
  assert.equal(gone.statusCode, 200, gone.body)
  await assert.rejects(stat(join(agent.folder, 'deployments', name)))
})

test('an update that does not come up puts the old version back, and unchanged containers are not touched', async () => {
  const name = world.name('roll')
  const two = (command: string) =>
    service(command, `  other:\n    image: ${IMAGE}\n    command: sleep 3600\n    init: true\n`)
  const made = await agent.request('POST /api/deployments', {
    body: { name, compose_content: two('sleep 3600'), auto_start: true },
  })
  assert.equal(made.statusCode, 201, made.body)
  const before = await containersOf(name)
  const answer = await agent.request(`PUT /api/deployments/${name}`, {
    body: { compose_content: two('sh -c "echo last words; exit 7"') },
  })
  assert.equal(answer.statusCode, 502, answer.body)
  const { code, details } = answer.json()
  assert.equal(code, 'DEPLOY_FAILED')
  assert.equal(details.rolled_back, true)
  assert.match(details.reason, /exited with code 7/)
  assert.deepEqual(details.services[0].log, ['last words'])
  const detail = (await agent.request(`GET /api/deployments/${name}`)).json().data
  assert.equal(detail.status, 'running')
  assert.equal(detail.compose_content, two('sleep 3600'))
  const after = await containersOf(name)
  const other = (list: typeof before) => list.find(one => one.Names?.[0]?.includes('other'))?.Id
  assert.equal(other(after), other(before))
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
})

test('a failed auto_start keeps the deployment and says why', async () => {
  const name = world.name('fails')
  const answer = await agent.request('POST /api/deployments', {
    body: { name, compose_content: service('sh -c "exit 3"'), auto_start: true },
  })
  assert.equal(answer.statusCode, 502, answer.body)
  assert.equal(answer.json().code, 'DEPLOY_FAILED')
  const detail = await agent.request(`GET /api/deployments/${name}`)
  assert.equal(detail.statusCode, 200)
  const events = (await agent.request(`GET /api/audit/events?resource_id=${name}`)).json().data
  assert.equal(events.length, 1)
  assert.equal(events[0].success, false)
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
})

test('an invalid compose file leaves no folder behind', async () => {
  const name = world.name('bad')
  const answer = await agent.request('POST /api/deployments', {
    body: { name, compose_content: 'services:\n  web: 7\n' },
  })
  assert.equal(answer.statusCode, 400)
  assert.equal(answer.json().code, 'COMPOSE_INVALID')
  await assert.rejects(stat(join(agent.folder, 'deployments', name)))
  const large = await agent.request('POST /api/deployments', {
    body: { name, compose_content: `#${'x'.repeat(300 * 1024)}` },
  })
  assert.equal(large.statusCode, 413)
})

test('a folder made by hand is seen within a second, a broken one is listed as invalid and hides nothing', async () => {
  const name = world.name('hand')
  const folder = join(agent.folder, 'deployments', name)
  await mkdir(folder)
  await writeFile(join(folder, 'docker-compose.yml'), service('sleep 1'))
  const listed = async () =>
    (await agent.request('GET /api/deployments')).json().find((one: { name: string }) => one.name === name)
  await eventually(async () => (await listed())?.status === 'stopped')
  await writeFile(join(folder, 'docker-compose.yml'), 'services: [')
  await eventually(async () => (await listed())?.status === 'invalid')
  assert.equal((await agent.request(`POST /api/deployments/${name}/start`)).json().code, 'COMPOSE_INVALID')
  await rm(folder, { recursive: true })
  await eventually(async () => (await listed()) === undefined)
})

test('a folder whose files cannot be read is listed with the reason', async () => {
  const name = world.name('link')
  const folder = join(agent.folder, 'deployments', name)
  await mkdir(folder)
  await symlink('/etc/passwd', join(folder, 'compose.yaml'))
  const listed = async () =>
    (await agent.request('GET /api/deployments')).json().find((one: { name: string }) => one.name === name)
  await eventually(async () => (await listed())?.status === 'invalid')
  const shown = (await agent.request(`GET /api/deployments/${name}`)).json().data
  assert.match(shown.error, /link/)
  assert.ok(!JSON.stringify(shown).includes('root:'))
  await rm(folder, { recursive: true })
})

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 1500
  while (performance.now() < end) {
    if (await holds()) return
    await new Promise(next => setTimeout(next, 30))
  }
  assert.fail('it was not seen in time')
}
