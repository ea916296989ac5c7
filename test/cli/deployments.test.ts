// A deployment from the first compose file to its end, only with the client.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { API_KEY, type TestAgent, testAgent } from '../../src/testing/agent.ts'
import { Client } from './client.ts'

const COMPOSE = `services:
  web:
    image: fairlead-test/busybox:1
    command: sh -c 'echo "hello $$GREETED"; exec httpd -f -p 8080 -h /www'
    environment: { GREETED: "\${GREETED}" }
    init: true
    stop_grace_period: 1s
`

let agent: TestAgent
const client = new Client()
const name = `cli-${process.pid}`
before(async () => {
  agent = await testAgent({ empty: true })
  await client.ok(['login', await agent.app.listen({ port: 0 })], { input: API_KEY })
  await writeFile(join(client.home, 'compose.yml'), COMPOSE)
})
after(async () => {
  await client.run(['deployments', 'delete', name, '--remove-files', '--remove-volumes'])
  await agent.stop()
  client.remove()
})

test('a deployment is planned, made, read, followed, changed and deleted', async () => {
  const create = [
    'deployments',
    'create',
    name,
    '--compose-file',
    'compose.yml',
    '--env',
    'GREETED=world',
    '--auto-start',
  ]
  const planned = await client.ok([...create, '--plan'], { cwd: client.home })
  assert.match(planned.stdout, /\+ create file .*compose\.ya?ml\n.*\+services:\n/s)
  assert.match(planned.stdout, /\+GREETED=\[redacted\]\n/)
  assert.match((await client.ok(['deployments', 'list'])).stderr, /No deployments/)

  const made = await client.terminal(create, { cwd: client.home }).end()
  assert.equal(made.code, 0, made.text)
  assert.match(made.text, /status:.*running/)
  assert.match((await client.ok(['deployments', 'list'])).stdout, new RegExp(`\n${name} .* running .* web`))
  const got = await client.ok(['deployments', 'get', name, '--json'])
  assert.deepEqual(
    [JSON.parse(got.stdout).data.compose_content, JSON.parse(got.stdout).data.env_vars],
    [COMPOSE, [{ key: 'GREETED', value: 'world' }]],
  )
  assert.match((await client.ok(['deployments', 'get', name])).stdout, /^compose content:\n {2}services:\n {4}web:$/m)

  assert.match((await client.ok(['deployments', 'logs', name, '--tail', '50'])).stdout, / web \| hello world\n/)
  const following = client.terminal(['deployments', 'logs', name, '--follow', '--tail', '50'])
  await following.until('hello world')
  await client.ok(['deployments', 'update', name, '--env', 'GREETED=moon', '--redeploy'])
  following.type('\x03')
  await following.end()
  assert.match((await client.ok(['deployments', 'logs', name, '--tail', '1', '-q'])).stdout, /^hello moon\n$/)

  const job = (await client.ok(['deployments', 'stop', name, '--async', '-q'])).stdout.trim()
  await client.ok(['jobs', 'wait', job])
  assert.equal((await client.ok(['deployments', 'get', name, '--columns', 'status'])).stdout, 'stopped\n')
  await client.ok(['deployments', 'rm', name, '--remove-files'])
  assert.equal((await client.run(['deployments', 'get', name])).code, 1)
})

test('a compose file that is not valid is refused in the words of its parser', async () => {
  const { code, stderr } = await client.run(['deployments', 'create', `${name}-bad`, '--compose-file', '-'], {
    input: 'services: [',
  })
  assert.deepEqual([code, stderr.startsWith('fairlead: ')], [1, true])
  assert.match((await client.ok(['deployments', 'list'])).stderr, /No deployments/)
})
