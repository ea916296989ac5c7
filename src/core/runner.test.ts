// The runner through the real door: results used later, failures in the middle, what is undone and what cannot be.

import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { failing, type ProbeAgent, probeAgent } from '../testing/probe.ts'
import { Failure } from './failure.ts'

let agent: ProbeAgent
before(async () => {
  agent = await probeAgent({ empty: true })
})
after(() => agent.stop())
beforeEach(async () => {
  agent.probe.at.clear()
  agent.probe.reached.length = 0
  agent.db.run('DELETE FROM probe_notes')
  await rm(agent.probe.folder, { recursive: true, force: true })
  await mkdir(agent.probe.folder)
})

const run = (steps: object[], more: object = {}) => agent.request('POST /api/probe/p/run', { body: { steps, ...more } })
const lastRun = () =>
  agent.db.get<{ status: string; steps: string; request: string }>(
    'SELECT * FROM runs ORDER BY created_at DESC LIMIT 1',
  )
const lastEvent = () =>
  agent.db.get<{ action: string; status_code: number; details: string }>(
    'SELECT * FROM audit_events ORDER BY id DESC LIMIT 1',
  )

test('a later step and the reply use what an earlier step returned', async () => {
  const answer = await run([
    { do: 'write', file: 'a', text: 'from the first', as: 'first' },
    { do: 'write', file: 'b', from: 'first', as: 'second' },
    { do: 'note', file: 'n', from: 'second' },
  ])
  assert.equal(answer.statusCode, 200, answer.body)
  assert.deepEqual(await agent.probe.files(), { a: 'from the first', b: 'from the first' })
  assert.deepEqual(answer.json().data.results, {
    first: { size: 14, text: 'from the first' },
    second: { size: 14, text: 'from the first' },
  })
  assert.equal(agent.db.get<{ text: string }>('SELECT text FROM probe_notes')?.text, 'from the first')
})

test('a plan shows a later value as known after apply, and applying it gives the value', async () => {
  const steps = [
    { do: 'write', file: 'a', text: 'the value', as: 'first' },
    { do: 'write', file: 'b', from: 'first' },
  ]
  const { data } = (await agent.request('POST /api/probe/p/run?plan=true', { body: { steps } })).json()
  assert.deepEqual(
    data.changes.map((change: { after: string }) => change.after),
    ['the value', '(known after apply)'],
  )
  assert.equal((await agent.request(`POST /api/plans/${data.id}/apply`)).statusCode, 200)
  assert.deepEqual(await agent.probe.files(), { a: 'the value', b: 'the value' })
})

test('what a caller sends is never taken for a placeholder', async () => {
  const body = { username: 'dollar', password: 'long enough to pass', email: '$now@example.org' }
  assert.equal((await agent.request('POST /api/users', { body })).statusCode, 201)
  const text = '{"$now":0,"$result":["first","text"]}'
  assert.equal((await run([{ do: 'write', file: 'a', text }])).statusCode, 200)
  assert.deepEqual(await agent.probe.files(), { a: text })
})

test('a failure in the middle undoes in reverse, the half-done failing step included', async () => {
  await writeFile(join(agent.probe.folder, 'b'), 'old b')
  agent.probe.at.set('c:half', failing('UPSTREAM_FAILED', 'c broke'))
  const answer = await run([
    { do: 'write', file: 'a', text: 'new a' },
    { do: 'write', file: 'b', text: 'new b' },
    { do: 'write', file: 'c', text: 'new c' },
    { do: 'write', file: 'd', text: 'new d' },
  ])
  assert.equal(answer.statusCode, 502)
  assert.deepEqual(answer.json(), { error: 'c broke', code: 'UPSTREAM_FAILED', details: { rolled_back: true } })
  assert.deepEqual(await agent.probe.files(), { b: 'old b' })
  const undone = agent.probe.reached.filter(point => point.endsWith(':undo'))
  assert.deepEqual(undone, ['c:undo', 'b:undo', 'a:undo'])
  assert.ok(!agent.probe.reached.includes('d:before'))
  assert.equal(lastRun()?.status, 'failed')
  assert.equal(lastEvent()?.status_code, 502)
})

test('a failure of ours in the middle says nothing about itself, and is undone all the same', async () => {
  agent.probe.at.set('b:done', () => {
    throw new TypeError('secret-of-the-inside')
  })
  const answer = await run([
    { do: 'write', file: 'a', text: 'a' },
    { do: 'write', file: 'b', text: 'b' },
  ])
  assert.equal(answer.statusCode, 500)
  assert.doesNotMatch(answer.body, /secret-of-the-inside/)
  assert.deepEqual(answer.json().details, { rolled_back: true })
  assert.deepEqual(await agent.probe.files(), {})
})

test('of an each one may fail: it alone is undone, the others go on, and the result tells of each', async () => {
  await writeFile(join(agent.probe.folder, 'b'), 'old b')
  agent.probe.at.set('b:half', failing('TIMEOUT', 'b took too long'))
  const answer = await run([
    {
      do: 'each',
      as: 'all',
      each: [
        { do: 'write', file: 'a', text: 'new a' },
        { do: 'write', file: 'b', text: 'new b' },
        { do: 'write', file: 'c', text: 'new c' },
      ],
    },
    { do: 'write', file: 'd', text: 'new d' },
  ])
  assert.equal(answer.statusCode, 200)
  assert.deepEqual(await agent.probe.files(), { a: 'new a', b: 'old b', c: 'new c', d: 'new d' })
  assert.deepEqual(answer.json().data.results.all, [
    { ok: true, result: { size: 5, text: 'new a' } },
    { ok: false, error: 'b took too long', code: 'TIMEOUT' },
    { ok: true, result: { size: 5, text: 'new c' } },
  ])
})

test('what failed in an each and could not be undone is named in its result', async () => {
  agent.probe.at.set('b:half', failing())
  agent.probe.at.set('b:undo', failing('UPSTREAM_FAILED', 'b resists'))
  const answer = await run([{ do: 'each', as: 'all', each: [{ do: 'write', file: 'b', text: 'new b' }] }])
  assert.deepEqual(answer.json().data.results.all, [
    { ok: false, error: 'It broke.', code: 'UPSTREAM_FAILED', not_undone: 'b resists' },
  ])
})

test('a failure after an each undoes what succeeded in it', async () => {
  agent.probe.at.set('b:half', failing())
  agent.probe.at.set('d:half', failing('UPSTREAM_FAILED', 'd broke'))
  const inner = ['a', 'b', 'c'].map(file => ({ do: 'write', file, text: file }))
  const answer = await run([
    { do: 'each', each: inner },
    { do: 'write', file: 'd', text: 'd' },
  ])
  assert.equal(answer.json().error, 'd broke')
  assert.deepEqual(await agent.probe.files(), {})
  const undone = agent.probe.reached.filter(point => point.endsWith(':undo'))
  assert.deepEqual(undone, ['b:undo', 'd:undo', 'c:undo', 'a:undo'])
})

test('once something that cannot be undone has begun nothing is undone, and the answer names what stays', async () => {
  await writeFile(join(agent.probe.folder, 'b'), 'old b')
  agent.probe.at.set('b:half', failing('UPSTREAM_FAILED', 'b broke'))
  const answer = await run([
    { do: 'write', file: 'a', text: 'new a' },
    { do: 'look', file: 'a' },
    { do: 'burn', file: 'b' },
  ])
  assert.equal(answer.statusCode, 502)
  const { rolled_back, not_undone } = answer.json().details
  assert.equal(rolled_back, false)
  assert.deepEqual(not_undone, [
    { step: 'create file a', error: 'It was left as it is, because a later step cannot be undone.' },
    { step: 'delete file b', error: 'It cannot be undone.' },
  ])
  assert.deepEqual(await agent.probe.files(), { a: 'new a', b: '' })
})

test('a step that cannot be undone and fails in an each keeps what came before it from being undone', async () => {
  await writeFile(join(agent.probe.folder, 'b'), 'old b')
  agent.probe.at.set('b:half', failing())
  agent.probe.at.set('c:begin', failing('UPSTREAM_FAILED', 'c broke'))
  const answer = await run([
    { do: 'write', file: 'a', text: 'new a' },
    { do: 'each', each: [{ do: 'burn', file: 'b' }] },
    { do: 'look', file: 'c' },
  ])
  assert.equal(answer.json().error, 'c broke')
  assert.equal(answer.json().details.rolled_back, false)
  assert.deepEqual(await agent.probe.files(), { a: 'new a', b: '' })
})

test('an undo that itself fails is named in the answer, and the others are undone', async () => {
  agent.probe.at.set('b:undo', failing('UPSTREAM_FAILED', 'b resists'))
  agent.probe.at.set('c:half', failing('UPSTREAM_FAILED', 'c broke'))
  const answer = await run(['a', 'b', 'c'].map(file => ({ do: 'write', file, text: `new ${file}` })))
  assert.deepEqual(answer.json(), {
    error: 'c broke',
    code: 'UPSTREAM_FAILED',
    details: { rolled_back: false, not_undone: [{ step: 'create file b', error: 'b resists' }] },
  })
  assert.deepEqual(await agent.probe.files(), { b: 'new b' })
})

test('a record that cannot be written undoes the steps before it', async () => {
  agent.probe.at.set('n:record', failing('CONFLICT', 'the record was changed'))
  const answer = await run([
    { do: 'write', file: 'a', text: 'a' },
    { do: 'note', file: 'm', text: 'first' },
    { do: 'note', file: 'n', text: 'second' },
  ])
  assert.equal(answer.statusCode, 409)
  assert.deepEqual(await agent.probe.files(), {})
  assert.equal(agent.db.get<{ n: number }>('SELECT count(*) AS n FROM probe_notes')?.n, 0)
})

test('records, audit event and the end of the run are one transaction', async () => {
  agent.db.run(`CREATE TRIGGER no_more_events BEFORE INSERT ON audit_events WHEN new.status_code = 200
    BEGIN SELECT RAISE(ABORT, 'no more'); END`)
  try {
    const answer = await run([
      { do: 'write', file: 'a', text: 'a' },
      { do: 'note', file: 'n', text: 'n' },
    ])
    assert.equal(answer.statusCode, 500)
  } finally {
    agent.db.run('DROP TRIGGER no_more_events')
  }
  assert.deepEqual(await agent.probe.files(), {})
  assert.equal(agent.db.get<{ n: number }>('SELECT count(*) AS n FROM probe_notes')?.n, 0)
  assert.equal(lastRun()?.status, 'failed')
})

test('of two changes of one record at the same time the second is refused, not lost', async () => {
  await agent.request('POST /api/probe/notes', { body: { name: 'n', text: 'one' } })
  const both = Promise.withResolvers<void>()
  let came = 0
  agent.probe.at.set('n:decide', () => {
    if (++came === 2) both.resolve()
    return both.promise
  })
  const change = (text: string) => agent.request('PUT /api/probe/notes/n', { body: { text } })
  const answers = await Promise.all([change('two'), change('three')])
  assert.deepEqual(answers.map(answer => answer.statusCode).sort(), [200, 409])
})

test('a step that could be undone after one that cannot is refused before anything is done', async () => {
  await writeFile(join(agent.probe.folder, 'a'), 'old')
  const steps = [
    { do: 'burn', file: 'a' },
    { do: 'write', file: 'b', text: 'b' },
  ]
  for (const query of ['', '?plan=true']) {
    const answer = await agent.request(`POST /api/probe/p/run${query}`, { body: { steps } })
    assert.equal(answer.statusCode, 500)
  }
  assert.deepEqual(await agent.probe.files(), { a: 'old' })
})

test('a step after a record is refused before anything is done', async () => {
  const steps = [
    { do: 'note', file: 'n', text: 'n' },
    { do: 'write', file: 'b', text: 'b' },
  ]
  for (const query of ['', '?plan=true']) {
    const answer = await agent.request(`POST /api/probe/p/run${query}`, { body: { steps } })
    assert.equal(answer.statusCode, 500)
  }
  assert.deepEqual(await agent.probe.files(), {})
})

test('a reply that fails does not undo what was done, and is not a second event', async () => {
  agent.probe.at.set('p:reply', failing('ENGINE_UNAVAILABLE', 'The engine is gone.'))
  const events = () => agent.db.get<{ n: number }>('SELECT count(*) AS n FROM audit_events')?.n as number
  const before = events()
  const answer = await run([{ do: 'write', file: 'a', text: 'a' }])
  assert.equal(answer.statusCode, 503)
  assert.deepEqual(await agent.probe.files(), { a: 'a' })
  assert.equal(events(), before + 1)
  assert.equal(lastRun()?.status, 'completed')
})

test('what a run had sealed is wiped when it ends', async () => {
  await run([{ do: 'write', file: 'a', text: 'a' }])
  const ended = lastRun()
  assert.deepEqual([ended?.steps, ended?.request], ['', ''])
  const kept = agent.db.get<{ n: number }>('SELECT count(*) AS n FROM run_steps WHERE before IS NOT NULL')
  assert.equal(kept?.n, 0)
})

test('the causes of what failed aside are in the log, and not in the answer', async () => {
  const lines: string[] = []
  const other = await probeAgent({ empty: true, log: { write: line => lines.push(line) } })
  try {
    other.probe.at.set('a:half', () => {
      throw new Error('the cause of a')
    })
    other.probe.at.set('a:undo', () => {
      throw new Error('why a resists')
    })
    const steps = [{ do: 'each', each: [{ do: 'write', file: 'a', text: 'a' }] }]
    const answer = await other.request('POST /api/probe/p/run', { body: { steps } })
    assert.equal(answer.statusCode, 200)
    assert.doesNotMatch(answer.body, /the cause of a|why a resists/)
    assert.match(lines.join(''), /the cause of a/)
    assert.match(lines.join(''), /why a resists/)
  } finally {
    await other.stop()
  }
})

test('a failure tells its own details beside what was undone', async () => {
  agent.probe.at.set('b:half', () => {
    throw new Failure('DEPLOY_FAILED', 'b did not come up', { services: ['web'] })
  })
  const answer = await run(['a', 'b'].map(file => ({ do: 'write', file, text: file })))
  assert.deepEqual(answer.json().details, { services: ['web'], rolled_back: true })
})
