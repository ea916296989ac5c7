// Audit events as they are asked for: filters, pages, counts by day, and the stream of an export.

import { notFound } from '../../core/failure.ts'
import { momentAt, Since } from '../../core/moment.ts'
import type { Viewer } from '../../core/operation.ts'
import type { Actor } from '../../core/permission.ts'
import { COUNTED, Nullable, RecordId, Time, Type, totalOf, Words } from '../../core/schema.ts'
import type { Database, Value } from '../../store/database.ts'
import { type Ids, inSlices, type Pace } from './slices.ts'

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

export const columns = [
  'id', 'time', 'actor_type', 'actor_id', 'actor_name', 'action', 'resource_type', 'resource_id', 'success', 'status_code',
  'client_ip', 'user_agent', 'request_id', 'duration_ms', 'details',
] as const // biome-ignore format: a table of words

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

/** How long one go of a page and of an export may take, and how many events they begin with. */
const PAGE = { momentMs: 5, size: 2000 }
const EXPORT = { momentMs: 0.3, size: 50 }

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
      const row = db.get<StoredEvent>(`SELECT * FROM audit_events WHERE ${sql} AND id = ?`, ...values, id)
      return row ? shown(row) : notFound('audit event', id)
    },

    async page(filter: Filter, limit: number, offset: number) {
      const { sql, values } = conditions(actor, filter)
      const enough = Math.max(COUNTED + 1, offset + limit)
      const rows: StoredEvent[] = []
      let counted = 0
      const read = (low: number, high: number) => {
        const within = `FROM audit_events WHERE ${sql} AND id BETWEEN ? AND ?`
        const given = [...values, low, high]
        const found = db.get<{ n: number }>(
          `SELECT count(*) AS n FROM (SELECT 1 ${within} LIMIT ?)`,
          ...given,
          enough - counted,
        )?.n as number
        if (rows.length < limit && counted + found > offset) {
          const skipped = Math.max(0, offset - counted)
          const select = `SELECT * ${within} ORDER BY id DESC LIMIT ? OFFSET ?`
          rows.push(...db.all<StoredEvent>(select, ...given, limit - rows.length, skipped))
        }
        counted += found
      }
      for await (const _ of inSlices(idsOf(db, filter), PAGE, read)) if (counted >= enough) break
      return { data: rows.map(shown), ...totalOf(counted), limit, offset }
    },

    /** Newest first, a few rows at a time, whatever is added or removed meanwhile. A bad filter is refused at once. */
    all(filter: Filter, limit = Number.MAX_SAFE_INTEGER, pace: Pace = EXPORT): AsyncGenerator<ExportedEvent[]> {
      return pages(db, conditions(actor, filter), idsOf(db, filter), pace, limit)
    },

    /** Among how many events those of a filter are to be found. */
    spanOf(filter: Filter): number {
      const { first, last } = idsOf(db, filter)
      return last - first + 1
    },

    /** For whom and from where it reads. */
    actor,
    folder: db.folder,

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

async function* pages(
  db: Database,
  { sql, values }: Conditions,
  ids: Ids,
  pace: Pace,
  limit: number,
): AsyncGenerator<ExportedEvent[]> {
  const select = `SELECT ${columns.join(', ')} FROM audit_events WHERE ${sql} AND id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?`
  let left = limit
  const read = (low: number, high: number) => db.arrays(select, ...values, low, high, left)
  for await (const rows of inSlices(ids, pace, read)) {
    if (rows.length > 0) yield rows
    left -= rows.length
    if (left === 0) return
  }
}

/** Between which ids the events of the asked days lie, whichever way the clock has jumped meanwhile. */
function idsOf(db: Database, { start_time, end_time }: Filter): Ids {
  const from = momentAt('start_time', start_time)?.slice(0, 10) ?? ''
  const to = momentAt('end_time', end_time)?.slice(0, 10) ?? '9999-12-31'
  const days = 'SELECT min(first_id) AS first, max(last_id) AS last FROM audit_days WHERE day BETWEEN ? AND ?'
  const { first, last } = db.get<{ first: number | null; last: number | null }>(days, from, to) ?? {}
  return { first: first ?? 1, last: last ?? 0 }
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
  // By time there are few ids to look at already (see `idsOf`): the index would only put them out of order.
  if (from !== undefined) add('+time >= ?', from)
  if (to !== undefined) add('+time <= ?', to)
  // Who is bound to some deployments sees what was done to them, and what he did himself.
  if (actor.deployments !== 'all') {
    const names = [...actor.deployments.keys()]
    const theirs = `resource_type = 'deployment' AND +resource_id IN (${names.map(() => '?').join(', ')})`
    add(`(${theirs} OR (actor_type = ? AND +actor_id = ?))`, ...names, actor.type, actor.id)
  }
  return { sql: parts.join(' AND '), values }
}

/** The values of its columns as they are stored: 1 for success, and the details as JSON text. */
export type ExportedEvent = unknown[]

type StoredEvent = Omit<AuditEventShown, 'success' | 'details'> & { success: number; details: string }

function shown(row: StoredEvent): AuditEventShown {
  return { ...row, success: row.success === 1, details: JSON.parse(row.details) }
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
