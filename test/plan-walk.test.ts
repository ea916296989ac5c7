// Every change with a plan, called with its example: planned, nothing moves; applied, exactly what the plan listed does.

import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Command, Operation } from '../src/core/operation.ts'
import type { AnyTable } from '../src/core/record.ts'
import { REDACTED } from '../src/core/schema.ts'
import { type Change, KNOWN_AFTER_APPLY } from '../src/core/step.ts'
import { operations } from '../src/features/index.ts'
import { areaTables, type Difference, differences, recordDifferences, type Snapshot, snapshot } from './snapshot.ts'
import { callOf, isProbe, standardWorlds, type World, type Worlds } from './walk.ts'

/** What the mechanism keeps about itself; none of it is somebody's record. */
const bookkeeping = [
  'meta', 'runs', 'run_steps', 'plans', 'kept_answers', 'audit_events', 'audit_counts', 'audit_days', 'compose_models',
] // biome-ignore format: a table of words
/** Changes to the bookkeeping itself, and how each is seen. */
const seenInBookkeeping: Record<string, (after: Snapshot, change: Change) => boolean> = {
  'record audit events': after => !after.tables.get('audit_events')?.some(row => String(row.time) < LONG_AGO_ENDS),
  // What is read again from disk lies in memory only.
  'record templates': () => true,
  job: (after, { id }) => after.tables.get('runs')?.some(row => row.id === id && row.status === 'cancelled') ?? false,
}
/** What can be planned here, but needs a program outside of the test world to be applied. */
const outsideOnly = ['images.pull']
const LONG_AGO = '2001-01-01T00:00:00.000Z'
const LONG_AGO_ENDS = '2002'

let worlds: Worlds
let tables: AnyTable[]
/** Tokens hold in every copy of the world: their secret is in its configuration. */
let token: string
before(async () => {
  worlds = await standardWorlds({ prepare: ({ folder }) => mkdir(join(folder, 'templates')) })
  tables = await areaTables()
  const world = await worlds.open()
  token = await world.tokenOf('alice')
  await world.stop()
})
after(() => worlds.close())

const planned = operations.filter((one): one is Command => one.kind === 'command' && one.plannable !== false)
const ofADeployment = (one: Operation) => one.scope !== undefined && one.id.startsWith('deployments.')

// Most of the time is the engine's, so some go on at once.
suite('planned, nothing moves; applied, exactly what the plan lists does', { concurrency: 3 }, () => {
  for (const operation of planned) test(operation.id, () => walk(operation))
  for (const operation of planned.filter(ofADeployment)) {
    test(`${operation.id} of a deployment that runs`, () => walk(operation, runningDeployment))
  }
})

test('the walk covers every table of the store', async () => {
  const world = await worlds.open()
  const { tables: present } = await snapshot(world, tables)
  await world.stop()
  const known = [...bookkeeping, ...tables.map(table => table.name)]
  assert.deepEqual(
    [...present.keys()].filter(name => !known.includes(name)),
    [],
  )
})

async function walk(operation: Command, prepare?: (world: World, operation: Command) => Promise<void>): Promise<void> {
  const world = await worlds.open({ for: [operation] })
  try {
    oldAuditEvent(world)
    await prepare?.(world, operation)
    const atFirst = await snapshot(world, tables)
    const { line, ask } = callOf(operation, world.exampleOf(operation))
    const answer = await world.request(line, { ...ask, query: { ...ask.query, plan: 'true' }, as: { token } })
    assert.equal(answer.statusCode, 200, answer.body)
    const plan = answer.json().data as { id: string; status: string; changes: Change[]; action: string }
    assert.equal(plan.status, 'available')
    const afterPlan = await snapshot(world, tables)
    requireOnlyThePlan(atFirst, afterPlan)

    if (outsideOnly.includes(operation.id)) return
    const applied = await world.request(`POST /api/plans/${plan.id}/apply`, { as: { token } })
    assert.equal(applied.statusCode, operation.http.status ?? 200, applied.body)
    assert.equal(applied.json().plan.status, 'applied')
    const atLast = await snapshot(world, tables)
    requireWhatWasListed(plan.changes, afterPlan, atLast)
    assert.deepEqual(
      newActions(afterPlan, atLast).filter(action => !isProbe(String(action))),
      [operation.action],
      'one audit event for the application',
    )
  } finally {
    await world.stop()
  }
}

/** Nothing but the plan and its audit event, and what moves by itself. */
function requireOnlyThePlan(before: Snapshot, after: Snapshot): void {
  assert.deepEqual(recordDifferences(before.records, after.records), [], 'records')
  assert.deepEqual(differences(before.files, after.files), [], 'files')
  assert.deepEqual(differences(before.engine, after.engine), [], 'engine')
  assert.equal((after.tables.get('plans')?.length ?? 0) - (before.tables.get('plans')?.length ?? 0), 1)
  assert.deepEqual(newActions(before, after), ['plan.create'])
  for (const name of ['meta', 'runs', 'run_steps', 'kept_answers']) {
    assert.deepEqual(after.tables.get(name), before.tables.get(name), name)
  }
}

function requireWhatWasListed(changes: Change[], before: Snapshot, after: Snapshot): void {
  const moved = [
    ...recordDifferences(before.records, after.records).map(one => ({ ...one, kind: 'record' })),
    ...differences(before.files, after.files).map(one => ({ ...one, kind: 'file' })),
    ...differences(before.engine, after.engine).map(one => ({ ...one, kind: 'engine' })),
  ]
  const story = `planned:\n${changes.map(lineOf).join('\n')}\nseen:\n${moved.map(one => `${one.action} ${one.kind} ${one.id}`).join('\n')}\n`
  const unlisted = moved.filter(one => !changes.some(change => tells(change, one)))
  assert.deepEqual(
    unlisted.map(one => one.id),
    [],
    `something changed that the plan did not list; ${story}`,
  )
  for (const change of changes) {
    const inBookkeeping = Object.entries(seenInBookkeeping).find(([start]) =>
      lineOf(change)
        .slice(change.action.length + 1)
        .startsWith(start),
    )
    const seen = inBookkeeping ? inBookkeeping[1](after, change) : moved.some(one => tells(change, one))
    assert.ok(seen, `the plan listed "${lineOf(change)}", which did not happen; ${story}`)
  }
  for (const one of moved.filter(one => one.kind === 'record'))
    requireSameValues(
      changes.find(change => tells(change, one)),
      one,
    )
}

/** Whether a line of the plan speaks of what was seen to change. */
function tells(change: Change, seen: Difference & { kind: string }): boolean {
  if (seen.kind === 'record') return change.type === 'record' && change.id === seen.id && change.action === seen.action
  if (seen.kind === 'file') return change.type === 'file' && tellsOfFile(change, seen)
  // Starting, replacing and restarting a container all leave it changed; only its coming and going have one name.
  if (`${change.type} ${change.id}` !== seen.id) return false
  return seen.action === 'update' ? !['create', 'delete'].includes(change.action) : change.action === seen.action
}

/** A plan names a file by its path in the deployment, and a folder by its name; a folder that goes takes its files with it. */
function tellsOfFile(change: Change, { id, action }: Difference): boolean {
  const inFolder = change.id.endsWith('/') && change.action === 'delete' && `${id}/`.includes(`/${change.id}`)
  const named =
    id === change.id ||
    id.replace(/^deployments\/([^/]+\/)?(?=.)/, '') === change.id ||
    id === `deployments/${change.id}`
  return change.action === action && (named || inFolder)
}

/** An update lists the columns that change, and each with the value it gets. */
function requireSameValues(change: Change | undefined, { before, after, id }: Difference): void {
  const hidden = (value: unknown) => value === REDACTED || value === KNOWN_AFTER_APPLY
  const [old, next] = [before ?? {}, after ?? {}] as [Record<string, unknown>, Record<string, unknown>]
  for (const [column, value] of Object.entries((change?.after ?? {}) as Record<string, unknown>)) {
    assert.ok(
      hidden(value) || isDeepStrictEqual(value, next[column]),
      `${id}: ${column} became another value than planned`,
    )
  }
  if (change?.action !== 'update') return
  const columns = Object.keys(next).filter(column => !isDeepStrictEqual(old[column], next[column]))
  assert.deepEqual(
    columns.toSorted(),
    Object.keys(change.after as object).toSorted(),
    `${id}: other columns than planned`,
  )
}

const lineOf = (change: Change) => `${change.action} ${change.type} ${change.id}`

function newActions(before: Snapshot, after: Snapshot): unknown[] {
  const known = new Set(before.tables.get('audit_events')?.map(row => row.id))
  return (after.tables.get('audit_events') ?? []).filter(row => !known.has(row.id)).map(row => row.action)
}

/** Something for a clean-up to find. */
function oldAuditEvent(world: World): void {
  world.db.run(
    `INSERT INTO audit_events (time, actor_type, actor_name, action, resource_type, success, status_code, request_id, duration_ms, details)
      VALUES (?, 'system', 'system', 'test.past', 'test', 1, 200, 'past', 0, '{}')`,
    LONG_AGO,
  )
}

async function runningDeployment(world: World, operation: Command): Promise<void> {
  const { name } = operation.example as { name: string }
  const started = await world.request(`POST /api/deployments/${name}/start`)
  assert.equal(started.statusCode, 200, started.body)
}
