// The agent itself: its health, what it counts, its interface for machines and for people.

import { download, query } from '../../core/operation.ts'
import { Type, Words } from '../../core/schema.ts'
import type { SystemReader } from './system.ts'

declare module '../../core/operation.ts' {
  interface Readers {
    system: SystemReader
  }
}

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
