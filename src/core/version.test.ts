// Versions of what is read: ETag, If-None-Match and If-Match over the real door.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type ProbeAgent, probeAgent } from '../testing/probe.ts'

let agent: ProbeAgent
before(async () => {
  agent = await probeAgent()
})
after(() => agent.stop())
beforeEach(async () => {
  agent.db.run('DELETE FROM probe_notes')
  await agent.request('POST /api/probe/notes', { body: { name: 'n', text: 'one' } })
})

const get = (headers = {}, line = 'GET /api/probe/notes/n') => agent.request(line, { headers })
const tag = async (line?: string) => String((await get({}, line)).headers.etag)
const put = (text: string, headers = {}) => agent.request('PUT /api/probe/notes/n', { body: { text }, headers })
const text = async () => (await get()).json().data.text

test('what was not changed is 304, without a body', async () => {
  const etag = await tag()
  for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const answer = await get({ 'if-none-match': header })
    assert.deepEqual([answer.statusCode, answer.body, answer.headers.etag], [304, '', etag], header)
  }
  assert.equal((await get({ 'if-none-match': '"other"' })).statusCode, 200)
})

test('a changed record has another tag, and the same content the same', async () => {
  const first = await tag()
  await put('two')
  assert.notEqual(await tag(), first)
  await put('one')
  assert.equal(await tag(), first)
})

test('lists have tags too', async () => {
  const etag = await tag('GET /api/users')
  assert.equal((await get({ 'if-none-match': etag }, 'GET /api/users')).statusCode, 304)
  await agent.request('PUT /api/users/4', { body: { email: 'nina@example.org' } })
  assert.equal((await get({ 'if-none-match': etag }, 'GET /api/users')).statusCode, 200)
})

test('a change is made when If-Match names the present version, and 412 otherwise', async () => {
  const etag = await tag()
  assert.equal((await put('two', { 'if-match': etag })).statusCode, 200)
  const late = await put('three', { 'if-match': etag })
  assert.deepEqual([late.statusCode, late.json().code], [412, 'PRECONDITION_FAILED'])
  assert.equal(await text(), 'two')
  assert.equal((await put('three', { 'if-match': `"other", ${await tag()}` })).statusCode, 200)
  assert.equal((await put('four', { 'if-match': '*' })).statusCode, 200)
})

test('a removal honours If-Match', async () => {
  const remove = (header: string) => agent.request('DELETE /api/probe/notes/n', { headers: { 'if-match': header } })
  assert.equal((await remove('"other"')).statusCode, 412)
  assert.equal((await remove(await tag())).statusCode, 200)
  assert.equal((await remove('*')).statusCode, 404)
})

test('If-Match compares the revision: what moves by itself does not count, though the tag is another', async () => {
  const etag = await tag()
  agent.db.run('UPDATE probe_notes SET seen = 9')
  const moved = await tag()
  assert.notEqual(moved, etag)
  assert.equal((await get({ 'if-none-match': etag })).statusCode, 200)
  assert.equal((await put('two', { 'if-match': etag })).statusCode, 200)
})

test('planning honours If-Match, and so does a job, at once', async () => {
  const planned = await agent.request('PUT /api/probe/notes/n?plan=true', {
    body: { text: 'two' },
    headers: { 'if-match': '"x"' },
  })
  assert.equal(planned.statusCode, 412)
  assert.equal((await put('two', { 'if-match': '"x"', prefer: 'respond-async' })).statusCode, 412)
  assert.equal(await text(), 'one')
})

test('of two who read the same version and write, one is refused', async () => {
  const etag = await tag()
  const answers = await Promise.all([put('two', { 'if-match': etag }), put('three', { 'if-match': etag })])
  const codes = answers.map(answer => answer.statusCode).sort()
  assert.equal(codes[0], 200)
  assert.ok(codes[1] === 409 || codes[1] === 412, String(codes))
})

test('what has no version refuses any but the star', async () => {
  const run = (header: string) =>
    agent.request('POST /api/probe/p/run', { body: { steps: [] }, headers: { 'if-match': header } })
  assert.equal((await run('"x"')).statusCode, 412)
  assert.equal((await run('*')).statusCode, 200)
})
