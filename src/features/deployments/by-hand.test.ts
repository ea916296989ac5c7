import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine, testImage } from '../../testing/engine.ts'

const run = promisify(execFile)

let world: TestEngine
let agent: TestAgent
let name: string
let folder: string
before(async () => {
  world = testEngine()
  agent = await testAgent({ empty: true, config: 'deployments:\n  ready_timeout: 20\n' })
  name = world.name('hand')
  folder = join(agent.folder, 'deployments', name)
})
after(async () => {
  await agent.stop()
  await world.cleanup()
})

const service = (id: string, more = '') =>
  `  ${id}:\n    image: ${testImage}\n    command: sleep 3600\n    stop_signal: SIGKILL\n${more}`
/** `side` and `peek` share with others, so that what Compose notes about them depends on the containers of these. */
const TEXT = `services:\n${[
  service('db'),
  service('web'),
  service('side', '    network_mode: service:web\n'),
  service('peek', '    pid: service:db\n'),
].join('')}`

const byHand = (...args: string[]) => run('docker', ['compose', ...args], { cwd: folder })

interface Service {
  status: string
  container_ids: string[]
  replicas: number
  in_sync: boolean
}
interface Seen {
  status: string
  services: Record<string, Service>
}

/** What the agent says. */
async function told(): Promise<Seen> {
  const { status, services } = (await agent.request(`GET /api/deployments/${name}`)).json().data as {
    status: string
    services: (Service & { name: string })[]
  }
  const pick = ({ status, container_ids, replicas, in_sync }: Service) => ({
    status,
    container_ids: [...container_ids].sort(),
    replicas,
    in_sync,
  })
  return { status, services: Object.fromEntries(services.map(one => [one.name, pick(one)])) }
}

/** What Compose says: its list of containers, and what it would do to make them what the file says. */
async function asCompose(): Promise<Seen> {
  const [list, dry, config] = await Promise.all([
    byHand('ps', '--all', '--no-trunc', '--format', 'json'),
    byHand('up', '--detach', '--dry-run'),
    byHand('config', '--format', 'json'),
  ])
  const containers = list.stdout
    .split('\n')
    .filter(Boolean)
    .flatMap((line): { ID: string; Service: string; State: string }[] => JSON.parse(line))
  const changes = dry.stderr.matchAll(/Container (\S+) +(?:Recreate|Creat(?:e|ing)\b|Remov)/g)
  const changed = [...changes].map(match => match[1])
  const services = Object.entries(JSON.parse(config.stdout).services)
  const seen = services.map(([id, wanted]): [string, Service] => {
    const own = containers.filter(one => one.Service === id)
    const isChanged = changed.some(container => container?.includes(`-${id}-`))
    return [
      id,
      {
        status: own.find(one => one.State !== 'running')?.State ?? own[0]?.State ?? 'missing',
        container_ids: own.map(one => one.ID).sort(),
        replicas: (wanted as { scale?: number }).scale ?? 1,
        in_sync: own.length > 0 && !isChanged,
      },
    ]
  })
  const up = seen.filter(([, one]) => one.status === 'running').length
  const status = up === seen.length ? 'running' : up === 0 ? 'stopped' : 'partial'
  return { status, services: Object.fromEntries(seen) }
}

async function agreeAfter(what: string): Promise<void> {
  const end = performance.now() + 1000
  const expected = await asCompose()
  let seen = await told()
  while (JSON.stringify(seen) !== JSON.stringify(expected) && performance.now() < end) {
    await new Promise(next => setTimeout(next, 20))
    seen = await told()
  }
  assert.deepEqual(seen, expected, what)
}

const edit = async (from: string | RegExp, to: string) => {
  const file = join(folder, 'compose.yaml')
  await writeFile(file, (await readFile(file, 'utf8')).replace(from, to))
}

test('whatever is done by hand, the agent says what Compose says within a second', async () => {
  const made = await agent.request('POST /api/deployments', { body: { name, compose_content: TEXT } })
  assert.equal(made.statusCode, 201, made.body)
  await agreeAfter('nothing')
  for (const args of [
    ['up', '-d'],
    ['stop'],
    ['start'],
    ['pause', 'db'],
    ['unpause', 'db'],
    ['kill', 'web'],
    ['up', '-d'],
    ['rm', '-sf', 'web'],
    ['up', '-d', '--scale', 'web=2'],
    ['run', '--rm', 'db', 'true'],
    ['up', '-d'],
    ['up', '-d', '--force-recreate', 'web'],
    ['restart', 'db'],
  ]) {
    await byHand(...args)
    await agreeAfter(`docker compose ${args.join(' ')}`)
  }
  await edit(/(side:[\s\S]*?)sleep 3600/, '$1sleep 3601')
  await agreeAfter('an edit of the file')
  await byHand('up', '-d')
  await agreeAfter('docker compose up -d after the edit')
  await edit('sleep 3600', 'sleep 3602')
  await byHand('up', '-d')
  await agreeAfter('docker compose up -d after an edit of what another shares with')
  await byHand('down')
  await agreeAfter('docker compose down')
})

test('whatever the agent does, Compose finds nothing left to do', async () => {
  for (const [line, body] of [
    [`POST /api/deployments/${name}/start`],
    [`PUT /api/deployments/${name}`, { compose_content: TEXT.replace('3600', '3603') }],
    [`POST /api/deployments/${name}/restart`],
    [`PUT /api/deployments/${name}`, { compose_content: TEXT.replace('stop_signal', 'scale: 2\n    stop_signal') }],
  ] as const) {
    const answer = await agent.request(line, { body })
    assert.equal(answer.statusCode, 200, answer.body)
    await agreeAfter(line)
    const before = await told()
    assert.ok(Object.values(before.services).every(one => one.in_sync && one.status === 'running'))
    await byHand('up', '-d')
    assert.deepEqual(await asCompose(), before, line)
  }
  const before = await told()
  await agent.request(`POST /api/deployments/${name}/stop`)
  await agreeAfter('stop')
  await byHand('up', '-d')
  assert.deepEqual(await asCompose(), before)
})

test('a plan lists what Compose replaces because it shares with what is replaced', async () => {
  const before = (await told()).services
  const body = { compose_content: TEXT.replace('3600', '3604') }
  const plan = (await agent.request(`PUT /api/deployments/${name}?plan=true`, { body })).json().data
  const replaced = plan.changes.flatMap((one: { type: string; action: string; id: string }) =>
    one.type === 'container' && one.action === 'replace' ? [one.id.split('-').at(-2)] : [],
  )
  const applied = await agent.request(`POST /api/plans/${plan.id}/apply`)
  assert.equal(applied.statusCode, 200, applied.body)
  const after = (await told()).services
  const changed = Object.keys(after).filter(
    id => String(after[id]?.container_ids) !== String(before[id]?.container_ids),
  )
  assert.deepEqual(replaced.sort(), changed.sort())
  assert.deepEqual(changed, ['db', 'peek'])
})
