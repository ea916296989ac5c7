// Plans: runs that were decided and stored, but not performed. Applying decides again and compares.

import type { Database } from '../store/database.ts'
import type { Vault } from '../store/vault.ts'
import { canonical } from './canonical.ts'
import { fail, notFound } from './failure.ts'
import type { Command, RawInput } from './operation.ts'
import type { Actor } from './permission.ts'
import { type Change, type Step, summarise, toStored } from './step.ts'

export const planStatuses = ['available', 'applying', 'applied', 'failed', 'obsolete', 'expired', 'discarded'] as const
export type PlanStatus = (typeof planStatuses)[number]

export interface FileSeen {
  path: string
  sha256: string | null
}

export interface Plan {
  id: string
  action: string
  status: PlanStatus
  resource: { type: string; id: string | null }
  request: { method: string; path: string; query: object; body: unknown }
  changes: Change[]
  summary: ReturnType<typeof summarise>
  files: FileSeen[]
  created_at: string
  created_by: PlanActor
  expires_at: string
  applied_at: string | null
  applied_by: PlanActor | null
  error: string | null
}

export type PlanActor = Pick<Actor, 'type' | 'id' | 'name'>

export interface PlanRow {
  id: string
  operation: string
  action: string
  status: PlanStatus
  resource_type: string
  resource_id: string | null
  deployments: string
  shown_request: string
  changes: string
  files: string
  digest: string
  sealed: string | null
  created_at: string
  created_by: string
  applied_at: string | null
  applied_by: string | null
  error: string | null
}

/** What applying needs and nobody sees. */
export interface Sealed {
  raw: RawInput
  seed: string
  url: string
}

export class Plans {
  readonly #db: Database
  readonly #vault: Vault
  /** In force at once, for the plans that exist too. */
  readonly #lifetimeSeconds: () => number

  constructor(db: Database, vault: Vault, lifetimeSeconds: () => number) {
    this.#db = db
    this.#vault = vault
    this.#lifetimeSeconds = lifetimeSeconds
  }

  create(plan: {
    id: string
    command: Command
    actor: Actor
    resourceId: string | null
    deployments: string[]
    request: Plan['request']
    sealed: Sealed
    steps: Step[]
    changes: Change[]
    files: FileSeen[]
  }): Plan {
    const { id, command, actor } = plan
    this.#db.run(
      `INSERT INTO plans (id, operation, action, status, resource_type, resource_id, deployments, shown_request, changes, files,
        digest, sealed, created_at, created_by) VALUES (?, ?, ?, 'available', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      id,
      command.id,
      command.action,
      command.resource.type,
      plan.resourceId,
      JSON.stringify(plan.deployments),
      JSON.stringify(plan.request),
      JSON.stringify(plan.changes),
      JSON.stringify(plan.files),
      this.digest(plan.steps),
      this.#vault.seal(plan.sealed),
      new Date().toISOString(),
      JSON.stringify(actorOf(actor)),
    )
    return this.shown(this.row(id))
  }

  digest(steps: readonly Step[]): string {
    return this.#vault.digest(canonical(toStored(steps)))
  }

  row(id: string): PlanRow {
    return this.#db.get<PlanRow>('SELECT * FROM plans WHERE id = ?', id) ?? notFound('plan', id)
  }

  rows(where: string, ...values: (string | number)[]): PlanRow[] {
    return this.#db.all<PlanRow>(`SELECT * FROM plans ${where}`, ...values)
  }

  unsealed(row: PlanRow): Sealed {
    return this.#vault.unseal<Sealed>(row.sealed as string)
  }

  expiresAt(row: PlanRow): Date {
    return new Date(Date.parse(row.created_at) + this.#lifetimeSeconds() * 1000)
  }

  statusOf(row: PlanRow): PlanStatus {
    return row.status === 'available' && this.expiresAt(row).getTime() <= Date.now() ? 'expired' : row.status
  }

  /** Takes the plan for applying; of two at once, one wins. The time is looked at first. */
  take(row: PlanRow, actor: Actor): void {
    if (row.status === 'expired' || this.expiresAt(row).getTime() <= Date.now()) {
      this.#db.run(
        "UPDATE plans SET status = 'expired', sealed = NULL WHERE id = ? AND status IN ('available', 'obsolete')",
        row.id,
      )
      fail('PLAN_EXPIRED', `Plan ${row.id} expired at ${this.expiresAt(row).toISOString()}. Make a new one.`)
    }
    if (row.status === 'obsolete') this.#stale(row.id, JSON.parse(row.error ?? '[]'))
    const { changes } = this.#db.run(
      "UPDATE plans SET status = 'applying', applied_by = ? WHERE id = ? AND status = 'available'",
      JSON.stringify(actorOf(actor)),
      row.id,
    )
    if (changes === 0)
      fail(
        'PLAN_NOT_APPLICABLE',
        `Plan ${row.id} is ${this.row(row.id).status}; only an available plan can be applied.`,
      )
  }

  /** Another list of changes, or a changed file: nothing is done, and the plan is obsolete from then on. */
  requireSame(row: PlanRow, steps: readonly Step[], changes: readonly Change[], files: readonly FileSeen[]): void {
    const seen = JSON.parse(row.files) as FileSeen[]
    const changedFiles = seen.filter(file => files.find(now => now.path === file.path)?.sha256 !== file.sha256)
    const moved = [
      ...changedFiles.map(file => ({ type: 'file', id: file.path })),
      ...(this.digest(steps) === row.digest ? [] : differing(JSON.parse(row.changes), changes)),
    ]
    if (moved.length > 0) this.obsolete(row.id, moved)
  }

  /** From here on the plan can't be applied any more; what moved is told each time. */
  obsolete(id: string, moved: { type: string; id: string | null; reason?: string }[]): never {
    this.#db.run(
      "UPDATE plans SET status = 'obsolete', sealed = NULL, error = ? WHERE id = ?",
      JSON.stringify(moved),
      id,
    )
    this.#stale(id, moved)
  }

  applied(id: string): void {
    this.#db.run(
      "UPDATE plans SET status = 'applied', sealed = NULL, applied_at = ? WHERE id = ?",
      new Date().toISOString(),
      id,
    )
  }

  /** A refusal before the first step leaves the plan as it was; a failure in the middle ends it. */
  release(id: string, error: string | null): void {
    this.#db.run(
      `UPDATE plans SET status = ?, error = ?, sealed = CASE WHEN ? IS NULL THEN sealed END, applied_at = ?, applied_by = CASE WHEN ? IS NULL THEN NULL ELSE applied_by END
        WHERE id = ? AND status = 'applying'`,
      error === null ? 'available' : 'failed',
      error,
      error,
      error === null ? null : new Date().toISOString(),
      error,
      id,
    )
  }

  /** After a crash nothing is being applied any more. */
  interrupted(): void {
    this.#db.run(
      "UPDATE plans SET status = 'failed', sealed = NULL, error = 'The agent was stopped while it was applied.' WHERE status = 'applying'",
    )
  }

  /** Wipes what expired plans had sealed: they stay expired, whatever the lifetime becomes. A month later they leave the list. */
  sweep(lifetimeSeconds = this.#lifetimeSeconds()): void {
    const expired = new Date(Date.now() - lifetimeSeconds * 1000).toISOString()
    this.#db.run(
      "UPDATE plans SET status = 'expired', sealed = NULL WHERE status = 'available' AND created_at <= ?",
      expired,
    )
    this.#db.run(
      "DELETE FROM plans WHERE status <> 'available' AND created_at < ?",
      new Date(Date.now() - 30 * 86_400_000).toISOString(),
    )
  }

  shown(row: PlanRow): Plan {
    const changes = JSON.parse(row.changes) as Change[]
    const obsolete = row.status === 'obsolete'
    return {
      id: row.id,
      action: row.action,
      status: this.statusOf(row),
      resource: { type: row.resource_type, id: row.resource_id },
      request: JSON.parse(row.shown_request),
      changes,
      summary: summarise(changes),
      files: JSON.parse(row.files),
      created_at: row.created_at,
      created_by: JSON.parse(row.created_by),
      expires_at: this.expiresAt(row).toISOString(),
      applied_at: row.applied_at,
      applied_by: row.applied_by ? JSON.parse(row.applied_by) : null,
      error: obsolete ? 'What it depends on has changed.' : row.error,
    }
  }

  #stale(id: string, moved: unknown): never {
    fail('PLAN_STALE', `What plan ${id} was made from has changed since; nothing was done. Make a new plan.`, moved)
  }
}

export const actorOf = ({ type, id, name }: Actor): PlanActor => ({ type, id, name })

/** Names what differs between two lists of changes, for a person to look at. */
function differing(before: readonly Change[], after: readonly Change[]): { type: string; id: string }[] {
  const texts = (changes: readonly Change[]) => new Map(changes.map(change => [canonical(change), change]))
  const [old, now] = [texts(before), texts(after)]
  const moved = [...old, ...now]
    .filter(([text]) => !(old.has(text) && now.has(text)))
    .map(([, { type, id }]) => ({ type, id }))
  const unique = new Map(moved.map(one => [`${one.type} ${one.id}`, one]))
  // The digest covers values a plan does not show; then the whole resource is named.
  return unique.size > 0 ? [...unique.values()] : before.map(({ type, id }) => ({ type, id }))
}
