// Jobs and streams of steps: progress, cancel, who sees them, and clients that go away.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { failing, gate, type ProbeAgent, probeAgent } from '../testing/probe.ts'

let agent: ProbeAgent
let port: number
before(async () => {
  agent = await probeAgent()
  port = Number(new URL(await agent.app.listen({ port: 0, host: '127.0.0.1' })).port)
})
after(() => agent.stop())
beforeEach(async () => {
  agent.probe.at.clear()
  agent.probe.reached.length = 0
  await rm(agent.probe.folder, { recursive: true, force: true })
  await mkdir(agent.probe.folder)
})

interface Job {
  id: string
  type: string
  status: string
  progress: number
  phase: string
  error: string | null
  result: {
    status: number
    body: { data: { secret?: string; results: unknown }; code?: string; details?: object }
  } | null
}

const start = async (steps: object[], more: object = {}, headers: Record<string, string> = {}): Promise<string> => {
  const ask = { body: { steps, ...more }, headers: { prefer: 'respond-async', ...headers } }
  const answer = await agent.request('POST /api/probe/p/run', ask)
  assert.equal(answer.statusCode, 201, answer.body)
  const { job_id, ...rest } = answer.json()
  assert.deepEqual(rest, { message: 'Do what the test says: started as a job.' })
  return job_id
}
const job = async (id: string): Promise<Job> => (await agent.request(`GET /api/jobs/${id}`)).json().data
const ended = async (id: string): Promise<Job> => {
  while (agent.door.isActive(id)) await wait(5)
  return job(id)
}

test('a job answers at once, its progress grows, and its result is what the request would have answered', async () => {
  const id = await start([
    { do: 'write', file: 'a', text: 'a', as: 'first' },
    { do: 'work', file: 'w', seconds: 0.5 },
    { do: 'write', file: 'b', text: 'b' },
  ])
  const seen: Job[] = []
  while (agent.door.isActive(id)) {
    seen.push(await job(id))
    await wait(20)
  }
  const progress = seen.map(one => one.progress)
  assert.deepEqual(
    progress,
    progress.toSorted((one, other) => one - other),
    'it only grows',
  )
  assert.ok(new Set(progress).size > 2, `it grows in steps: ${progress}`)
  assert.ok(seen.some(one => one.status === 'running' && / % of w$/.test(one.phase)))
  const { status, progress: all, type, result } = await ended(id)
  assert.deepEqual([status, all, type, result?.status], ['completed', 100, 'probe.run', 200])
  assert.deepEqual(result?.body.data.results, { first: { size: 1, text: 'a' } })
})

test('the progress of an each grows over its steps', async () => {
  const inner = ['a', 'b', 'c', 'd'].map(file => ({ do: 'work', file, seconds: 0.05 }))
  const id = await start([{ do: 'each', each: inner }])
  const seen: number[] = []
  while (agent.door.isActive(id)) {
    seen.push((await job(id)).progress)
    await wait(5)
  }
  assert.deepEqual(
    seen,
    seen.toSorted((one, other) => one - other),
  )
})

test('cancelling ten seconds of work ends it within moments, undoes it, and the job says so', async () => {
  await writeFile(join(agent.probe.folder, 'a'), 'old a')
  const held = gate()
  agent.probe.at.set('w:half', held.hold)
  const id = await start([
    { do: 'write', file: 'a', text: 'new a' },
    { do: 'work', file: 'w', seconds: 10 },
    { do: 'note', file: 'n', text: 'never' },
  ])
  await held.reached
  held.open()
  const began = performance.now()
  const answer = await agent.request(`POST /api/jobs/${id}/cancel`)
  assert.ok(performance.now() - began < 5000)
  assert.equal(answer.statusCode, 200)
  const { status, error, result } = answer.json().data as Job
  assert.equal(status, 'cancelled')
  assert.match(error ?? '', /^The work was cancelled by configured key /)
  assert.deepEqual([result?.status, result?.body.details], [409, { cancelled: true, rolled_back: true }])
  assert.deepEqual(await agent.probe.files(), { a: 'old a' })
  assert.equal(agent.db.get<{ n: number }>('SELECT count(*) AS n FROM probe_notes')?.n, 0)
  const again = await agent.request(`POST /api/jobs/${id}/cancel`)
  assert.equal(again.statusCode, 409)
})

test('a cancel that comes after what cannot be undone is refused, and the job is completed with its records', async () => {
  await writeFile(join(agent.probe.folder, 'b'), 'old')
  const held = gate()
  agent.probe.at.set('b:done', held.hold)
  const id = await start([
    { do: 'burn', file: 'b' },
    { do: 'note', file: 'burnt', text: 'gone' },
  ])
  await held.reached
  const cancelling = agent.request(`POST /api/jobs/${id}/cancel`)
  await wait(50)
  held.open()
  assert.equal((await cancelling).statusCode, 409)
  assert.equal((await job(id)).status, 'completed')
  assert.equal(agent.db.get<{ text: string }>("SELECT text FROM probe_notes WHERE name = 'burnt'")?.text, 'gone')
})

test('a job that waits for a lock is cancelled as well', async () => {
  const held = gate()
  agent.probe.at.set('a:half', held.hold)
  const first = await start([{ do: 'write', file: 'a', text: 'a' }], { locks: ['one'] })
  await held.reached
  const second = await start([{ do: 'write', file: 'b', text: 'b' }], { locks: ['one'] })
  assert.equal((await job(second)).status, 'pending')
  assert.equal((await agent.request(`POST /api/jobs/${second}/cancel`)).json().data.status, 'cancelled')
  held.open()
  assert.equal((await ended(first)).status, 'completed')
  assert.deepEqual(Object.keys(await agent.probe.files()), ['a'])
})

test('a failed job says why and what was undone', async () => {
  agent.probe.at.set('b:half', failing('UPSTREAM_FAILED', 'b broke'))
  const { status, error, result } = await ended(
    await start(['a', 'b'].map(file => ({ do: 'write', file, text: file }))),
  )
  assert.deepEqual([status, error, result?.status], ['failed', 'b broke', 502])
  assert.deepEqual(result?.body.details, { rolled_back: true })
})

test('a refusal comes before the job: an ordinary error, and no job', async () => {
  agent.probe.at.set('p:decide', failing('CONFLICT', 'not now'))
  const jobs = () => agent.db.get<{ n: number }>('SELECT count(*) AS n FROM runs WHERE is_job = 1')?.n
  const before = jobs()
  const answer = await agent.request('POST /api/probe/p/run', {
    body: { steps: [] },
    headers: { prefer: 'respond-async' },
  })
  assert.deepEqual([answer.statusCode, answer.json().error], [409, 'not now'])
  assert.equal(jobs(), before)
})

test("the result of a job does not show a secret, and somebody else's job is not there", async () => {
  const id = await start([{ do: 'write', file: 'a' }], { secret: 'shown-never-again', deployment: 'blog' })
  const { result } = await ended(id)
  assert.equal(result?.body.data.secret, '[redacted]')
  assert.doesNotMatch(JSON.stringify(await job(id)), /shown-never-again/)
  for (const [line, as] of [
    [`GET /api/jobs/${id}`, 'bob'],
    [`POST /api/jobs/${id}/cancel`, 'bob'],
    [`GET /api/jobs/${id}`, 'vera'],
  ] as const) {
    assert.equal((await agent.request(line, { as })).statusCode, 404, `${line} as ${as}`)
  }
  const listed = (await agent.request('GET /api/jobs', { as: 'bob' })).json().data as Job[]
  assert.ok(!listed.some(one => one.id === id))
})

test('steps are streamed as lines as they happen, the last one being the result', async () => {
  agent.probe.at.set('c:half', failing('UPSTREAM_FAILED', 'c broke'))
  const stream = async (files: string[]) => {
    const body = { steps: files.map(file => ({ do: 'write', file, text: file })) }
    return agent.request('POST /api/probe/p/run', { body, headers: { accept: 'application/x-ndjson' } })
  }
  const good = await stream(['a', 'b'])
  assert.equal(good.statusCode, 200)
  assert.equal(good.headers['content-type'], 'application/x-ndjson')
  assert.ok(good.headers['x-request-id'])
  const lines = good.body
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.deepEqual(lines.slice(0, -1), [
    { type: 'step', step: 0, of: 2, status: 'started', what: 'create file a' },
    { type: 'step', step: 0, of: 2, status: 'done', what: 'create file a' },
    { type: 'step', step: 1, of: 2, status: 'started', what: 'create file b' },
    { type: 'step', step: 1, of: 2, status: 'done', what: 'create file b' },
  ])
  assert.deepEqual(lines.at(-1), {
    type: 'result',
    status: 200,
    body: { data: { name: 'p', results: {} }, message: 'It was done.' },
  })
  const bad = (await stream(['b', 'c'])).body
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.deepEqual(
    bad.map(({ type, status, what }) => what ?? `${type} ${status}`).join(', '),
    'create file b, create file b, create file c, create file c, create file c, create file b, result 502',
  )
  assert.deepEqual(
    bad.slice(-4, -1).map(({ status }) => status),
    ['failed', 'undone', 'undone'],
  )
})

test('records are told in a stream too, when they are written', async () => {
  const body = { steps: [{ do: 'write', file: 'a', text: 'a' }, { do: 'note', file: 'told', text: 'n' }] } // biome-ignore format: one line
  const answer = await agent.request('POST /api/probe/p/run', { body, headers: { accept: 'application/x-ndjson' } })
  const lines = answer.body
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.deepEqual(lines.at(-2), { type: 'step', step: 1, of: 2, status: 'done', what: 'create record note told' })
})

test('a refusal before the first step is an ordinary error also where lines are asked for', async () => {
  agent.probe.at.set('p:decide', failing('CONFLICT', 'not now'))
  const answer = await agent.request('POST /api/probe/p/run', {
    body: { steps: [] },
    headers: { accept: 'application/x-ndjson' },
  })
  assert.equal(answer.statusCode, 409)
  assert.match(String(answer.headers['content-type']), /^application\/json/)
})

test('lines and a job asked for together give the job', async () => {
  const id = await start([{ do: 'write', file: 'a', text: 'a' }], {}, { accept: 'application/x-ndjson' })
  assert.equal((await ended(id)).status, 'completed')
  assert.deepEqual(await agent.probe.files(), { a: 'a' })
})

for (const accept of ['application/json', 'application/x-ndjson']) {
  test(`a client that goes away cancels nothing (${accept})`, async () => {
    const held = gate()
    agent.probe.at.set('a:half', held.hold)
    const body = JSON.stringify({ steps: ['a', 'b', 'c'].map(file => ({ do: 'write', file, text: file })) })
    const socket = connect(port, '127.0.0.1')
    const head = ['POST /api/probe/p/run HTTP/1.1', 'host: x', `authorization: Bearer ${await agent.tokenOf('key')}`]
    const rest = ['content-type: application/json', `accept: ${accept}`, `content-length: ${body.length}`, '', body]
    socket.write([...head, ...rest].join('\r\n'))
    await held.reached
    socket.destroy()
    await once(socket, 'close')
    held.open()
    while (!agent.probe.reached.includes('p:reply')) await wait(5)
    assert.deepEqual(await agent.probe.files(), { a: 'a', b: 'b', c: 'c' })
    assert.ok(!agent.probe.reached.some(point => point.endsWith(':undo')))
  })
}

test('stopping the agent waits for the work under way, and begins nothing new', async () => {
  const other = await probeAgent({ empty: true })
  const held = gate()
  other.probe.at.set('a:half', held.hold)
  const working = other.request('POST /api/probe/p/run', { body: { steps: [{ do: 'write', file: 'a', text: 'a' }] } })
  await held.reached
  const stopped = other.door.close(10_000)
  const late = await other.request('POST /api/probe/p/run', {
    body: { steps: [{ do: 'write', file: 'b', text: 'b' }] },
  })
  assert.deepEqual([late.statusCode, late.json().code], [503, 'SERVICE_UNAVAILABLE'])
  held.open()
  assert.equal((await working).statusCode, 200)
  await stopped
  assert.deepEqual(await other.probe.files(), { a: 'a' })
  await other.stop()
})

test('work that takes too long when the agent is stopped is cancelled and undone', async () => {
  const other = await probeAgent({ empty: true })
  const ask = { body: { steps: [{ do: 'work', file: 'w', seconds: 10 }] }, headers: { prefer: 'respond-async' } }
  const { job_id } = (await other.request('POST /api/probe/p/run', ask)).json()
  while (!other.probe.reached.includes('w:half')) await wait(5)
  await other.door.close(10)
  const row = other.door.runs.row(job_id)
  assert.deepEqual([row?.status, row?.error], ['cancelled', 'The agent is being stopped.'])
  assert.deepEqual(await other.probe.files(), {})
  await other.stop()
})
