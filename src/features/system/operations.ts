// The agent itself: its health, what it counts, its log, its interface for machines and for people.

import { download, follow, query, streamed } from '../../core/operation.ts'
import { Type, Words } from '../../core/schema.ts'
import { LogEntry, LogSource, logFields, requireDeployment } from './logs.ts'
import { Stats } from './stats.ts'

const Check = Type.Object({ status: Words(['ok', 'failed', 'off']), message: Type.Optional(Type.String()) })

export const health = query('system.health', {
  summary: 'Health check',
  description: 'Always 200 while the agent answers; `degraded` says which part is not there.',
  http: { method: 'GET', path: '/api/health', bare: true },
  permission: 'public',
  input: Type.Object({}),
  output: Type.Object({
    status: Words(['healthy', 'degraded']),
    version: Type.String(),
    uptime: Type.String(),
    checks: Type.Object({ engine: Check, store: Check, proxy: Check, disk: Check }),
  }),
  example: {},
  read: ({ system }) => system.health(),
})

export const stats = query('system.stats', {
  summary: 'System statistics',
  description:
    'Counts of what the caller may see, and the figures of the machine. With the engine away, what was last known.',
  http: { method: 'GET', path: '/api/stats' },
  permission: 'system:read',
  input: Type.Object({}),
  output: Stats,
  example: {},
  read: async ({ system, deployments }) => system.stats(await deployments.list()),
})

export const logSources = query('system.log_sources', {
  summary: 'List the logs of the agent',
  http: { method: 'GET', path: '/api/system/logs/sources' },
  permission: 'system:read',
  input: Type.Object({}),
  output: Type.Array(LogSource),
  example: {},
  read: ({ system }) => system.logs().sources(),
})

const ofDeployment = ({ deployment }: { deployment?: string }) =>
  deployment === undefined ? [] : [{ deployment, level: 'read' as const }]

export const logs = query('system.logs', {
  summary: 'Read a log of the agent',
  description: 'Oldest first. Who is no administrator names a deployment of his, and gets the lines about it.',
  http: { method: 'GET', path: '/api/system/logs' },
  permission: 'system:read',
  scope: ofDeployment,
  admit: requireDeployment,
  input: Type.Object(logFields),
  output: Type.Array(LogEntry),
  example: { source: 'agent', tail: 50, filter: 'request' },
  fails: ['FORBIDDEN', 'NOT_FOUND'],
  read: ({ system }, asked) => streamed(system.logs().read(asked)),
})

export const followLogs = follow('system.follow_logs', {
  summary: 'Follow a log of the agent',
  description:
    'Frames `{"type":"log", time, service, stream, line}`: first the lines that `system.logs` would give, then each as it is written.',
  http: { method: 'GET', path: '/api/system/logs/stream' },
  permission: 'system:read',
  scope: ofDeployment,
  admit: requireDeployment,
  input: Type.Object(logFields),
  example: { source: 'agent', tail: 10 },
  fails: ['FORBIDDEN', 'NOT_FOUND'],
  open: ({ system, signal }, asked) => frames(system.logs().follow(asked, signal)),
})

export const openapi = query('system.openapi', {
  summary: 'This interface as an OpenAPI 3.1 document',
  http: { method: 'GET', path: '/api/openapi.json', bare: true },
  permission: 'authenticated',
  input: Type.Object({}),
  output: Type.Object({}, { additionalProperties: true }),
  example: {},
  read: ({ system }) => system.openapi(),
})

export const docs = download('system.docs', {
  summary: 'This interface for people, in a browser',
  http: { method: 'GET', path: '/api/docs' },
  permission: 'public',
  mediaTypes: ['text/html'],
  input: Type.Object({}),
  example: {},
  open: ({ system }) => system.docs(),
})

async function* frames(batches: AsyncIterable<object[]>): AsyncGenerator<object> {
  for await (const entries of batches) for (const entry of entries) yield { type: 'log', ...entry }
}
