// What the tests share that walk the list of operations: calls made from examples, and fresh standard worlds, cheaply.

import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock } from 'node:test'
import { command, type Method, type Operation } from '../src/core/operation.ts'
import { Runs } from '../src/core/run.ts'
import { Nothing, Type } from '../src/core/schema.ts'
import { stepKind } from '../src/core/step.ts'
import { operations } from '../src/features/index.ts'
import { A_JOB, type Ask, type TestAgent, testAgent } from '../src/testing/agent.ts'
import { type TestEngine, testEngine } from '../src/testing/engine.ts'

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
  return {
    line: `${method} ${path}`,
    ask: {
      query,
      ...(http.upload
        ? { payload: 'some bytes', headers: { 'content-type': 'application/octet-stream' } }
        : fields.body.size > 0 && method !== 'DELETE'
          ? { body }
          : {}),
    },
  }
}

/** The methods an operation answers to. */
export const methodsOf = ({ http }: Operation): Method[] => [http.method, ...(http.also ?? [])]

export const byId = (id: string): Operation => {
  const found = operations.find(operation => operation.id === id)
  if (!found) throw new Error(`There is no operation ${id}`)
  return found
}

/** A standard world whose job is alive and whose compose projects have names that no other world uses. */
export interface World extends TestAgent {
  engine: TestEngine
  /** The example of an operation, fit for this world. */
  exampleOf(operation: Operation): object
}

export interface Worlds {
  /** A world of its own, as it was when the first one was made. */
  open(options?: { log?: { write(line: string): void } }): Promise<World>
  /** Removes the model of the worlds; each world is stopped by who opened it. */
  close(): Promise<void>
}

/** Makes one standard world and copies it for each that is asked for: nobody's password is hashed twice. */
export async function standardWorlds(options: { config?: string } = {}): Promise<Worlds> {
  const model = await testAgent(options)
  await model.stop('keep')
  const copies = await mkdtemp(join(tmpdir(), 'fairlead-worlds-'))
  let count = 0
  return {
    async open(more = {}) {
      const folder = join(copies, String(count++))
      await cp(model.folder, folder, { recursive: true, preserveTimestamps: true })
      const engine = testEngine()
      await nameProjects(join(folder, 'deployments'), engine)
      const agent = await testAgent({ folder, extra, ...more })
      await bringJobToLife(agent)
      const stop: TestAgent['stop'] = async keep => {
        await agent.door.cancel(A_JOB, 'The test is over.')
        await agent.stop(keep)
        await engine.cleanup()
      }
      const exampleOf = ({ example }: Operation) => withProjectName(example, engine)
      return { ...agent, stop, engine, exampleOf }
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

async function bringJobToLife(agent: TestAgent): Promise<void> {
  await agent.tokenOf('key')
  agent.db.run('DELETE FROM runs WHERE id = ?', A_JOB)
  const named = mock.method(Runs, 'newId', () => A_JOB, { times: 1 })
  const { statusCode, body } = await agent.request('POST /api/probe/wait', { headers: { prefer: 'respond-async' } })
  named.mock.restore()
  if (statusCode !== 201) throw new Error(`The job of the standard world could not be started: ${statusCode} ${body}`)
}

/** Two test files share an engine: a compose file says itself what its project is called. */
async function nameProjects(folder: string, engine: TestEngine): Promise<void> {
  for (const name of await readdir(folder)) {
    const file = join(folder, name, 'compose.yaml')
    await writeFile(file, `name: ${engine.name(name)}\n${await readFile(file, 'utf8')}`)
  }
}

function withProjectName(example: object, engine: TestEngine): object {
  const { name, compose_content } = example as { name?: string; compose_content?: string }
  if (compose_content === undefined) return example
  return { ...example, compose_content: `name: ${engine.name(name ?? 'new')}\n${compose_content}` }
}

const asText = (value: unknown): string =>
  Array.isArray(value) ? value.join(',') : typeof value === 'object' ? JSON.stringify(value) : String(value)
