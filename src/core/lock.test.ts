// Locks: all at once, in the order of asking, refused after a limit with the name of who holds them, never left behind.

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { Database } from '../store/database.ts'
import { openVault } from '../store/vault.ts'
import { failing, gate, type Probe, probe } from '../testing/probe.ts'
import { type Call, Door } from './door.ts'
import { EventBus } from './event.ts'
import type { Failure } from './failure.ts'
import { type Held, Locks } from './lock.ts'
import type { Command, ReaderFactories } from './operation.ts'
import { system } from './permission.ts'
import { recordKinds } from './record.ts'
import type { World } from './step.ts'

const LONG = 60_000

async function order(locks: Locks, wanted: Record<string, string[]>): Promise<string[]> {
  const got: string[] = []
  const held: Promise<Held>[] = Object.entries(wanted).map(async ([holder, names]) => {
    const taken = await locks.take(names, holder, LONG)
    got.push(holder)
    await new Promise(setImmediate)
    taken.release()
    return taken
  })
  await Promise.all(held)
  return got
}

test('all names are taken at once or none: a waiter blocks only what he waits for', async () => {
  const locks = new Locks()
  const first = await locks.take(['a'], 'first', LONG)
  let both = false
  const second = locks.take(['b', 'a'], 'second', LONG).then(held => {
    both = true
    return held
  })
  const third = await locks.take(['c'], 'third', LONG)
  await new Promise(setImmediate)
  assert.equal(both, false)
  first.release()
  ;(await second).release()
  third.release()
})

test('two who name the same locks in another order do not wait for each other for ever', async () => {
  const locks = new Locks()
  const rounds = Array.from({ length: 50 }, (_, index) => [`n${index}`, index % 2 ? ['a', 'b'] : ['b', 'a']] as const)
  assert.equal((await order(locks, Object.fromEntries(rounds) as Record<string, string[]>)).length, 50)
})

test('who came first is served first, also when a later one would fit', async () => {
  const locks = new Locks()
  const held = await locks.take(['a'], 'holder', LONG)
  const served = order(locks, { big: ['a', 'b'], small: ['b'], other: ['a'] })
  await new Promise(setImmediate)
  held.release()
  assert.deepEqual(await served, ['big', 'small', 'other'])
})

test('after the limit it is BUSY, the details name the holder, and those who waited behind go on', async () => {
  const locks = new Locks()
  const held = await locks.take(['deployment:shop'], 'deployment.update (1)', LONG)
  const refused = locks.take(['deployment:shop', 'deployment:blog'], 'mine', 20)
  const behind = locks.take(['deployment:blog'], 'behind', LONG)
  await assert.rejects(refused, {
    code: 'BUSY',
    message:
      'Another change is under way: deployment:shop is held by deployment.update (1). Try again when it has ended.',
    details: [{ held: 'deployment:shop', by: 'deployment.update (1)' }],
  })
  ;(await behind).release()
  held.release()
  ;(await locks.take(['deployment:shop', 'deployment:blog'], 'mine', 20)).release()
})

test('a cancelled waiter leaves the queue, one that was cancelled before does not join it', async () => {
  const locks = new Locks()
  const held = await locks.take(['a'], 'holder', LONG)
  const cancel = new AbortController()
  const waiting = locks.take(['a'], 'waiter', LONG, cancel.signal)
  cancel.abort(new Error('cancelled'))
  await assert.rejects(waiting, { message: 'cancelled' })
  await assert.rejects(locks.take(['a'], 'waiter', LONG, cancel.signal), { message: 'cancelled' })
  held.release()
  ;(await locks.take(['a'], 'next', 20)).release()
})

let folder: string
let db: Database
let made: Probe
let door: Door
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fairlead-lock-'))
  db = Database.open(join(folder, 'data'))
  made = probe(folder)
  made.attach(db)
  door = new Door({
    db,
    vault: openVault(join(folder, 'data'), db),
    operations: made.extra.operations,
    kinds: [...recordKinds(made.extra.tables ?? [], db), ...made.extra.kinds],
    world: { db } as World,
    readers: {} as ReaderFactories,
    events: new EventBus(),
    planLifetimeSeconds: () => 3600,
    refresh: actor => actor,
    report: () => {},
    lockLimitMs: 30,
    checkAnswers: true,
  })
})
after(async () => {
  await door.close(1000)
  db.close()
  await rm(folder, { recursive: true })
})
beforeEach(() => made.at.clear())

const call = (file: string, more: Partial<Call> = {}) => {
  const steps = [{ do: 'write', file, text: file }]
  const raw = { params: { name: 'p' }, query: {}, body: { locks: ['deployment:shop'], steps } }
  const origin = { requestId: 'r', clientIp: null, userAgent: null }
  return door.answer(door.operations.get('probe.run') as Command, {
    actor: system,
    raw,
    origin,
    method: 'POST',
    path: '/api/probe/p/run',
    ...more,
  })
}

test('two changes of the same thing: one is done, the other gets BUSY with the name of the first', async () => {
  const held = gate()
  made.at.set('a:half', held.hold)
  const first = call('a')
  await held.reached
  await assert.rejects(call('b'), (failure: Failure) => {
    assert.deepEqual([failure.status, failure.code], [409, 'BUSY'])
    const [{ held: name, by }] = failure.details as [{ held: string; by: string }]
    assert.equal(name, 'deployment:shop')
    assert.match(by, /^probe\.run \([0-9a-f-]{36}\)$/)
    return true
  })
  held.open()
  assert.equal((await first).status, 200)
  assert.equal((await call('b')).status, 200)
})

test('planning takes no lock', async () => {
  const held = gate()
  made.at.set('a:half', held.hold)
  const first = call('a')
  await held.reached
  assert.equal((await call('b', { plan: true })).status, 200)
  held.open()
  await first
})

test('what failed, was refused or could not be answered holds nothing any more', async () => {
  for (const point of ['a:half', 'p:decide', 'p:reply']) {
    made.at.set(point, failing())
    await assert.rejects(call('a'))
    made.at.clear()
    assert.equal((await call('b')).status, 200, `after ${point}`)
  }
})

test('a job holds its locks to its end', async () => {
  const held = gate()
  made.at.set('a:half', held.hold)
  const { body } = await call('a', { respondAsync: true })
  await held.reached
  await assert.rejects(call('b'), { code: 'BUSY' })
  held.open()
  while (door.isActive((body as { job_id: string }).job_id)) await new Promise(setImmediate)
  assert.equal((await call('b')).status, 200)
})
