// A real agent, killed for real before, during and after each kind of step: at its next start the run is wholly done,
// wholly undone, or reported as interrupted, and the store is whole.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { PlanRow } from '../src/core/plan.ts'
import { type ProbeAgent, probeAgent } from '../src/testing/probe.ts'
import type { Orders } from './crash/agent.ts'

const OLD = { a: 'old a', f: 'old f' }
const writes = [
  { do: 'write', file: 'a', text: 'new a', as: 'first' },
  { do: 'look', file: 'h' },
  { do: 'write', file: 'b', text: 'new b' },
]
const note = { do: 'note', file: 'n', from: 'first' }
const undoable = [...writes, note]
const final = [...writes, { do: 'burn', file: 'f' }, note]
const repeatable = [...writes, { do: 'tidy', file: 'r', from: 'first' }, note]
const RUN = 'POST /api/probe/p/run'

let template: string
before(async () => {
  const agent = await probeAgent({ empty: true })
  await agent.tokenOf('key')
  await agent.stop('keep')
  await rm(agent.probe.folder, { recursive: true })
  template = agent.folder
  await mkdir(join(template, 'probe'))
  for (const [name, text] of Object.entries(OLD)) await writeFile(join(template, 'probe', name), text)
})
after(() => rm(template, { recursive: true, force: true }))

/** Runs a real agent process to its end, which must be the kill it was ordered when it was ordered one. */
async function live(orders: Orders): Promise<{ status: number; body: Record<string, unknown> }> {
  const program = fileURLToPath(new URL('./crash/agent.ts', import.meta.url))
  const child = spawn(process.execPath, [program, JSON.stringify(orders)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [chunks, [code, signal]] = await Promise.all([child.stdout.toArray(), once(child, 'close')])
  if (orders.dies) assert.equal(signal, 'SIGKILL', `it came to ${orders.dies}`)
  else assert.equal(code, 0)
  const text = Buffer.concat(chunks as Buffer[]).toString()
  return text === '' ? { status: 0, body: {} } : JSON.parse(text)
}

interface Aftermath {
  agent: ProbeAgent
  files: Record<string, string>
  note: string | undefined
  run: { status: string; error: string | null } | undefined
  events: { status: number; interrupted?: boolean; not_undone?: { step: string }[] }[]
}

/** Kills an agent in a folder of its own, starts it again, and looks at what is left. */
async function killed(
  orders: Omit<Orders, 'folder'>,
  look: (left: Aftermath) => Promise<void> | void,
  again?: string,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'fairlead-crash-'))
  await cp(template, folder, { recursive: true })
  await live({ line: RUN, ...orders, folder })
  if (again) await live({ folder, dies: again })
  const agent = await probeAgent({ folder, probeFolder: join(folder, 'probe') })
  try {
    requireConsistent(agent)
    await look({
      agent,
      files: await agent.probe.files(),
      note: agent.db.get<{ text: string }>('SELECT text FROM probe_notes')?.text,
      run: agent.db
        .all<{ status: string; error: string | null }>("SELECT status, error FROM runs WHERE operation = 'probe.run'")
        .map(one => ({ ...one }))[0],
      events: agent.db
        .all<{ status_code: number; details: string }>("SELECT * FROM audit_events WHERE action = 'probe.run'")
        .map(({ status_code, details }) => ({ status: status_code, ...JSON.parse(details) })),
    })
  } finally {
    await agent.stop()
  }
}

function requireConsistent({ db }: ProbeAgent): void {
  assert.equal(db.get<{ integrity_check: string }>('PRAGMA integrity_check')?.integrity_check, 'ok')
  assert.deepEqual(db.all('PRAGMA foreign_key_check'), [])
  const none = (sql: string) => assert.equal(db.get<{ n: number }>(`SELECT count(*) AS n FROM ${sql}`)?.n, 0, sql)
  none("runs WHERE status IN ('pending', 'running')")
  none('run_steps WHERE before IS NOT NULL')
  none("plans WHERE status = 'applying'")
}

function wasUndone({ files, note, run, events }: Aftermath): void {
  assert.deepEqual(files, OLD)
  assert.equal(note, undefined)
  assert.deepEqual(run, {
    status: 'failed',
    error: 'The agent was stopped in the middle; what had been done was undone.',
  })
  assert.deepEqual(
    events.map(({ status, interrupted }) => [status, interrupted]),
    [[500, true]],
  )
}

function wasFinished({ files, note, run, events }: Aftermath, expected: Record<string, string>): void {
  assert.deepEqual(files, expected)
  assert.equal(note, 'new a')
  assert.deepEqual(run, { status: 'completed', error: null })
  assert.deepEqual(
    events.map(({ status, interrupted }) => [status, interrupted]),
    [[200, true]],
  )
}

function wasReported({ note, run, events }: Aftermath, left: string[]): void {
  assert.equal(note, undefined)
  assert.deepEqual(run, {
    status: 'failed',
    error: 'The agent was stopped in the middle of something that cannot be undone.',
  })
  assert.deepEqual(
    events.map(({ status, interrupted }) => [status, interrupted]),
    [[500, true]],
  )
  assert.deepEqual(
    events[0]?.not_undone?.map(({ step }) => step),
    left,
  )
}

const run = (steps: object[], dies: string, more: Omit<Orders, 'folder'> = {}) => ({
  ask: { body: { steps } },
  dies,
  ...more,
})
const tidied = { ...OLD, a: 'new a', b: 'new b', r: 'new a' }

describe('killed', { concurrency: 3 }, () => {
  test('while it decided: nothing had begun', () =>
    killed(run(undoable, 'p:decide'), ({ files, note, run, events }) => {
      assert.deepEqual([files, note, run, events], [OLD, undefined, undefined, []])
    }))

  for (const point of ['a:before', 'a:half', 'a:done', 'h:before', 'h:half', 'h:done', 'b:half', 'n:record']) {
    test(`at ${point}, where all can be undone: it is undone`, () => killed(run(undoable, point), wasUndone))
  }

  test('after the commit, before the answer: it is wholly done, and not an interruption', () =>
    killed(run(undoable, 'p:reply'), ({ files, note, run, events }) => {
      assert.deepEqual([files, note], [{ ...OLD, a: 'new a', b: 'new b' }, 'new a'])
      assert.deepEqual(run, { status: 'completed', error: null })
      assert.deepEqual(
        events.map(({ status, interrupted }) => [status, interrupted]),
        [[200, undefined]],
      )
    }))

  for (const point of ['b:undo', 'b:undone', 'a:undone']) {
    test(`at ${point}, while it was undoing a failure: the rest is undone`, () =>
      killed(run(undoable, point, { fails: 'b:half' }), wasUndone))
  }

  test('before a step that cannot be undone: it is undone', () => killed(run(final, 'f:before'), wasUndone))

  for (const point of ['f:half', 'f:done']) {
    test(`at ${point} of a step that cannot be undone: it is reported, with what is left`, () =>
      killed(run(final, point), left => wasReported(left, ['create file a', 'create file b', 'delete file f'])))
  }

  test('after a step that cannot be undone: the rest is done', () =>
    killed(run(final, 'n:record'), left => wasFinished(left, { a: 'new a', b: 'new b' })))

  test('before a step that can be repeated: it is undone', () => killed(run(repeatable, 'r:before'), wasUndone))

  for (const point of ['r:half', 'r:done']) {
    test(`at ${point}, where the step can be repeated: it is finished`, () =>
      killed(run(repeatable, point), left => wasFinished(left, tidied)))
  }

  test('in a step that can be repeated, with one to come that cannot be undone: both are done', () =>
    killed(run([...repeatable.slice(0, -1), { do: 'burn', file: 'f' }, note], 'r:half'), left =>
      wasFinished(left, { a: 'new a', b: 'new b', r: 'new a' }),
    ))

  test('after an each of which one had failed: that one is not done again', () => {
    const all = { do: 'each', each: [{ do: 'write', file: 'b', text: 'new b' }, { do: 'write', file: 'c', text: 'new c' }] } // biome-ignore format: one line
    const steps = [writes[0] as object, all, { do: 'tidy', file: 'r', from: 'first' }, note]
    return killed(run(steps, 'r:half', { fails: 'c:half' }), left => wasFinished(left, tidied))
  })

  test('while it recovered: the next start goes on with it', () => killed(run(undoable, 'b:half'), wasUndone, 'a:undo'))

  test('while it finished what can be repeated: the next start finishes it', () =>
    killed(run(repeatable, 'r:half'), left => wasFinished(left, tidied), 'r:done'))

  test('in the middle of a job: the job has failed, and says so', () =>
    killed(
      run(undoable, 'b:half', { ask: { body: { steps: undoable }, headers: { prefer: 'respond-async' } } }),
      async left => {
        wasUndone(left)
        const [job] = (await left.agent.request('GET /api/jobs')).json().data
        assert.deepEqual([job.status, job.error], ['failed', left.run?.error])
      },
    ))

  test('in a job that had not begun: it has failed, and nothing was done', () =>
    killed(
      run(undoable, 'p:decide#2', { ask: { body: { steps: undoable }, headers: { prefer: 'respond-async' } } }),
      wasUndone,
    ))

  describe('under an idempotency key', { concurrency: 3 }, () => {
    const ask = (steps: object[]) => ({ ask: { body: { steps }, headers: { 'idempotency-key': 'k' } } })
    const retried = async ({ agent }: Aftermath, steps: object[]) => {
      const answer = await agent.request(RUN, ask(steps).ask)
      return [answer.statusCode, answer.json().error]
    }
    const lost = /was carried out, but its answer was lost/

    test('what was undone is carried out when it is asked for again', () =>
      killed(run(undoable, 'b:half', ask(undoable)), async left => {
        wasUndone(left)
        assert.equal((await retried(left, undoable))[0], 200)
      }))

    test('what was committed is not carried out again', () =>
      killed(run(undoable, 'p:reply', ask(undoable)), async left => {
        const [status, error] = await retried(left, undoable)
        assert.equal(status, 409)
        assert.match(error, lost)
      }))

    test('what was finished at the next start is not carried out again', () =>
      killed(run(repeatable, 'r:half', ask(repeatable)), async left => {
        const [status, error] = await retried(left, repeatable)
        assert.equal(status, 409)
        assert.match(error, lost)
      }))
  })

  describe('while it applied a plan', { concurrency: 3 }, () => {
    const ids = new Map<object[], string>()
    let planned: string
    before(async () => {
      planned = await mkdtemp(join(tmpdir(), 'fairlead-crash-plan-'))
      await cp(template, planned, { recursive: true })
      const agent = await probeAgent({ folder: planned, probeFolder: join(planned, 'probe') })
      for (const steps of [undoable, repeatable]) {
        const made = await agent.request(`${RUN}?plan=true`, { body: { steps } })
        ids.set(steps, made.json().data.id)
      }
      await agent.stop('keep')
    })
    after(() => rm(planned, { recursive: true, force: true }))

    /** The plan after the agent was killed in applying it and started again. */
    const appliedUntil = async (steps: object[], dies: string): Promise<{ plan: PlanRow; files: object }> => {
      const folder = await mkdtemp(join(tmpdir(), 'fairlead-crash-'))
      await cp(planned, folder, { recursive: true })
      const id = ids.get(steps) as string
      await live({ folder, line: `POST /api/plans/${id}/apply`, dies })
      const agent = await probeAgent({ folder, probeFolder: join(folder, 'probe') })
      try {
        requireConsistent(agent)
        const plan = agent.door.plans.row(id)
        assert.equal(plan.sealed, null)
        return { plan, files: await agent.probe.files() }
      } finally {
        await agent.stop()
      }
    }

    test('and it was undone: the plan has failed, and says why', async () => {
      const { plan, files } = await appliedUntil(undoable, 'b:half')
      assert.deepEqual(
        [plan.status, plan.error],
        ['failed', 'The agent was stopped in the middle; what had been done was undone.'],
      )
      assert.deepEqual(files, OLD)
    })

    test('and it was finished: the plan is applied', async () => {
      const { plan, files } = await appliedUntil(repeatable, 'r:half')
      assert.deepEqual([plan.status, files], ['applied', tidied])
      assert.ok(plan.applied_at)
    })

    test('and nothing had begun: it is not left as being applied', async () => {
      const { plan, files } = await appliedUntil(undoable, 'p:decide')
      assert.deepEqual([plan.status, files], ['failed', OLD])
    })
  })
})
