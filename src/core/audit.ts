// The audit log: one event for every mutation, refused or done, for every login and for every plan applied.

import type { Database } from '../store/database.ts'
import type { Actor } from './permission.ts'

export interface Origin {
  requestId: string
  clientIp: string | null
  userAgent: string | null
}

export interface AuditEntry {
  actor: Pick<Actor, 'type' | 'id' | 'name'>
  action: string
  resource: { type: string; id: string | null }
  status: number
  startedAt: number
  origin: Origin
  /** Redacted by whoever writes the entry. */
  details: object
}

export class Audit {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  write(entry: AuditEntry): void {
    const { actor, action, resource, status, startedAt, origin, details } = entry
    const time = new Date().toISOString()
    const failed = status < 400 ? 0 : 1
    this.#db.transaction(() => {
      this.#db.run(
        `INSERT INTO audit_events (time, actor_type, actor_id, actor_name, action, resource_type, resource_id, success,
        status_code, client_ip, user_agent, request_id, duration_ms, details) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        time,
        actor.type,
        actor.id,
        actor.name,
        action,
        resource.type,
        resource.id,
        1 - failed,
        status,
        origin.clientIp,
        origin.userAgent,
        origin.requestId,
        Math.max(0, Math.round(performance.now() - startedAt)),
        JSON.stringify(details),
      )
      this.#db.run(
        `INSERT INTO audit_counts (day, action, actor_type, actor_name, events, failures) VALUES (?, ?, ?, ?, 1, ?)
        ON CONFLICT DO UPDATE SET events = events + 1, failures = failures + excluded.failures`,
        time.slice(0, 10),
        action,
        actor.type,
        actor.name,
        failed,
      )
    })
  }
}
