// The whole agent in a temporary folder, with the standard test world in it: what every example of an operation refers to.

import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LightMyRequestResponse } from 'fastify'
import pino from 'pino'
import { engineAddress } from '../adapters/container-engine/address.ts'
import { openEngine } from '../adapters/container-engine/engine.ts'
import { type Agent, type AgentOptions, openAgent } from '../agent.ts'
import { loadConfig } from '../config.ts'
import { system } from '../core/permission.ts'

export interface TestAgentOptions extends Pick<AgentOptions, 'extra'> {
  /** More configuration, as nested YAML text. */
  config?: string
  /** Leave out users, keys and deployments. */
  empty?: boolean
  /** An existing folder of a stopped test agent, to start again on. */
  folder?: string
  /** Where the log goes; nowhere by default. */
  log?: { write(line: string): void }
}

export interface Ask {
  /** Who asks: somebody of the standard world, a token, or nobody. The administrator's configured key by default. */
  as?: Name | { token: string } | 'nobody'
  body?: unknown
  query?: Record<string, string>
  headers?: Record<string, string>
  payload?: string | Buffer
}

export type Name = 'key' | 'alice' | 'bob' | 'vera' | 'nina'

export interface TestAgent extends Agent {
  folder: string
  apiKey: string
  request(line: string, ask?: Ask): Promise<LightMyRequestResponse>
  tokenOf(name: Name): Promise<string>
  /** Stops the agent and, unless it is to be started again, removes its folder. */
  stop(keep?: 'keep'): Promise<void>
}

export const PASSWORD = 'correct horse battery'
export const A_PLAN = '00000000-0000-4000-8000-000000000001'
export const A_JOB = '00000000-0000-4000-8000-000000000002'
export const A_CREDENTIAL = 'test-credential'
export const A_SPARE_CREDENTIAL = 'test-spare-credential'
export const API_KEY = 'fl_0123456789012345678901234567890123456789'

/**
 * The standard test world: alice (1, admin), bob (2, operator, level write on shop), vera (3, viewer, level read on shop),
 * nina (4, operator without a deployment); deployments blog and shop; API key 1 of alice; one available plan; one job;
 * two credentials, of which the registry `local` uses one; on the engine a container, an image, a volume and a network.
 */
export async function testAgent(options: TestAgentOptions = {}): Promise<TestAgent> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'fairlead-test-')))
  const file = join(folder, 'config.yml')
  if (!options.folder) await writeWorldFiles(folder, file, options)
  const loaded = await loadConfig({ file, env: {}, cwd: folder })
  if (!options.empty) await fillEngine(loaded.config.engine.socket)
  const log = pino({ level: 'trace' }, options.log ?? { write: () => {} })
  const agent = await openAgent({
    loaded,
    env: process.env,
    log,
    checkAnswers: true,
    ...(options.extra ? { extra: options.extra } : {}),
  })
  const tokens = new Map<Name, Promise<string>>()
  const login = async (body: object) =>
    (await agent.app.inject({ method: 'POST', url: '/api/auth/login', body })).json().token as string
  const tokenOf = (name: Name) => {
    const known =
      tokens.get(name) ?? login(name === 'key' ? { api_key: API_KEY } : { username: name, password: PASSWORD })
    tokens.set(name, known)
    return known
  }
  const request = async (line: string, { as = 'key', body, query, headers = {}, payload }: Ask = {}) => {
    const [method, url] = line.split(' ') as ['GET', string]
    const token = as === 'nobody' ? undefined : typeof as === 'string' ? await tokenOf(as) : as.token
    return agent.app.inject({
      method,
      url,
      headers: { ...(token ? { authorization: `Bearer ${token}` } : {}), ...headers },
      ...(query ? { query } : {}),
      ...(payload !== undefined ? { payload } : body !== undefined ? { body: body as object } : {}),
    })
  }
  const stop = async (keep?: 'keep') => {
    await agent.close()
    if (keep) return
    await removeContainers(projectPrefix(folder))
    await rm(folder, { recursive: true, force: true })
  }
  const test = { ...agent, folder, apiKey: API_KEY, request, tokenOf, stop }
  if (!options.folder && !options.empty) await fillWorld(test)
  return test
}

async function writeWorldFiles(folder: string, file: string, { config = '', empty }: TestAgentOptions): Promise<void> {
  await writeFile(file, `auth:\n  jwt_secret: test-secret-of-this-agent-only\n  api_keys: [${API_KEY}]\n${config}`, {
    mode: 0o600,
  })
  await mkdir(join(folder, 'deployments'), { recursive: true })
  if (empty) return
  for (const name of ['blog', 'shop']) {
    await mkdir(join(folder, 'deployments', name), { recursive: true })
    await writeFile(join(folder, 'deployments', name, 'compose.yaml'), composeOf(`${projectPrefix(folder)}-${name}`))
  }
}

/** Agents of several tests share one engine: each has project names of its own. */
const projectPrefix = (folder: string): string => `flt${createHash('sha1').update(folder).digest('hex').slice(0, 8)}`

const composeOf = (project: string) => `# The standard deployment of the tests.
name: ${project}
services:
  web:
    image: fairlead-test/busybox:1
    command: httpd -f -p 8080 -h /www
    init: true
    stop_grace_period: 1s
`

/** What the standard deployments left on the engine. */
async function removeContainers(prefix: string): Promise<void> {
  const engine = openEngine(engineAddress(undefined, process.env))
  const ours = (labels: Record<string, string> | null | undefined) =>
    labels?.['com.docker.compose.project']?.startsWith(prefix)
  try {
    const containers = (await engine.containers.list()).filter(one => ours(one.Labels))
    await Promise.all(containers.map(one => engine.containers.remove(one.Id, { force: true })))
    const networks = (await engine.networks.list()).filter(one => ours(one.Labels))
    await Promise.all(networks.map(one => engine.networks.remove(one.Id)))
  } catch {
    // Without an engine there is nothing to remove.
  } finally {
    engine.close()
  }
}

async function fillWorld(test: TestAgent): Promise<void> {
  const people = [
    ['alice', 'admin'],
    ['bob', 'operator'],
    ['vera', 'viewer'],
    ['nina', 'operator'],
  ] as const
  for (const [username, role] of people) {
    await ok(test.request('POST /api/users', { body: { username, role, password: PASSWORD } }))
  }
  await ok(test.request('POST /api/users/2/deployments', { body: { deployment_name: 'shop', access_level: 'write' } }))
  await ok(test.request('POST /api/users/3/deployments', { body: { deployment_name: 'shop', access_level: 'read' } }))
  await ok(test.request('POST /api/apikeys', { as: 'alice', body: { name: 'first', role: 'admin' } }))
  await ok(test.request('PUT /api/users/3', { query: { plan: 'true' }, body: { email: 'vera@example.org' } }))
  test.db.run('UPDATE plans SET id = ?', A_PLAN)
  for (const id of [A_CREDENTIAL, A_SPARE_CREDENTIAL]) {
    const credentials = { username: 'deployer', password: PASSWORD }
    await ok(test.request('POST /api/credentials', { body: { name: id, type: 'registry', credentials } }))
    test.db.run('UPDATE credentials SET id = name')
  }
  const local = { slug: 'local', name: 'Local', url: '127.0.0.1:5000', credential_id: A_CREDENTIAL }
  await ok(test.request('POST /api/registries', { body: local }))
  const job = test.door.runs
  job.insert(
    {
      id: A_JOB,
      operation: 'users.update',
      action: 'user.update',
      resource: { type: 'user', id: '3' },
      deployment: null,
      actor: system,
      origin: { requestId: 'test', clientIp: null, userAgent: null },
      isJob: true,
      planId: null,
      steps: [],
    },
    'running',
  )
}

/**
 * What the examples name on the engine. It is shared by all agents of a test run, so it is made when it is missing and
 * never taken away. Without an engine there is nothing to make.
 */
async function fillEngine(socket: string): Promise<void> {
  const engine = openEngine(engineAddress(socket, process.env))
  const limit = { deadlineMs: 5000 }
  const image = 'fairlead-test/busybox:1'
  try {
    await engine.ping(limit)
  } catch {
    engine.close()
    return
  }
  const idle = { Image: image, Cmd: ['sleep', '3600'], StopTimeout: 1 }
  const [container] = await Promise.allSettled([
    engine.containers.create('fairlead-test-idle', idle, limit),
    engine.images.tag(image, 'fairlead-test/spare:1', limit),
    engine.volumes.create({ name: 'fairlead-test-volume' }, limit),
  ])
  // Of several at once only one makes the container. The engine would let each of them make a network of that name.
  const network = 'fairlead-test-network'
  const isFirst = container.status === 'fulfilled'
  const there = (await engine.networks.list()).some(one => one.Name === network)
  if (isFirst && !there) await engine.networks.create({ name: network }, limit)
  engine.close()
}

async function ok(answer: Promise<LightMyRequestResponse>): Promise<void> {
  const { statusCode, body } = await answer
  if (statusCode >= 400) throw new Error(`The test world could not be made: ${statusCode} ${body}`)
}
