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
  const names = new Map(containers.map(one => [String(one.Names?.[0]).slice(1), `${one.Id} ${one.State}`]))
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
      return [`${old === undefined ? 'create' : now === undefined ? 'delete' : 'replace'} ${name}`]
    })
    .sort()
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
        const planned = (await agent.request(`PUT /api/deployments/${name}?plan=true`, { body })).json().data
        const expected = planned.changes
          .filter((one: { type: string }) => one.type !== 'file')
          .map(
            (one: { type: string; id: string; action: string }) =>
              `${one.action} ${one.type === 'container' ? '' : `${one.type} `}${one.id}`,
          )
          .sort()
        const before = await snapshot(name)
        const applied = await agent.request(`POST /api/plans/${planned.id}/apply`)
        assert.equal(applied.statusCode, 200, `${applied.body}\n${body.compose_content}`)
        const happened = difference(before, await snapshot(name))
        assert.deepEqual(
          happened,
          expected,
          `edit ${place} of ${name}, seed ${seed}\n${composeOf((sequence[place - 1] as { spec: Spec }).spec)}\n---\n${body.compose_content}`,
        )
        assert.equal(applied.json().data.status, 'running')
      }
    }),
  )
})
