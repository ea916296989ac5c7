// Audit events as they are asked for: filters, pages, counts by day, and the stream of an export.

import { notFound } from '../../core/failure.ts'
import { momentAt, Since } from '../../core/moment.ts'
import type { Viewer } from '../../core/operation.ts'
import type { Actor } from '../../core/permission.ts'
import { COUNTED, Nullable, RecordId, Time, Type, totalOf, Words } from '../../core/schema.ts'
import type { Database, Value } from '../../store/database.ts'

export const ActorType = Words(['user', 'api_key', 'system'])

export const AuditEvent = Type.Object({
  id: RecordId,
  time: Time(),
  actor_type: ActorType,
  actor_id: Nullable(Type.Integer()),
  actor_name: Type.String(),
  action: Type.String(),
  resource_type: Type.String(),
  resource_id: Nullable(Type.String()),
  success: Type.Boolean(),
  status_code: Type.Integer(),
  client_ip: Nullable(Type.String()),
  user_agent: Nullable(Type.String()),
  request_id: Type.String(),
  duration_ms: Type.Integer(),
  details: Type.Unknown(),
})

const Word = () => Type.Optional(Type.String({ maxLength: 300 }))

export const filterFields = {
  actor_id: Type.Optional(RecordId),
  actor_type: Type.Optional(ActorType),
  action: Word(),
  resource_type: Word(),
  resource_id: Word(),
  success: Type.Optional(Type.Boolean()),
  client_ip: Word(),
  start_time: Type.Optional(Since('Not before this.')),
  end_time: Type.Optional(Since('Not after this.')),
}

export interface Filter {
  actor_id?: number
  actor_type?: string
  action?: string
  resource_type?: string
  resource_id?: string
  success?: boolean
  client_ip?: string
  start_time?: string
  end_time?: string
}

interface Row {
  id: number
  success: number
  details: string
}

/** Rows read at a time by an export: few enough that other requests are not held up. */
const EXPORT_ROWS = 50

declare module '../../core/operation.ts' {
  interface Readers {
    audit: AuditReader
  }
}

export type AuditReader = ReturnType<typeof auditReader>

export function auditReader(db: Database, { actor }: Viewer) {
  return {
    one(id: number) {
      const { sql, values } = conditions(actor, {})
      const row = db.get<Row>(`SELECT * FROM audit_events WHERE ${sql} AND id = ?`, ...values, id)
      return row ? shown(row) : notFound('audit event', id)
    },

    page(filter: Filter, limit: number, offset: number) {
      const { sql, values } = conditions(actor, filter)
      const rows = db.all<Row>(
        `SELECT * FROM audit_events WHERE ${sql} ORDER BY id DESC LIMIT ? OFFSET ?`,
        ...values,
        limit,
        offset,
      )
      const counted = db.get<{ n: number }>(
        `SELECT count(*) AS n FROM (SELECT 1 FROM audit_events WHERE ${sql} ORDER BY id DESC LIMIT ${COUNTED + 1})`,
        ...values,
      )?.n as number
      return { data: rows.map(shown), ...totalOf(counted), limit, offset }
    },

    /** Newest first, a few rows at a time, whatever is added or removed meanwhile. A bad filter is refused at once. */
    all(filter: Filter, limit = Number.POSITIVE_INFINITY): AsyncGenerator<AuditEventShown[]> {
      return pages(db, conditions(actor, filter), limit)
    },

    stats(since: string | undefined, until: string | undefined) {
      const from = momentAt('start_time', since)?.slice(0, 10) ?? ''
      const to = momentAt('end_time', until)?.slice(0, 10) ?? '9999-12-31'
      const { sql, values } = counts(actor)
      const by = <T>(columns: string, order: string) =>
        db.all<T>(
          `SELECT ${columns}, sum(events) AS events, sum(failures) AS failures FROM (${sql}) WHERE day BETWEEN ? AND ?
            GROUP BY ${columns} ORDER BY ${order} LIMIT 1000`,
          ...values,
          from,
          to,
        )
      const by_day = by<{ day: string; events: number; failures: number }>('day', 'day')
      return {
        total: by_day.reduce((sum, day) => sum + day.events, 0),
        failures: by_day.reduce((sum, day) => sum + day.failures, 0),
        by_action: by<{ action: string; events: number; failures: number }>('action', 'events DESC'),
        by_actor: by<{ actor_type: string; actor_name: string; events: number; failures: number }>(
          'actor_type, actor_name',
          'events DESC',
        ),
        by_day,
      }
    },
  }
}

async function* pages(db: Database, { sql, values }: Conditions, limit: number): AsyncGenerator<AuditEventShown[]> {
  let before = Number.MAX_SAFE_INTEGER
  for (let sent = 0; sent < limit; ) {
    const rows = db.all<Row>(
      `SELECT * FROM audit_events WHERE ${sql} AND id < ? ORDER BY id DESC LIMIT ?`,
      ...values,
      before,
      Math.min(EXPORT_ROWS, limit - sent),
    )
    if (rows.length === 0) return
    before = (rows.at(-1) as Row).id
    sent += rows.length
    yield rows.map(shown)
    await new Promise(setImmediate)
  }
}

/** The counts are kept over all events; who sees only some of them has those counted. */
function counts(actor: Actor): Conditions {
  if (actor.deployments === 'all') return { sql: 'SELECT * FROM audit_counts', values: [] }
  const { sql, values } = conditions(actor, {})
  const columns = 'substr(time, 1, 10) AS day, action, actor_type, actor_name, 1 AS events, 1 - success AS failures'
  return { sql: `SELECT ${columns} FROM audit_events WHERE ${sql}`, values }
}

interface Conditions {
  sql: string
  values: Value[]
}

function conditions(actor: Actor, filter: Filter): Conditions {
  const parts: string[] = ['1 = 1']
  const values: Value[] = []
  const add = (part: string, ...given: Value[]) => {
    parts.push(part)
    values.push(...given)
  }
  for (const column of ['actor_id', 'actor_type', 'action', 'resource_type', 'resource_id', 'client_ip'] as const) {
    const value = filter[column]
    if (value !== undefined) add(`${column} = ?`, value)
  }
  if (filter.success !== undefined) add('success = ?', filter.success ? 1 : 0)
  const [from, to] = [momentAt('start_time', filter.start_time), momentAt('end_time', filter.end_time)]
  if (from !== undefined) add('time >= ?', from)
  if (to !== undefined) add('time <= ?', to)
  // Who is bound to some deployments sees what was done to them, and what he did himself.
  if (actor.deployments !== 'all') {
    const names = [...actor.deployments.keys()]
    const theirs = `resource_type = 'deployment' AND resource_id IN (${names.map(() => '?').join(', ')})`
    add(`(${theirs} OR (actor_type = ? AND actor_id = ?))`, ...names, actor.type, actor.id)
  }
  return { sql: parts.join(' AND '), values }
}

function shown(row: Row) {
  return { ...row, success: row.success === 1, details: JSON.parse(row.details) } as unknown as AuditEventShown
}

export interface AuditEventShown {
  id: number
  time: string
  actor_type: 'user' | 'api_key' | 'system'
  actor_id: number | null
  actor_name: string
  action: string
  resource_type: string
  resource_id: string | null
  success: boolean
  status_code: number
  client_ip: string | null
  user_agent: string | null
  request_id: string
  duration_ms: number
  details: unknown
}
