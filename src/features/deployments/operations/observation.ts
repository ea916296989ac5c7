// Looking at a deployment that runs: its logs, where they come from, what it uses, and who may touch it.

import { fail } from '../../../core/failure.ts'
import { command, follow, query, streamed } from '../../../core/operation.ts'
import { Type, Words } from '../../../core/schema.ts'
import { editYaml } from '../../../lib/yaml-edit.ts'
import { DeploymentName } from '../../users/index.ts'
import { META_FILE } from '../folders.ts'
import { LogSource } from '../log-sources.ts'
import { LogLineSchema, logFields } from '../logs.ts'
import { DeploymentStats } from '../stats.ts'
import { fileStep } from '../steps.ts'
import { at, lock, resource } from './shape.ts'

export const logs = query('deployments.logs', {
  summary: 'Read the logs of a deployment: filtered, merged by time, then the last lines',
  http: { method: 'GET', path: '/api/deployments/:name/logs' },
  permission: 'deployments:read',
  scope: at('read'),
  input: Type.Object({ name: DeploymentName, ...logFields }),
  output: Type.Array(LogLineSchema),
  example: { name: 'blog', tail: 10 },
  fails: ['ENGINE_UNAVAILABLE', 'UPSTREAM_FAILED', 'TIMEOUT'],
  read: async ({ deployments, signal }, { name, ...asked }) =>
    streamed(await deployments.readLogs(name, asked, signal)),
})

export const logsStream = follow('deployments.logs_stream', {
  summary: 'Follow the logs of a deployment over a websocket',
  http: { method: 'GET', path: '/api/deployments/:name/logs/stream' },
  permission: 'deployments:read',
  scope: at('read'),
  input: Type.Object({ name: DeploymentName, ...logFields }),
  example: { name: 'blog', tail: 10 },
  fails: ['ENGINE_UNAVAILABLE', 'UPSTREAM_FAILED', 'TIMEOUT'],
  async open({ deployments, signal }, { name, ...asked }) {
    const batches = await deployments.followLogs(name, asked, signal)
    return (async function* () {
      for await (const lines of batches) for (const line of lines) yield { type: 'log', ...line }
    })()
  },
})

export const sources = query('deployments.log_sources', {
  summary: 'List the log sources of a deployment',
  http: { method: 'GET', path: '/api/deployments/:name/log-sources' },
  permission: 'deployments:read',
  scope: at('read'),
  input: Type.Object({ name: DeploymentName }),
  output: Type.Array(LogSource),
  example: { name: 'blog' },
  read: ({ deployments }, { name }) => deployments.logSources(name),
})

export const setSources = command('deployments.set_log_sources', {
  summary: 'Replace the custom log files of a deployment',
  http: { method: 'PUT', path: '/api/deployments/:name/log-sources' },
  permission: 'deployments:write',
  scope: at('write'),
  resource,
  locks: lock,
  input: Type.Object({
    name: DeploymentName,
    sources: Type.Array(
      Type.Object({
        id: Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,62}$', 'x-hint': 'must be 1 to 63 of a-z, 0-9, _ and -' }),
        name: Type.String({ minLength: 1, maxLength: 100 }),
        path: Type.String({ minLength: 1, maxLength: 1000, description: 'Relative to the folder of the deployment' }),
      }),
      { maxItems: 50 },
    ),
  }),
  output: Type.Array(LogSource),
  example: { name: 'blog', sources: [{ id: 'app', name: 'Application', path: 'logs/app.log' }] },
  async decide({ deployments }, { name, sources }) {
    const { folder } = await deployments.observed(name)
    const builtin = (await deployments.logSources(name)).filter(one => one.builtin)
    for (const { id } of sources) {
      if (builtin.some(one => one.id === id)) fail('CONFLICT', `"${id}" is a built-in log source. Choose another id.`)
      if (sources.filter(one => one.id === id).length > 1)
        fail('VALIDATION_FAILED', `Two sources are called "${id}".`, [
          { path: 'sources', message: `has "${id}" twice` },
        ])
    }
    for (const { path } of sources) await deployments.requireInside(name, path)
    const text = editYaml(folder.metaText ?? '', ['log_sources'], sources.length === 0 ? undefined : sources)
    return fileStep(name, META_FILE, folder.metaText, text)
  },
  reply: ({ deployments }, { name }) => deployments.logSources(name),
  message: 'The log sources were changed.',
})

export const stats = query('deployments.stats', {
  summary: 'What the running containers of a deployment use',
  http: { method: 'GET', path: '/api/deployments/:name/stats' },
  permission: 'deployments:read',
  scope: at('read'),
  input: Type.Object({ name: DeploymentName }),
  output: DeploymentStats,
  example: { name: 'blog' },
  fails: ['ENGINE_UNAVAILABLE'],
  read: ({ deployments, signal }, { name }) => deployments.stats(name, signal),
})

export const users = query('deployments.users', {
  summary: 'List the users with access to a deployment',
  http: { method: 'GET', path: '/api/deployments/:name/users' },
  permission: 'deployments:read',
  scope: at('read'),
  input: Type.Object({ name: DeploymentName }),
  output: Type.Array(
    Type.Object({ user_id: Type.Integer(), username: Type.String(), access_level: Words(['read', 'write', 'admin']) }),
  ),
  example: { name: 'shop' },
  async read({ deployments, users }, { name }) {
    await deployments.requireKnown(name)
    return users.ofDeployment(name)
  },
})
