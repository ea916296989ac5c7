// Removes audit events by age, some at a time, so that the agent goes on answering meanwhile.

import { stepKind } from '../../core/step.ts'
import type { Database } from '../../store/database.ts'

const AT_A_TIME = 1000

export const cleanup = stepKind<{ older_than: number }, undefined, { deleted: number }>('audit.cleanup', {
  describe: ({ older_than }) => ({ type: 'record', id: `audit events older than ${older_than} s`, action: 'delete' }),
  perform: ({ db }, { older_than }, { now, signal }) =>
    removeBefore(db, new Date(now.getTime() - older_than * 1000), signal),
  end: 'repeatable',
})

export async function removeBefore(db: Database, before: Date, signal?: AbortSignal): Promise<{ deleted: number }> {
  const time = before.toISOString()
  const newest = db.get<{ id: number | null }>('SELECT max(id) AS id FROM audit_events')?.id ?? 0
  let deleted = 0
  while (!signal?.aborted) {
    const { changes } = db.run(
      'DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events WHERE time < ? AND id <= ? LIMIT ?)',
      time,
      newest,
      AT_A_TIME,
    )
    deleted += changes
    if (changes < AT_A_TIME) break
    await new Promise(setImmediate)
  }
  recount(db, time.slice(0, 10))
  return { deleted }
}

/** The counts of days that are gone go with them; the day of the cut is counted anew. */
function recount(db: Database, day: string): void {
  db.transaction(() => {
    db.run('DELETE FROM audit_days WHERE day < ?', day)
    db.run('DELETE FROM audit_counts WHERE day <= ?', day)
    db.run(
      `INSERT INTO audit_counts (day, action, actor_type, actor_name, events, failures)
        SELECT substr(time, 1, 10), action, actor_type, actor_name, count(*), sum(1 - success) FROM audit_events
        WHERE time < ? GROUP BY 1, 2, 3, 4`,
      `${day}T24`,
    )
  })
}
