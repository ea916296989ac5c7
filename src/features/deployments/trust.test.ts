import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine, testImage } from '../../testing/engine.ts'

let agent: TestAgent
let world: TestEngine
before(async () => {
  world = testEngine()
  agent = await testAgent({ config: 'deployments:\n  ready_timeout: 15\n' })
})
after(async () => {
  await agent.stop()
  await world.cleanup()
})

const text = (more = '') =>
  `services:\n  web:\n    image: ${testImage}\n    command: sleep 3600\n    init: true\n    stop_grace_period: 1s\n${more}`
const wide = text('    pid: host\n')

test('an operator creates a deployment of his own and gets level admin on it', async () => {
  const name = world.name('own')
  const made = await agent.request('POST /api/deployments', {
    as: 'nina',
    body: { name, compose_content: text(), auto_start: true },
  })
  assert.equal(made.statusCode, 201, made.body)
  assert.deepEqual((await agent.request(`GET /api/deployments/${name}/users`)).json().data, [
    { user_id: 4, username: 'nina', access_level: 'admin' },
  ])
  assert.deepEqual(
    (await agent.request('GET /api/deployments', { as: 'nina' })).json().map((one: { name: string }) => one.name),
    [name],
  )
  assert.equal((await agent.request(`GET /api/deployments/${name}`, { as: 'bob' })).statusCode, 404)
  const gone = await agent.request(`DELETE /api/deployments/${name}?remove_files=true`, { as: 'nina' })
  assert.equal(gone.statusCode, 200, gone.body)
})

test('a compose file that reaches outside is refused to an operator, and leaves nothing behind', async () => {
  const name = world.name('reach')
  for (const compose_content of [
    wide,
    text('    volumes: ["/:/host"]\n'),
    text('    env_file: /etc/passwd\n'),
    `include: [/etc/passwd]\n${text()}`,
  ]) {
    const answer = await agent.request('POST /api/deployments', { as: 'nina', body: { name, compose_content } })
    assert.equal(answer.statusCode, 400, compose_content)
    assert.equal(answer.json().code, 'COMPOSE_INVALID')
    assert.ok(!answer.body.includes('root:'))
  }
  assert.equal((await agent.request(`GET /api/deployments/${name}`)).statusCode, 404)
})

test('what an administrator stored stays allowed, until somebody else changes it', async () => {
  const name = 'shop'
  const file = join(agent.folder, 'deployments', name, 'compose.yaml')
  const stored = await agent.request(`PUT /api/deployments/${name}`, { body: { compose_content: wide } })
  assert.equal(stored.statusCode, 200, stored.body)
  const started = await agent.request(`POST /api/deployments/${name}/start`, { as: 'bob' })
  assert.equal(started.statusCode, 200, started.body)
  const changed = await agent.request(`PUT /api/deployments/${name}`, {
    as: 'bob',
    body: { env_vars: [{ key: 'A', value: '1' }] },
  })
  assert.equal(changed.json().code, 'COMPOSE_INVALID', changed.body)
  await writeFile(file, wide.replace('3600', '3601'))
  const edited = await agent.request(`POST /api/deployments/${name}/restart`, { as: 'bob' })
  assert.equal(edited.json().code, 'COMPOSE_INVALID', edited.body)
  assert.equal((await agent.request(`POST /api/deployments/${name}/restart`)).statusCode, 200)
  assert.equal((await agent.request(`POST /api/deployments/${name}/restart`, { as: 'bob' })).statusCode, 200)
  assert.equal((await agent.request(`POST /api/deployments/${name}/stop`, { as: 'vera' })).statusCode, 403)
})

test('what was left behind under a name is not for the next one to find', async () => {
  const name = world.name('left')
  const compose_content = `${text('    volumes: [data:/data]\n')}volumes:\n  data: {}\n`
  assert.equal(
    (await agent.request('POST /api/deployments', { body: { name, compose_content, auto_start: true } })).statusCode,
    201,
  )
  await agent.request(`DELETE /api/deployments/${name}`)
  assert.equal((await agent.request('POST /api/deployments', { as: 'nina', body: { name } })).json().code, 'CONFLICT')
  await agent.request('POST /api/deployments', { body: { name } })
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
  const answer = await agent.request('POST /api/deployments', { as: 'nina', body: { name, compose_content } })
  assert.equal(answer.json().code, 'CONFLICT', answer.body)
  assert.equal((await agent.request('POST /api/deployments', { body: { name, compose_content } })).statusCode, 201)
})

test('containers of a project that was made elsewhere are not taken over', async () => {
  const name = world.name('elsewhere')
  await world.run('theirs', 'sleep 3600', {
    Labels: {
      'com.docker.compose.project': name,
      'com.docker.compose.service': 'web',
      'com.docker.compose.project.working_dir': '/somewhere/else',
    },
  })
  await new Promise(next => setTimeout(next, 300))
  const answer = await agent.request('POST /api/deployments', { body: { name, compose_content: text() } })
  assert.equal(answer.json().code, 'CONFLICT', answer.body)
  assert.ok(!answer.body.includes('/somewhere'))
})

test('a deployment is made from a template with generated secrets', async () => {
  const name = world.name('tpl')
  const planned = await agent.request('POST /api/deployments?plan=true', { body: { name, template_id: 'postgres' } })
  assert.equal(planned.statusCode, 200, planned.body)
  const made = await agent.request(`POST /api/plans/${planned.json().data.id}/apply`)
  assert.equal(made.statusCode, 201, made.body)
  const secrets = made.json().data.env_vars.filter((one: { key: string }) => /PASSWORD/.test(one.key))
  assert.ok(secrets.length > 0 && secrets.every((one: { value: string }) => one.value.length >= 16))
  for (const { value } of secrets) assert.ok(!planned.body.includes(value))
  assert.equal(
    (await agent.request('POST /api/deployments', { body: { name: `${name}2`, template_id: 'nothing' } })).statusCode,
    404,
  )
  assert.equal(
    (
      await agent.request('POST /api/deployments', {
        body: { name: `${name}2`, template_id: 'postgres', values: { NOPE: 1 } },
      })
    ).statusCode,
    400,
  )
})
