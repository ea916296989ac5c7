// What the tests share that walk the list of operations: calls made from examples, and fresh standard worlds, cheaply.

import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, type Method, type Operation } from '../src/core/operation.ts'
import { Nothing, Type } from '../src/core/schema.ts'
import { stepKind } from '../src/core/step.ts'
import { A_JOB, type Ask, type TestAgent, testAgent } from '../src/testing/agent.ts'
import { type TestEngine, testEngine, testImage } from '../src/testing/engine.ts'

export interface ExampleCall {
  /** As `TestAgent.request` takes it: method and path. */
  line: string
  ask: Pick<Ask, 'body' | 'query' | 'payload' | 'headers'>
}

/** The request that carries an input, as a client would send it. */
export function callOf(
  operation: Operation,
  input: object = operation.example,
  method: Method = operation.http.method,
): ExampleCall {
  const { fields, http } = operation
  const values = input as Record<string, unknown>
  const path = http.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(values[name])))
  const given = Object.keys(values).filter(name => !fields.path.includes(name) && values[name] !== undefined)
  const inQuery = (name: string) => fields.query.has(name) && (method === 'DELETE' || !fields.body.has(name))
  const query = Object.fromEntries(given.filter(inQuery).map(name => [name, asText(values[name])]))
  const body = Object.fromEntries(given.filter(name => !inQuery(name)).map(name => [name, values[name]]))
  const upload = { payload: 'some bytes', headers: { 'content-type': 'application/octet-stream' } }
  const sent = http.upload ? upload : fields.body.size > 0 && method !== 'DELETE' ? { body } : {}
  return { line: `${method} ${path}`, ask: { query, ...sent } }
}

/** The methods an operation answers to. */
export const methodsOf = ({ http }: Operation): Method[] => [http.method, ...(http.also ?? [])]

/** A standard world whose job is alive, and whose names on the engine no other world uses. */
export interface World extends TestAgent {
  engine: TestEngine
  /** The example of an operation with the names of this world. */
  exampleOf(operation: Operation): object
}

export interface Worlds {
  /** A world of its own, as it was when the first one was made, with what the examples of these operations need. */
  open(options?: { for?: readonly Operation[]; log?: { write(line: string): void } }): Promise<World>
  /** Removes the model of the worlds; each world is stopped by who opened it. */
  close(): Promise<void>
}

/** Makes one standard world and copies it for each that is asked for: nobody's password is hashed twice. */
export async function standardWorlds(
  options: { config?: string; prepare?: (model: TestAgent) => Promise<unknown> } = {},
): Promise<Worlds> {
  const { prepare, ...rest } = options
  const model = await testAgent(rest)
  await prepare?.(model)
  await model.stop('keep')
  const copies = await mkdtemp(join(tmpdir(), 'fairlead-worlds-'))
  let count = 0
  return {
    async open({ for: wanted = [], log } = {}) {
      const folder = join(copies, String(count++))
      const engine = testEngine()
      const text = JSON.stringify(wanted.map(one => one.example))
      await Promise.all([
        cp(model.folder, folder, { recursive: true, preserveTimestamps: true }),
        makeThings(engine, text),
      ])
      await nameProjects(join(folder, 'deployments'), engine)
      const agent = await testAgent({ folder, extra, ...(log ? { log } : {}) })
      const job = await startJob(agent)
      const stop: TestAgent['stop'] = async keep => {
        await agent.door.cancel(job, 'The test is over.')
        await agent.stop(keep)
        await engine.cleanup()
      }
      return { ...agent, stop, engine, exampleOf: operation => inWorld(operation.example, engine, job) }
    },
    async close() {
      await rm(model.folder, { recursive: true, force: true })
      await rm(copies, { recursive: true, force: true })
    },
  }
}

/** An operation that goes on until it is cancelled, so that the job of the standard world has a living owner. */
const wait = stepKind<object>('probe.wait', {
  describe: () => ({ type: 'process', id: 'waiting', action: 'run' }),
  perform: (_world, _data, { signal }) =>
    new Promise((_done, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  end: 'harmless',
})
const waiting = command('probe.wait', {
  summary: 'Wait until cancelled',
  http: { method: 'POST', path: '/api/probe/wait' },
  permission: 'admin',
  resource: { type: 'probe' },
  input: Type.Object({}),
  output: Nothing,
  example: {},
  decide: () => [wait({})],
})
const extra = { operations: [waiting], kinds: [wait] }

/** True for what a test brought along and the product does not have. */
export const isProbe = (id: string): boolean => id.startsWith('probe.')

async function startJob(agent: TestAgent): Promise<string> {
  agent.db.run('DELETE FROM runs WHERE id = ?', A_JOB)
  const { statusCode, body } = await agent.request('POST /api/probe/wait', { headers: { prefer: 'respond-async' } })
  if (statusCode !== 201) throw new Error(`The job of the standard world could not be started: ${statusCode} ${body}`)
  return JSON.parse(body).job_id
}

/** What the standard world has on the engine, as far as a text names it, under names of this world. */
async function makeThings(engine: TestEngine, text: string): Promise<void> {
  const { containers, volumes, networks, images } = engine.engine
  const made: Record<string, () => Promise<unknown>> = {
    'fairlead-test-idle': () =>
      containers.create(engine.name('idle'), { Image: testImage, Cmd: ['sleep', '3600'], StopTimeout: 1 }),
    'fairlead-test-volume': () => volumes.create({ name: engine.name('volume') }),
    'fairlead-test-network': () => networks.create({ name: engine.name('network') }),
    'fairlead-test/spare:1': () => images.tag(testImage, `${engine.prefix}/spare:1`),
  }
  await Promise.all(Object.entries(made).map(([name, make]) => (text.includes(name) ? make() : undefined)))
}

/** Two test files share an engine: a compose file says itself what its project is called. */
async function nameProjects(folder: string, engine: TestEngine): Promise<void> {
  for (const name of await readdir(folder)) {
    const file = join(folder, name, 'compose.yaml')
    const text = await readFile(file, 'utf8')
    await writeFile(file, `name: ${engine.name(name)}\n${text.replace(/^name: .*\n/m, '')}`)
  }
}

function inWorld(example: object, engine: TestEngine, job: string): object {
  const [high, low] = [
    100 + (Number.parseInt(engine.prefix.slice(3, 5), 16) % 100),
    Number.parseInt(engine.prefix.slice(5, 7), 16),
  ]
  const text = JSON.stringify(example)
    .replaceAll(A_JOB, job)
    .replaceAll('fairlead-test-', `${engine.prefix}-`)
    .replaceAll('fairlead-test/spare', `${engine.prefix}/spare`)
    .replaceAll('10.213.7.', `10.${high}.${low}.`)
  const { name, compose_content, ...rest } = JSON.parse(text) as { name?: string; compose_content?: string }
  const project =
    compose_content === undefined ? {} : { compose_content: `name: ${engine.name(name ?? 'new')}\n${compose_content}` }
  return { ...(name === undefined ? {} : { name }), ...project, ...rest }
}

const asText = (value: unknown): string =>
  Array.isArray(value) ? value.join(',') : typeof value === 'object' ? JSON.stringify(value) : String(value)
