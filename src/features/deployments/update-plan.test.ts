import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine, testImage } from '../../testing/engine.ts'

/** 25 random edits: 5 deployments beside each other, each edited 5 times in a row. */
const DEPLOYMENTS = 5
const EDITS = 5
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9))

let agent: TestAgent
let world: TestEngine
before(async () => {
  world = testEngine()
  agent = await testAgent({ empty: true, config: 'deployments:\n  ready_timeout: 30\n' })
  // A second image: the same files under another id.
  const id = await world.run('twin', 'true')
  await world.engine.containers.wait(id, 'not-running', {})
  await world.engine.images.tag(testImage, `${world.prefix}/same:1`)
})
after(async () => {
  await agent.stop()
  await world.cleanup()
})

interface Service {
  command: string
  label: string
  scale: number
  volume: boolean
  extraNetwork: boolean
  shares: boolean
  follows: 'not' | 'plainly' | 'with a restart'
  env: string
}
type Spec = Record<'a' | 'b' | 'c', Service | null>

const service = fc.record<Service>({
  command: fc.constantFrom('sleep 3600', 'sleep 3601'),
  label: fc.constantFrom('x', 'y'),
  scale: fc.constantFrom(1, 1, 2),
  volume: fc.boolean(),
  extraNetwork: fc.boolean(),
  shares: fc.boolean(),
  follows: fc.constantFrom('not', 'plainly', 'with a restart'),
  env: fc.constantFrom('plain', '${SHARED}'),
})
const spec = fc.record<Spec>({
  a: service,
  b: fc.option(service, { freq: 3 }),
  c: fc.option(service, { freq: 3 }),
})
const edits = fc.array(fc.record({ spec, shared: fc.constantFrom('1', '2') }), {
  minLength: EDITS + 1,
  maxLength: EDITS + 1,
})

function composeOf(wanted: Spec): string {
  const used = Object.entries(wanted).flatMap(([name, one]) => (one ? [[name, one] as const] : []))
  const services = used.map(([name, one]) => {
    const shares = one.shares && name === 'b' && wanted.a?.scale === 1
    return [
      `  ${name}:`,
      `    image: ${testImage}`,
      `    command: ${one.command}`,
      '    init: true',
      '    stop_grace_period: 1s',
      `    scale: ${shares ? 1 : one.scale}`,
      `    labels: {test: ${one.label}}`,
      `    environment: {VALUE: "${one.env}"}`,
      ...(shares ? ['    network_mode: service:a'] : one.extraNetwork ? ['    networks: [default, extra]'] : []),
      ...(one.follows !== 'not' && name === 'c'
        ? [`    depends_on: {a: {condition: service_started, restart: ${one.follows === 'with a restart'}}}`]
        : []),
      ...(one.volume ? [`    volumes: [data-${name}:/data]`] : []),
    ].join('\n')
  })
  const volumes = used.filter(([, one]) => one.volume).map(([name]) => `  data-${name}: {}`)
  return `services:\n${services.join('\n')}\nnetworks:\n  extra: {}\n${volumes.length > 0 ? `volumes:\n${volumes.join('\n')}\n` : ''}`
}

/** What the engine holds of a project: containers by name, networks and volumes. */
async function snapshot(project: string) {
  const label = [`com.docker.compose.project=${project}`]
  const [containers, networks, volumes] = await Promise.all([
    world.engine.containers.list({ label }),
    world.engine.networks.list({ label }),
    world.engine.volumes.list({ label }),
  ])
  const details = await Promise.all(containers.map(one => world.engine.containers.inspect(one.Id)))
  const names = new Map(details.map(one => [one.Name.slice(1), `${one.Id} ${one.State.Status} ${one.State.StartedAt}`]))
  for (const one of networks) names.set(`network ${one.Name}`, one.Id)
  for (const one of volumes) names.set(`volume ${one.Name}`, one.Name)
  return names
}

function difference(before: Map<string, string>, after: Map<string, string>): string[] {
  const all = [...new Set([...before.keys(), ...after.keys()])]
  return all
    .flatMap(name => {
      const [old, now] = [before.get(name), after.get(name)]
      if (old === now) return []
      const isSame = old?.split(' ')[0] === now?.split(' ')[0]
      return [`${old === undefined ? 'create' : now === undefined ? 'delete' : isSame ? 'run' : 'replace'} ${name}`]
    })
    .sort()
}

/** Plans an update, applies the plan, and finds that what happened is what it listed. */
async function updated(name: string, body: { compose_content: string; env_vars?: object[] }, words?: string) {
  const planned = (await agent.request(`PUT /api/deployments/${name}?plan=true`, { body })).json().data as {
    id: string
    changes: { type: string; id: string; action: string }[]
  }
  const expected = planned.changes
    .filter(one => one.type !== 'file')
    .map(one => `${one.action} ${one.type === 'container' ? '' : `${one.type} `}${one.id}`)
    .sort()
  const before = await snapshot(name)
  const applied = await agent.request(`POST /api/plans/${planned.id}/apply`)
  assert.equal(applied.statusCode, 200, `${applied.body}\n${body.compose_content}`)
  assert.deepEqual(difference(before, await snapshot(name)), expected, words)
  assert.equal(applied.json().data.status, 'running')
  return planned
}

test(`what an update plans is what happens (seed ${seed})`, async () => {
  const sequences = fc.sample(edits, { seed, numRuns: DEPLOYMENTS })
  await Promise.all(
    sequences.map(async (sequence, index) => {
      const name = world.name(`edit${index}`)
      for (const [place, { spec, shared }] of sequence.entries()) {
        const body = { compose_content: composeOf(spec), env_vars: [{ key: 'SHARED', value: shared }] }
        if (place === 0) {
          const made = await agent.request('POST /api/deployments', { body: { name, ...body, auto_start: true } })
          assert.equal(made.statusCode, 201, made.body)
          continue
        }
        const former = composeOf((sequence[place - 1] as { spec: Spec }).spec)
        await updated(name, body, `edit ${place} of ${name}, seed ${seed}\n${former}\n---\n${body.compose_content}`)
      }
    }),
  )
})

test('what Compose takes along when a service is replaced is in the plan', async () => {
  const name = world.name('follow')
  const composeWith = (seconds: number) => {
    const service = (command: string, more = '') =>
      `{image: "${testImage}", command: "${command}", init: true, stop_grace_period: 1s${more}}`
    const on = (other: string) => `, depends_on: {${other}: {condition: service_started, restart: true}}`
    return `services:
  a: ${service('sleep 3600', on('b'))}
  b: ${service('sleep 3600', on('c'))}
  c: ${service(`sleep ${seconds}`)}
  d: ${service('sleep 3600', ', depends_on: [c]')}
  e: ${service('sleep 3600')}
`
  }
  const body = { name, compose_content: composeWith(3600), auto_start: true }
  const made = await agent.request('POST /api/deployments', { body })
  assert.equal(made.statusCode, 201, made.body)
  const { changes } = await updated(name, { compose_content: composeWith(3601) })
  const touched = changes.filter(({ type }) => type === 'container').map(({ id }) => id)
  assert.ok(touched.includes(`${name}-b-1`), touched.join())
  assert.ok(!touched.includes(`${name}-e-1`), touched.join())
})
