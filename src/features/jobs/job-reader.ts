// Jobs as a caller may see them: the runs whose answer did not wait. And the step that cancels one.

import type { Door } from '../../core/door.ts'
import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { type Access, type Actor, isAdministrator, mayUse, requireScope, sees } from '../../core/permission.ts'
import type { RunRow } from '../../core/run.ts'
import { Nullable, pageOf, Time, Type, Words } from '../../core/schema.ts'
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
  result: Nullable(
    Type.Object({ status: Type.Integer(), body: Type.Unknown() }, { description: 'The answer, when it has ended' }),
  ),
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

export function jobReader(db: Database, door: Pick<Door, 'runs' | 'operations' | 'isActive'>, { actor }: Viewer) {
  const visible = (row: RunRow) => maySee(actor, row, door)
  const rowOf = (id: string): RunRow => {
    const row = door.runs.row(id)
    return row?.is_job && visible(row) ? row : notFound('job', id)
  }
  return {
    one: (id: string) => shown(rowOf(id), door),
    /** Who may only look at a deployment does not end what is done to it. */
    cancellable(id: string) {
      const row = rowOf(id)
      requireScope(actor, row.deployment === null ? [] : [{ deployment: row.deployment, level: 'write' }])
      return shown(row, door)
    },
    page(status: string | undefined, limit: number, offset: number) {
      const rows = db.all<RunRow>('SELECT * FROM runs WHERE is_job = 1 ORDER BY created_at DESC, id').filter(visible)
      const seen = status === undefined ? rows : rows.filter(row => row.status === status)
      return pageOf(seen, limit, offset, row => shown(row, door))
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

/** A job is seen by its maker, by administrators, and by who may use the operation behind it, on the deployments he may see. */
function maySee(actor: Actor, row: RunRow, door: Pick<Door, 'operations'>): boolean {
  if (isAdministrator(actor)) return true
  const maker = JSON.parse(row.actor) as Pick<Actor, 'type' | 'id'>
  if (maker.type === actor.type && maker.id === actor.id) return true
  const operation = door.operations.get(row.operation)
  if (operation?.kind !== 'command' || operation.personal || isOpenToAll(operation.permission)) return false
  return mayUse(actor, operation.permission) && sees(actor, row.deployment)
}

/** What everybody may do is done to oneself. */
const isOpenToAll = (access: Access): boolean => access === 'authenticated' || access === 'public'

function shown(row: RunRow, door: Pick<Door, 'runs' | 'isActive'>) {
  return {
    id: row.id,
    type: row.action,
    // Until its answer is there, it is not over for whoever waits for it.
    status: row.status === 'completed' && door.isActive(row.id) ? ('running' as const) : row.status,
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
