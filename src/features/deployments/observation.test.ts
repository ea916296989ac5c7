import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFile, mkdir, symlink, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { livingBytes } from '../../testing/memory.ts'

const IMAGE = 'fairlead-test/busybox:1'

let agent: TestAgent
let world: TestEngine
let name: string
let url: string
before(async () => {
  world = testEngine()
  agent = await testAgent({ config: 'deployments:\n  ready_timeout: 20\n' })
  name = world.name('talk')
  const service = (id: string, command: string) =>
    `  ${id}:\n    image: ${IMAGE}\n    init: true\n    stop_grace_period: 1s\n    command: ["sh", "-c", "${command}"]\n`
  const talks =
    'for i in 1 2 3; do echo $$NAME $$i; echo warn $$i >&2; sleep 0.05; done; while [ ! -f /tmp/go ]; do sleep 0.05; done; echo went; sleep 3600'
  const compose_content = `services:\n${service('one', talks)}    environment: {NAME: first}\n${service('two', talks)}    environment: {NAME: second}\n    tty: true\n`
  const made = await agent.request('POST /api/deployments', { body: { name, compose_content, auto_start: true } })
  assert.equal(made.statusCode, 201, made.body)
  const listening = await agent.app.listen({ host: '127.0.0.1', port: 0 })
  url = listening.replace('http', 'ws')
})
after(async () => {
  await agent.request(`DELETE /api/deployments/${name}?remove_files=true`)
  await agent.stop()
  await world.cleanup()
})

interface Line {
  time: string
  service: string
  stream: string
  line: string
}
const logs = async (query: string): Promise<Line[]> =>
  (await agent.request(`GET /api/deployments/${name}/logs?${query}`)).json().data

test('logs of several services are merged by time, stdout and stderr apart', async () => {
  const all = await logs('tail=0')
  assert.deepEqual(
    [...all].sort((a, b) => (a.time < b.time ? -1 : 1)).map(one => one.time),
    all.map(one => one.time),
  )
  assert.equal(all.filter(one => one.service === 'one' && one.stream === 'stdout').length, 3)
  assert.equal(all.filter(one => one.service === 'one' && one.stream === 'stderr').length, 3)
  assert.equal(all.filter(one => one.service === 'two').length, 6)
})

test('the filter comes first, then the tail over the merged lines', async () => {
  const all = (await logs('tail=0')).filter(one => one.line.includes('warn'))
  assert.deepEqual(await logs('tail=2&filter=WARN'), all.slice(-2))
  assert.equal((await logs('tail=1')).length, 1)
  assert.deepEqual(new Set((await logs('service=two')).map(one => one.service)), new Set(['two']))
  assert.equal((await agent.request(`GET /api/deployments/${name}/logs?service=nobody`)).statusCode, 404)
  assert.equal((await agent.request(`GET /api/deployments/${name}/logs?source=nothing`)).statusCode, 404)
  assert.equal((await logs('since=1h&tail=0')).length, 12)
  assert.equal((await agent.request(`GET /api/deployments/${name}/logs?since=yesterday`)).statusCode, 400)
})

test('the websocket tells what was and what comes', async () => {
  const socket = new WebSocket(`${url}/api/deployments/${name}/logs/stream?tail=1`)
  const frames: (Line & { type: string })[] = []
  const opened = new Promise(resolve => socket.addEventListener('open', resolve))
  const went = new Promise<void>(resolve =>
    socket.addEventListener('message', ({ data }) => {
      frames.push(JSON.parse(String(data)))
      if (frames.at(-1)?.line === 'went') resolve()
    }),
  )
  await opened
  socket.send(await agent.tokenOf('key'))
  const containers = await world.engine.containers.list({
    label: [`com.docker.compose.project=${name}`, 'com.docker.compose.service=one'],
  })
  await new Promise(next => setTimeout(next, 200))
  await world.engine.exec.run(containers[0]?.Id as string, { command: ['touch', '/tmp/go'] })
  await went
  assert.deepEqual(
    frames.map(one => one.type),
    frames.map(() => 'log'),
  )
  assert.equal(frames.length, 2)
  socket.close()
})

test('all of a long log is streamed in constant memory, and a reader that stops reading stops the engine', async () => {
  const total = 300_000
  const id = await world.run('long', `yes '${'x'.repeat(99)}' | head -n ${total}`)
  await world.engine.containers.wait(id, 'not-running', {})
  const before = livingBytes()
  const headers = { authorization: `Bearer ${await agent.tokenOf('key')}` }
  const asked = get(`${url.replace('ws', 'http')}/api/containers/${id}/logs?tail=0`, { headers })
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  assert.equal(answer.statusCode, 200)
  await sleep(300)
  let most = livingBytes()
  let lines = 0
  let looked = 0
  for await (const chunk of answer.setEncoding('latin1') as AsyncIterable<string>) {
    lines += chunk.split('{').length - 1
    if (lines < looked + total / 5) continue
    looked = lines
    most = Math.max(most, livingBytes())
  }
  // The body itself is an object, too.
  assert.equal(lines, total + 1)
  assert.ok(most - before < 20e6, `${Math.round((most - before) / 1e6)} MB more`)
})

test('stats name each running container and sum up', async () => {
  const { containers, totals } = (await agent.request(`GET /api/deployments/${name}/stats`)).json().data
  assert.deepEqual(containers.map((one: { service: string }) => one.service).sort(), ['one', 'two'])
  assert.ok(containers.every((one: { memory_usage: number; pids: number }) => one.memory_usage > 0 && one.pids > 0))
  assert.equal(totals.pids, containers[0].pids + containers[1].pids)
})

test('a custom log file is read inside the folder only', async () => {
  const folder = join(agent.folder, 'deployments', name)
  await mkdir(join(folder, 'logs'))
  await writeFile(join(folder, 'logs', 'app.log'), 'one\ntwo\n')
  await symlink('/etc/passwd', join(folder, 'logs', 'link.log'))
  const put = (path: string, id = 'app') =>
    agent.request(`PUT /api/deployments/${name}/log-sources`, { body: { sources: [{ id, name: 'App', path }] } })
  for (const path of ['../../config.yml', '/etc/passwd', 'logs/../../x', '..'])
    assert.equal((await put(path)).statusCode, 400, path)
  assert.equal((await put('logs/app.log', 'stdout')).statusCode, 409)
  assert.equal((await put('logs/app.log')).statusCode, 200)
  assert.deepEqual(
    (await logs('source=app')).map(one => one.line),
    ['one', 'two'],
  )
  await appendFile(join(folder, 'logs', 'app.log'), 'three\n')
  assert.deepEqual(
    (await logs('source=app&tail=1')).map(one => one.line),
    ['three'],
  )
  assert.equal((await put('logs/link.log')).statusCode, 400)
})

test('stop and restart are seen before they are answered', async () => {
  const stopped = await agent.request(`POST /api/deployments/${name}/stop`)
  assert.equal(stopped.json().data.status, 'stopped', stopped.body)
  assert.deepEqual((await agent.request(`POST /api/deployments/${name}/stop?plan=true`)).json().data.changes, [])
  const restarted = await agent.request(`POST /api/deployments/${name}/restart`)
  assert.equal(restarted.json().data.status, 'running', restarted.body)
  const before = (await agent.request(`GET /api/deployments/${name}`)).json().data.services[0].container_ids
  const one = await agent.request(`POST /api/deployments/${name}/restart`, { body: { services: ['one'] } })
  assert.equal(one.statusCode, 200, one.body)
  assert.deepEqual(one.json().data.services[0].container_ids, before)
})
