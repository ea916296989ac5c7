// Jobs as a caller may see them: the runs whose answer did not wait. And the step that cancels one.

import type { Door } from '../../core/door.ts'
import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { type Actor, mayUse, sees } from '../../core/permission.ts'
import type { RunRow } from '../../core/run.ts'
import { Nullable, Time, Type, Words } from '../../core/schema.ts'
import { stepKind } from '../../core/step.ts'
import type { Database } from '../../store/database.ts'

export const jobStatuses = ['pending', 'running', 'completed', 'failed', 'cancelled'] as const

export const Job = Type.Object({
  id: Type.String(),
  type: Type.String({ description: 'What it does, as in the audit log: `deployment.start`' }),
  status: Words(jobStatuses),
  progress: Type.Integer({ minimum: 0, maximum: 100 }),
  phase: Type.String(),
  deployment_name: Nullable(Type.String()),
  created_at: Time(),
  started_at: Nullable(Time()),
  completed_at: Nullable(Time()),
  error: Nullable(Type.String()),
  result: Nullable(Type.Object({ status: Type.Integer(), body: Type.Unknown() }, { description: 'The answer, when it has ended' })),
})

declare module '../../core/operation.ts' {
  interface Readers {
    jobs: JobReader
  }
}
declare module '../../core/step.ts' {
  interface World {
    jobs: { cancel(id: string, reason: string): Promise<boolean> }
  }
}

export type JobReader = ReturnType<typeof jobReader>

export function jobReader(db: Database, door: Pick<Door, 'runs' | 'operations'>, { actor }: Viewer) {
  const visible = (row: RunRow) => maySee(actor, row, door)
  return {
    one(id: string) {
      const row = door.runs.row(id)
      return row?.is_job && visible(row) ? shown(row, door) : notFound('job', id)
    },
    page(status: string | undefined, limit: number, offset: number) {
      const rows = db.all<RunRow>('SELECT * FROM runs WHERE is_job = 1 ORDER BY created_at DESC, id').filter(visible)
      const seen = status === undefined ? rows : rows.filter(row => row.status === status)
      return { data: seen.slice(offset, offset + limit).map(row => shown(row, door)), total: seen.length, limit, offset }
    },
  }
}

/** Ends the work and its programs, and waits until what it had done is undone. */
export const cancelJob = stepKind<{ id: string; by: string }>('job.cancel', {
  describe: ({ id }) => ({ type: 'job', id, action: 'run', reason: 'is ended, and what it had done is undone' }),
  async perform({ jobs }, { id, by }) {
    if (!(await jobs.cancel(id, `The work was cancelled by ${by}.`))) fail('CONFLICT', `Job ${id} has ended already.`)
  },
  end: 'final',
})

/** A job is seen by who may use the operation behind it, on the deployments he may see. */
function maySee(actor: Actor, row: RunRow, door: Pick<Door, 'operations'>): boolean {
  const operation = door.operations.get(row.operation)
  return operation !== undefined && mayUse(actor, operation.permission) && sees(actor, row.deployment)
}

function shown(row: RunRow, door: Pick<Door, 'runs'>) {
  return {
    id: row.id,
    type: row.action,
    status: row.status,
    progress: row.progress,
    phase: row.phase,
    deployment_name: row.deployment,
    created_at: row.created_at,
    started_at: row.started_at,
    completed_at: row.completed_at,
    error: row.error,
    result: door.runs.answerOf(row),
  }
}
