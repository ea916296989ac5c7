// The audit log: list with every filter, one event, counts, export as a file, and cleaning up.

import { fail } from '../../core/failure.ts'
import { command, download, query } from '../../core/operation.ts'
import { Limit, Offset, Paged, RecordId, Type, Words } from '../../core/schema.ts'
import { cleanup as cleanupStep } from './cleanup.ts'
import { AuditEvent, filterFields } from './events.ts'
import { exported } from './export.ts'

const { start_time, end_time } = filterFields

export const events = query('audit.events', {
  summary: 'List audit events, newest first',
  http: { method: 'GET', path: '/api/audit/events' },
  permission: 'audit:read',
  input: Type.Object({ ...filterFields, limit: Limit(50), offset: Offset }),
  output: Paged(AuditEvent),
  example: { actor_type: 'user', success: true, limit: 10, offset: 0 },
  read: ({ audit }, { limit, offset, ...filter }) => audit.page(filter, limit, offset),
})

export const event = query('audit.event', {
  summary: 'Show an audit event',
  http: { method: 'GET', path: '/api/audit/events/:id' },
  permission: 'audit:read',
  input: Type.Object({ id: RecordId }),
  output: AuditEvent,
  example: { id: 1 },
  read: ({ audit }, { id }) => audit.one(id),
})

const counts = { events: Type.Integer(), failures: Type.Integer() }

export const stats = query('audit.stats', {
  summary: 'Count audit events by action, actor and day',
  description: 'Days are whole, in UTC.',
  http: { method: 'GET', path: '/api/audit/stats' },
  permission: 'audit:read',
  input: Type.Object({ start_time, end_time }),
  output: Type.Object({
    total: Type.Integer(),
    failures: Type.Integer(),
    by_action: Type.Array(Type.Object({ action: Type.String(), ...counts })),
    by_actor: Type.Array(Type.Object({ actor_type: Type.String(), actor_name: Type.String(), ...counts })),
    by_day: Type.Array(Type.Object({ day: Type.String(), ...counts })),
  }),
  example: { start_time: '7d' },
  read: ({ audit }, { start_time, end_time }) => audit.stats(start_time, end_time),
})

export const exportEvents = download('audit.export', {
  summary: 'Export audit events as a file, newest first',
  http: { method: 'POST', path: '/api/audit/export' },
  permission: 'audit:read',
  mediaTypes: ['application/json', 'text/csv'],
  input: Type.Object({
    format: Type.Optional(Words(['json', 'csv'])),
    ...filterFields,
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'All when left out' }),
    ),
  }),
  example: { format: 'csv', actor_type: 'user', limit: 1000 },
  open({ audit }, { format = 'json', limit, ...filter }) {
    return {
      mediaType: format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8',
      filename: `audit.${format}`,
      chunks: exported(audit, { format, filter, limit }),
    }
  },
})

export const cleanup = command('audit.cleanup', {
  summary: 'Remove old audit events',
  http: { method: 'POST', path: '/api/audit/cleanup', also: ['DELETE'] },
  permission: 'audit:write',
  resource: { type: 'audit', id: () => null },
  locks: () => ['audit'],
  input: Type.Object({ older_than: Type.Integer({ minimum: 0, maximum: 3_153_600_000, description: 'Seconds' }) }),
  output: Type.Object({ deleted: Type.Integer() }),
  example: { older_than: 31_536_000 },
  decide({ actor }, { older_than }) {
    if (actor.deployments !== 'all') fail('FORBIDDEN', 'Only who sees all deployments can remove audit events.')
    return [cleanupStep({ older_than }, { as: 'cleanup' })]
  },
  reply: (_ask, _input, { cleanup }) => cleanup as { deleted: number },
  message: 'Old audit events were removed.',
})
