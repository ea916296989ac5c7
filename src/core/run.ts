// The stored run: request, actor, steps, and the state and undo data of each. Audit, jobs and recovery read this one record.

import { randomUUID } from 'node:crypto'
import type { Database } from '../store/database.ts'
import type { Vault } from '../store/vault.ts'
import type { Origin } from './audit.ts'
import type { Kept } from './idempotency.ts'
import type { Actor } from './permission.ts'
import { fromStored, type Step, toStored } from './step.ts'

export type RunStatus = 'pending' | 'running' | 'completed' | 'failed' | 'cancelled'

export interface Run {
  id: string
  operation: string
  action: string
  resource: { type: string; id: string | null }
  deployment: string | null
  actor: Pick<Actor, 'type' | 'id' | 'name'>
  origin: Origin
  isJob: boolean
  planId: string | null
  /** The idempotency key it was asked for with, where its answer is not kept yet. */
  key?: Kept | undefined
  /** The steps as they were decided, with their placeholders. */
  steps: Step[]
}

export interface RunRow {
  id: string
  operation: string
  action: string
  resource_type: string
  resource_id: string | null
  deployment: string | null
  actor: string
  is_job: number
  plan_id: string | null
  status: RunStatus
  progress: number
  phase: string
  error: string | null
  answer: string | null
  created_at: string
  started_at: string | null
  completed_at: string | null
}

export type StepState = 'started' | 'done' | 'failed' | 'undone' | 'undo_failed'

export interface StoredStep {
  position: number
  state: StepState
  kept: KeptStep
}

/** Sealed: the step's data with its placeholders resolved, what undo needs, and what it returned. */
export interface KeptStep {
  data: unknown
  before: unknown
  result?: unknown
}

export class Runs {
  readonly #db: Database
  readonly #vault: Vault
  readonly #owed: (() => void)[] = []
  #paying = false

  constructor(db: Database, vault: Vault) {
    this.#db = db
    this.#vault = vault
  }

  static newId = (): string => randomUUID()

  insert(run: Run, status: RunStatus): void {
    const now = new Date().toISOString()
    this.#db.run(
      `INSERT INTO runs (id, operation, action, resource_type, resource_id, deployment, actor, is_job, plan_id, request, steps,
        status, progress, phase, created_at, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', ?, ?)`,
      run.id,
      run.operation,
      run.action,
      run.resource.type,
      run.resource.id,
      run.deployment,
      JSON.stringify(run.actor),
      run.isJob ? 1 : 0,
      run.planId,
      this.#vault.seal({ origin: run.origin, key: run.key }),
      this.#vault.seal(toStored(run.steps)),
      status,
      now,
      status === 'running' ? now : null,
    )
  }

  /** A job gets its steps when they are decided. */
  start(run: Run): void {
    this.#pay()
    const { changes } = this.#db.run(
      "UPDATE runs SET steps = ?, status = 'running', resource_id = ?, started_at = ? WHERE id = ?",
      this.#vault.seal(toStored(run.steps)),
      run.resource.id,
      new Date().toISOString(),
      run.id,
    )
    if (changes === 0) this.insert(run, 'running')
  }

  stepIs(id: string, position: number, state: 'started' | 'done', kept: KeptStep): void {
    this.#db.run(
      'INSERT OR REPLACE INTO run_steps (run_id, position, state, before) VALUES (?, ?, ?, ?)',
      id,
      position,
      state,
      this.#vault.seal(kept),
    )
  }

  stepState(id: string, position: number, state: StepState): void {
    this.#db.run('UPDATE run_steps SET state = ? WHERE run_id = ? AND position = ?', state, id, position)
  }

  progress(id: string, progress: number, phase: string): void {
    this.#db.run('UPDATE runs SET progress = ?, phase = ? WHERE id = ?', Math.round(progress), phase, id)
  }

  /** Ends a run; what was sealed for its undo is wiped. */
  finish(id: string, status: RunStatus, error: string | null): void {
    this.#db.transaction(() => {
      this.#db.run(
        `UPDATE runs SET status = ?, error = ?, progress = CASE WHEN ? = 'completed' THEN 100 ELSE progress END, completed_at = ?,
          request = '', steps = '' WHERE id = ?`,
        status,
        error,
        status,
        new Date().toISOString(),
        id,
      )
      this.#db.run('UPDATE run_steps SET before = NULL WHERE run_id = ?', id)
    })
  }

  /** Writes now, or as soon as it is possible again: a full disk must not leave a run under way for ever. */
  owe(write: () => void): void {
    this.#owed.push(write)
    this.#pay()
  }

  keepAnswer(id: string, status: number, body: unknown): void {
    this.#db.run('UPDATE runs SET answer = ? WHERE id = ?', this.#vault.seal({ status, body }), id)
  }

  answerOf(row: RunRow): { status: number; body: unknown } | null {
    return row.answer ? this.#vault.unseal(row.answer) : null
  }

  row(id: string): RunRow | undefined {
    this.#pay()
    return this.#db.get<RunRow>('SELECT * FROM runs WHERE id = ?', id)
  }

  /** Runs that nobody owns any more: their process is gone. */
  unfinished(): { run: Run; stored: StoredStep[] }[] {
    const rows = this.#db.all<RunRow & { request: string; steps: string }>(
      "SELECT * FROM runs WHERE status IN ('pending', 'running') ORDER BY created_at DESC",
    )
    return rows.map(row => ({
      run: {
        id: row.id,
        operation: row.operation,
        action: row.action,
        resource: { type: row.resource_type, id: row.resource_id },
        deployment: row.deployment,
        actor: JSON.parse(row.actor),
        ...this.#vault.unseal<Pick<Run, 'origin' | 'key'>>(row.request),
        isJob: row.is_job === 1,
        planId: row.plan_id,
        steps: fromStored(this.#vault.unseal(row.steps)) as Step[],
      },
      stored: this.#db
        .all<{ position: number; state: StepState; before: string }>(
          'SELECT position, state, before FROM run_steps WHERE run_id = ? ORDER BY position',
          row.id,
        )
        .map(step => ({ position: step.position, state: step.state, kept: this.#vault.unseal(step.before) })),
    }))
  }

  /** Finished runs older than this go; the audit log keeps what they did. */
  forget(before: Date): void {
    this.#db.run('DELETE FROM runs WHERE completed_at < ?', before.toISOString())
  }

  #pay(): void {
    if (this.#paying) return
    this.#paying = true
    try {
      for (let write = this.#owed[0]; write; write = this.#owed[0]) {
        write()
        this.#owed.shift()
      }
    } catch (error) {
      // Who reads or writes a run next tries again; after a restart recovery does. A defect is no reason to.
      if ((error as { errcode?: number }).errcode !== undefined) return
      this.#owed.shift()
      throw error
    } finally {
      this.#paying = false
    }
  }
}
