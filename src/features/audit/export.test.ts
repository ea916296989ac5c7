import assert from 'node:assert/strict'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getPriority } from 'node:os'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { system } from '../../core/permission.ts'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { exported } from './export.ts'

const MANY = 30_000

let agent: TestAgent
before(async () => {
  agent = await testAgent()
  agent.db.run(
    `INSERT INTO audit_events (time, actor_type, actor_id, actor_name, action, resource_type, resource_id, success,
        status_code, client_ip, user_agent, request_id, duration_ms, details)
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
      SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 1767225600 + n, 'unixepoch'), 'user', 1, '=alice', 'test.many', 'deployment',
        iif(n % 2, 'shop', 'blog'), n % 3 > 0, 200, NULL, 'curl, "8"', 'r' || n, 1, '{"n":' || n || ',"ü":"é"}'
      FROM numbers`,
    MANY,
  )
})
after(() => agent.stop())

const exportAs = async (body: object, as: 'key' | 'vera' = 'key') => {
  const answer = await agent.request('POST /api/audit/export', { as, body: { action: 'test.many', ...body } })
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.body
}

test('a long export is the same text as a short one, only longer', async () => {
  const short = await exportAs({ format: 'csv', limit: 100 })
  const long = await exportAs({ format: 'csv' })
  assert.ok(long.startsWith(short))
  const lines = long.trimEnd().split('\r\n')
  assert.equal(lines.length, MANY + 1)
  const numbers = lines.slice(1).map(line => Number(/,r(\d+),/.exec(line)?.[1]))
  assert.deepEqual(
    numbers,
    Array.from({ length: MANY }, (_, n) => MANY - n),
  )
  assert.match(String(lines[1]), /,'=alice,.*,"curl, ""8""",.*"\{""n"":30000,""ü"":""é""\}"$/)
})

test('a long export as JSON is one JSON text', async () => {
  const events = JSON.parse(await exportAs({ success: true }))
  assert.equal(events.length, (MANY * 2) / 3)
  assert.deepEqual(events[0].details, { n: MANY - 1, ü: 'é' })
  assert.equal(events[0].success, true)
})

test('in a long export, too, everybody gets only what he may see', async () => {
  const body = { username: 'auditor', password: 'long enough a word', role: 'viewer', permissions: ['audit:read'] }
  const { id } = (await agent.request('POST /api/users', { body })).json().data
  await agent.request(`POST /api/users/${id}/deployments`, { body: { deployment_name: 'shop', access_level: 'read' } })
  const login = { username: body.username, password: body.password }
  const { token } = (await agent.request('POST /api/auth/login', { as: 'nobody', body: login })).json()
  const answer = await agent.request('POST /api/audit/export', { as: { token }, body: { action: 'test.many' } })
  const seen = new Set(answer.json().map((event: { resource_id: string }) => event.resource_id))
  assert.deepEqual([...seen], ['shop'])
  assert.equal(answer.json().length, MANY / 2)
})

test('the thread works at a low priority of its own and ends with its reader', async () => {
  const audit = agent.door.askAs(system).audit
  const threads = () => process.getActiveResourcesInfo().filter(name => name === 'MessagePort').length
  const before = threads()
  const own = getPriority()
  const chunks = exported(audit, { format: 'csv', filter: {} })
  await chunks.next()
  assert.ok(threads() > before)
  assert.equal(getPriority(), own)
  await chunks.return(undefined)
  assert.equal(threads(), before)
})

test('a reader that goes away in the middle leaves nothing behind, and the agent stops at once', async () => {
  const other = await testAgent({ empty: true })
  await other.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = other.app.server.address() as AddressInfo
  const headers = { authorization: `Bearer ${await other.tokenOf('key')}`, 'content-type': 'application/json' }
  other.db.run(
    `INSERT INTO audit_events (time, actor_type, actor_name, action, resource_type, success, status_code, request_id, duration_ms, details)
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 50000)
      SELECT '2026-01-01T00:00:00.000Z', 'system', 'system', 'test.many', 'test', 1, 200, 'r' || n, 1, '{"text":"${'x'.repeat(500)}"}' FROM numbers`,
  )
  await new Promise<void>((resolve, reject) => {
    const asked = request({ port, path: '/api/audit/export', method: 'POST', headers }, answer => {
      answer.once('data', () => {
        answer.destroy()
        resolve()
      })
    })
    asked.on('error', reject).end('{}')
  })
  await sleep(50)
  const began = performance.now()
  await other.stop()
  assert.ok(performance.now() - began < 3000)
})
