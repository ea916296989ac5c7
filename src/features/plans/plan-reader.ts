// Plans as a caller may see them, and the step that discards one.

import type { Door } from '../../core/door.ts'
import { notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import type { PlanStatus } from '../../core/plan.ts'
import { pageOf } from '../../core/schema.ts'
import { stepKind } from '../../core/step.ts'

declare module '../../core/operation.ts' {
  interface Readers {
    plans: PlanReader
  }
}

export type PlanReader = ReturnType<typeof planReader>

export function planReader(door: Pick<Door, 'plans' | 'seesPlan'>, { actor }: Viewer) {
  const { plans } = door
  return {
    one(id: string) {
      const row = plans.row(id)
      return door.seesPlan(actor, row) ? plans.shown(row) : notFound('plan', id)
    },
    page(status: PlanStatus | undefined, limit: number, offset: number) {
      const seen = plans
        .rows('ORDER BY created_at DESC, id')
        .filter(row => door.seesPlan(actor, row) && (status === undefined || plans.statusOf(row) === status))
      return pageOf(seen, limit, offset, row => plans.shown(row))
    },
  }
}

/** A plan that was never applied is kept as discarded; any other leaves the list. */
export const discard = stepKind<{ id: string; hide: boolean }>('plan.discard', {
  describe: ({ id }) => ({ type: 'record', id: `plan ${id}`, action: 'delete' }),
  perform({ db }, { id, hide }) {
    if (hide) db.run('DELETE FROM plans WHERE id = ?', id)
    else db.run("UPDATE plans SET status = 'discarded', sealed = NULL WHERE id = ?", id)
  },
  end: 'repeatable',
})
