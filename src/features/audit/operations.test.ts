import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Ask, PASSWORD, type TestAgent, testAgent } from '../../testing/agent.ts'

interface Event {
  id: number
  time: string
  action: string
  actor_type: string
  actor_id: number | null
  actor_name: string
  resource_type: string
  resource_id: string | null
  success: boolean
  status_code: number
  client_ip: string
  request_id: string
  details: { changes?: { id: string }[]; error?: string; code?: string }
}

let agent: TestAgent
before(async () => {
  agent = await testAgent()
})
after(() => agent.stop())

const request = (line: string, ask?: Ask) => agent.request(line, ask)
const events = async (query: Record<string, string> = {}, ask: Ask = {}): Promise<Event[]> => {
  const answer = await request('GET /api/audit/events', { query: { limit: '1000', ...query }, ...ask })
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json().data
}
const newest = async (): Promise<Event> => (await events({ limit: '1' }))[0] as Event
const lastId = () => agent.db.get<{ id: number }>('SELECT max(id) AS id FROM audit_events')?.id ?? 0

function insert(event: Partial<Record<string, string | number | null>> = {}, times = 1): void {
  const row = {
    time: new Date().toISOString(),
    actor_type: 'system',
    actor_id: null,
    actor_name: 'system',
    action: 'test.inserted',
    resource_type: 'test',
    resource_id: null,
    success: 1,
    status_code: 200,
    client_ip: '192.0.2.1',
    user_agent: null,
    request_id: 'r',
    duration_ms: 1,
    details: '{}',
    ...event,
  }
  const columns = Object.keys(row)
  const sql = `INSERT INTO audit_events (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
  agent.db.transaction(() => {
    for (let count = 0; count < times; count++) agent.db.run(sql, ...(Object.values(row) as string[]))
  })
}

suite('what is written', () => {
  test('a change writes one event with who, what, from where, and the changes made', async () => {
    const before = lastId()
    const headers = { 'user-agent': 'test/1' }
    const { headers: answered } = await request('PUT /api/users/4', {
      as: 'alice',
      body: { email: 'n@example.org' },
      headers,
    })
    const made = (await events({ action: 'user.update' })).filter(event => event.id > before)
    assert.equal(made.length, 1)
    const { time, duration_ms, details, id: _, ...event } = made[0] as Event & { duration_ms: number }
    assert.deepEqual(event, {
      actor_type: 'user',
      actor_id: 1,
      actor_name: 'alice',
      action: 'user.update',
      resource_type: 'user',
      resource_id: '4',
      success: true,
      status_code: 200,
      client_ip: '127.0.0.1',
      user_agent: 'test/1',
      request_id: answered['x-request-id'],
    })
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000)
    assert.ok(duration_ms >= 0)
    assert.equal(details.changes?.[0]?.id, 'user nina')
  })

  test('a refused change writes one event too, whatever refused it', async () => {
    const refusals: [string, Ask, number, string][] = [
      ['POST /api/users', { as: 'vera', body: {} }, 403, 'user.create'],
      ['POST /api/users', { body: { username: '!' } }, 400, 'user.create'],
      ['POST /api/users', { body: { username: 'alice', password: PASSWORD } }, 409, 'user.create'],
      ['PUT /api/users/900', { body: {} }, 404, 'user.update'],
      ['DELETE /api/users/4', { headers: { 'if-match': '"x"' } }, 412, 'user.delete'],
      ['POST /api/plans/none/apply', {}, 404, 'plan.apply'],
      ['POST /api/users', { payload: '{', headers: { 'content-type': 'application/json' } }, 400, 'user.create'],
      ['POST /api/users', { payload: 'x', headers: { 'content-type': 'text/plain' } }, 415, 'user.create'],
      ['DELETE /api/users/4?plan=maybe', {}, 400, 'user.delete'],
      [
        'POST /api/auth/login',
        { as: 'nobody', payload: '{', headers: { 'content-type': 'application/json' } },
        400,
        'user.login',
      ],
    ]
    await agent.tokenOf('vera')
    for (const [line, ask, status, action] of refusals) {
      const before = lastId()
      assert.equal((await request(line, ask)).statusCode, status, line)
      const event = await newest()
      assert.equal(lastId(), before + 1, line)
      assert.deepEqual([event.action, event.status_code, event.success], [action, status, false], line)
      assert.ok(event.details.error)
    }
  })

  test('a login is an event of who logged in; a failed one of system, with the name tried', async () => {
    await request('POST /api/auth/login', { as: 'nobody', body: { username: 'bob', password: PASSWORD } })
    const good = await newest()
    assert.deepEqual([good.action, good.actor_type, good.actor_name, good.success], ['user.login', 'user', 'bob', true])
    await request('POST /api/auth/login', { as: 'nobody', body: { username: 'mallory', password: 'x' } })
    const bad = await newest()
    assert.deepEqual(
      [bad.action, bad.actor_type, bad.resource_id, bad.status_code],
      ['user.login', 'system', 'mallory', 401],
    )
    await request('POST /api/auth/login', { as: 'nobody', body: { api_key: 'wrong-key' } })
    const key = await newest()
    assert.deepEqual([key.actor_type, key.success], ['system', false])
    assert.doesNotMatch(JSON.stringify(key), /wrong-key/)
  })

  test('a read, and a request without a valid token, write none', async () => {
    const before = lastId()
    await request('GET /api/users')
    await request('POST /api/users', { as: 'nobody', body: {} })
    await request('POST /api/users', { as: { token: 'x' }, body: {} })
    await request('POST /api/nothing', { body: {} })
    await request('PATCH /api/users', { body: {} })
    assert.equal(lastId(), before)
  })

  test('a plan writes one event, and its application one that names the plan', async () => {
    const before = lastId()
    const { id } = (await request('PUT /api/users/4?plan=true', { body: { email: 'p@example.org' } })).json().data
    const planned = await newest()
    assert.deepEqual([planned.action, planned.resource_type, planned.resource_id], ['plan.create', 'plan', id])
    await request(`POST /api/plans/${id}/apply`, { as: 'alice' })
    const applied = await newest()
    assert.deepEqual([applied.action, applied.resource_id, applied.actor_name], ['user.update', '4', 'alice'])
    assert.equal((applied.details as { plan?: string }).plan, id)
    assert.equal(lastId(), before + 2)
  })
})

suite('what is listed', () => {
  before(() => {
    insert({
      actor_type: 'user',
      actor_id: 77,
      action: 'test.one',
      resource_type: 'thing',
      resource_id: 'a',
      client_ip: '192.0.2.7',
      time: '2020-05-01T10:00:00.000Z',
    })
    insert({
      actor_type: 'api_key',
      actor_id: 77,
      action: 'test.two',
      resource_type: 'thing',
      resource_id: 'b',
      success: 0,
      status_code: 409,
      time: '2020-05-02T10:00:00.000Z',
    })
    insert({ action: 'test.three', resource_type: 'other', resource_id: 'a', time: '2020-05-03T10:00:00.000Z' })
  })
  const past = { start_time: '2020-01-01T00:00:00Z', end_time: '2020-12-31T00:00:00Z' }
  const actions = async (query: Record<string, string>) =>
    (await events({ ...past, ...query })).map(event => event.action)

  test('every filter filters, alone and together', async () => {
    assert.deepEqual(await actions({}), ['test.three', 'test.two', 'test.one'], 'newest first')
    assert.deepEqual(await actions({ actor_id: '77' }), ['test.two', 'test.one'])
    assert.deepEqual(await actions({ actor_type: 'api_key' }), ['test.two'])
    assert.deepEqual(await actions({ action: 'test.one' }), ['test.one'])
    assert.deepEqual(await actions({ resource_type: 'thing' }), ['test.two', 'test.one'])
    assert.deepEqual(await actions({ resource_id: 'a' }), ['test.three', 'test.one'])
    assert.deepEqual(await actions({ success: 'false' }), ['test.two'])
    assert.deepEqual(await actions({ success: 'true' }), ['test.three', 'test.one'])
    assert.deepEqual(await actions({ client_ip: '192.0.2.7' }), ['test.one'])
    assert.deepEqual(await actions({ resource_type: 'thing', success: 'true' }), ['test.one'])
    assert.deepEqual(await actions({ resource_type: 'thing', resource_id: 'c' }), [])
    assert.deepEqual(await actions({ action: "' OR 1=1 --" }), [])
  })

  test('times bound both ends, RFC 3339 in any offset or a span back from now', async () => {
    assert.deepEqual(await actions({ start_time: '2020-05-02T10:00:00Z' }), ['test.three', 'test.two'])
    assert.deepEqual(await actions({ end_time: '2020-05-02T12:00:00+02:00' }), ['test.two', 'test.one'])
    assert.deepEqual(await actions({ start_time: '2020-05-02T10:00:00.001Z', end_time: '2020-05-02T23:00:00Z' }), [])
    assert.ok((await events({ start_time: '15m' })).length > 0)
    assert.deepEqual(await events({ end_time: '52w', start_time: '2020-06-01T00:00:00Z' }), [])
    for (const time of ['yesterday', '2020-05-02', '2020-02-30T00:00:00Z', '', '15', '-1h']) {
      const answer = await request('GET /api/audit/events', { query: { start_time: time } })
      assert.deepEqual([answer.statusCode, answer.json().details?.[0]?.path], [400, 'start_time'], time)
    }
  })

  test('pages follow each other without a gap or a repetition', async () => {
    const all = (await events()).map(event => event.id)
    const [first, second] = [await events({ limit: '3' }), await events({ limit: '3', offset: '3' })]
    assert.deepEqual(
      [...first, ...second].map(event => event.id),
      all.slice(0, 6),
    )
    const { total, limit, offset } = (await request('GET /api/audit/events?limit=3&offset=3')).json()
    assert.deepEqual([total, limit, offset], [all.length, 3, 3])
    assert.deepEqual((await request('GET /api/audit/events?offset=100000')).json().data, [])
  })

  test('one event is as in the list; an unknown one is 404', async () => {
    const event = await newest()
    assert.deepEqual((await request(`GET /api/audit/events/${event.id}`)).json().data, event)
    assert.equal((await request('GET /api/audit/events/99999999')).statusCode, 404)
    assert.equal((await request('GET /api/audit/events/0')).statusCode, 400)
  })

  test('a total is exact up to 10,000 and says so beyond', async () => {
    insert({ action: 'test.many' }, 10_000)
    const full = (await request('GET /api/audit/events?action=test.many&limit=1')).json()
    assert.deepEqual([full.total, full.total_capped], [10_000, undefined])
    insert({ action: 'test.many' })
    const capped = (await request('GET /api/audit/events?action=test.many&limit=1')).json()
    assert.deepEqual([capped.total, capped.total_capped], [10_000, true])
    agent.db.run("DELETE FROM audit_events WHERE action = 'test.many'")
  })
})

test('stats count by action, actor and day, with the failures', async () => {
  const stats = async (query = '') => (await request(`GET /api/audit/stats${query}`)).json().data
  const before = await stats()
  await request('PUT /api/users/4', { as: 'alice', body: { email: 's@example.org' } })
  await request('PUT /api/users/901', { as: 'alice', body: { email: 's@example.org' } })
  const after = await stats()
  const of = (counts: typeof before, list: string, name: string, value: string) =>
    counts[list].find((one: Record<string, unknown>) => one[name] === value) ?? { events: 0, failures: 0 }
  assert.equal(after.total - before.total, 2)
  assert.equal(after.failures - before.failures, 1)
  const today = new Date().toISOString().slice(0, 10)
  for (const [list, name, value] of [
    ['by_action', 'action', 'user.update'],
    ['by_actor', 'actor_name', 'alice'],
    ['by_day', 'day', today],
  ] as const) {
    const [old, now] = [of(before, list, name, value), of(after, list, name, value)]
    assert.deepEqual([now.events - old.events, now.failures - old.failures], [2, 1], list)
  }
  assert.equal((await stats('?end_time=2019-01-01T00:00:00Z')).total, 0)
  assert.equal((await stats('?start_time=1h')).total, after.total)
  assert.equal((await request('GET /api/audit/stats?start_time=x')).statusCode, 400)
})

suite('what is exported', () => {
  const exported = async (body: object, ask: Ask = {}) => request('POST /api/audit/export', { ...ask, body })

  test('JSON by default: a file with all events that fit, newest first', async () => {
    const answer = await exported({ action: 'user.create' })
    assert.equal(answer.statusCode, 200)
    assert.match(String(answer.headers['content-type']), /^application\/json/)
    assert.equal(answer.headers['content-disposition'], 'attachment; filename="audit.json"')
    assert.deepEqual(answer.json(), await events({ action: 'user.create' }))
    assert.deepEqual((await exported({ action: 'none.such' })).json(), [])
  })

  test('CSV: a head and a line each, in the columns of the list', async () => {
    const answer = await exported({ format: 'csv', action: 'user.create', success: true })
    assert.match(String(answer.headers['content-type']), /^text\/csv/)
    assert.equal(answer.headers['content-disposition'], 'attachment; filename="audit.csv"')
    const [head, ...lines] = answer.body.trimEnd().split('\r\n')
    assert.equal(
      head,
      'id,time,actor_type,actor_id,actor_name,action,resource_type,resource_id,success,status_code,client_ip,user_agent,request_id,duration_ms,details',
    )
    const listed = await events({ action: 'user.create', success: 'true' })
    assert.deepEqual(
      lines.map(line => Number(line.split(',')[0])),
      listed.map(event => event.id),
    )
  })

  test('no cell of a CSV can be a formula', async () => {
    const formulas = ['=cmd|calc', '+1', '-1+1', '@SUM(A1)', '\t=1', '\r=1', ' =1', '\n@x', '%0a', '|x']
    for (const text of formulas)
      insert({ action: 'test.formula', actor_name: text, resource_id: text, user_agent: text })
    const { body } = await exported({ format: 'csv', action: 'test.formula' })
    const cells = csvCells(body)
      .slice(1)
      .flatMap(row => [row[4], row[7], row[11]])
    assert.equal(cells.length, formulas.length * 3)
    for (const cell of cells) assert.match(cell as string, /^'/, JSON.stringify(cell))
    agent.db.run("DELETE FROM audit_events WHERE action = 'test.formula'")
  })

  test('quotes, commas and line breaks stay inside their cell', async () => {
    const text = 'a "quoted", and\r\nbroken'
    insert({ action: 'test.quotes', resource_id: text })
    const { body } = await exported({ format: 'csv', action: 'test.quotes' })
    assert.equal(csvCells(body)[1]?.[7], text)
  })

  test('limit bounds it, and may be more than a page of a list', async () => {
    insert({ action: 'test.bulk' }, 2500)
    assert.equal((await exported({ action: 'test.bulk' })).json().length, 2500)
    assert.equal((await exported({ action: 'test.bulk', limit: 1200 })).json().length, 1200)
    assert.equal((await exported({ action: 'test.bulk', limit: 1 })).json().length, 1)
    assert.equal((await exported({ limit: 0 })).statusCode, 400)
    agent.db.run("DELETE FROM audit_events WHERE action = 'test.bulk'")
  })

  test('a bad filter is refused before the file begins', async () => {
    assert.equal((await exported({ start_time: 'x' })).json().code, 'VALIDATION_FAILED')
    assert.equal((await exported({ format: 'xml' })).statusCode, 400)
    assert.equal((await exported({}, { as: 'bob' })).statusCode, 403)
  })

  test('events that come and go meanwhile do not disturb it', async () => {
    insert({ action: 'test.moving' }, 500)
    const ids = new Set<number>()
    const reader = agent.door.askAs((await import('../../core/permission.ts')).system).audit
    for await (const page of reader.all({ action: 'test.moving' })) {
      for (const [id] of page) ids.add(id as number)
      insert({ action: 'test.moving' })
      agent.db.run(
        "DELETE FROM audit_events WHERE id = (SELECT max(id) FROM audit_events WHERE action = 'test.moving')",
      )
    }
    assert.equal(ids.size, 500)
    agent.db.run("DELETE FROM audit_events WHERE action = 'test.moving'")
  })
})

suite('what is cleaned up', () => {
  const old = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
  const left = () =>
    agent.db.all<{ n: number }>("SELECT count(*) AS n FROM audit_events WHERE action = 'test.old'")[0]?.n

  test('POST with a body, DELETE with a query or a body: all remove what is older', async () => {
    const ways: [string, Ask][] = [
      ['POST /api/audit/cleanup', { body: { older_than: 86_400 * 50 } }],
      ['DELETE /api/audit/cleanup', { query: { older_than: String(86_400 * 50) } }],
      ['DELETE /api/audit/cleanup', { body: { older_than: 86_400 * 50 } }],
    ]
    for (const [line, ask] of ways) {
      insert({ action: 'test.old', time: old(100) }, 3)
      insert({ action: 'test.old', time: old(10) })
      const answer = await request(line, ask)
      assert.deepEqual(
        [answer.statusCode, answer.json().data],
        [200, { deleted: 3 + (line === ways[0]?.[0] ? 3 : 0) }],
        line,
      )
      assert.equal(left(), 1)
      agent.db.run("DELETE FROM audit_events WHERE action = 'test.old'")
    }
  })

  test('the counts of what is gone go with it', async () => {
    insert({ action: 'test.old', time: '2019-03-01T10:00:00.000Z' }, 2)
    agent.db.run("INSERT INTO audit_counts VALUES ('2019-03-01', 'test.old', 'system', 'system', 2, 0)")
    const counted = async () => (await request('GET /api/audit/stats?end_time=2019-12-31T00:00:00Z')).json().data.total
    assert.equal(await counted(), 2)
    await request('POST /api/audit/cleanup', { body: { older_than: 86_400 * 365 } })
    assert.equal(await counted(), 0)
  })

  test('a plan of it removes nothing, and what it needs is checked', async () => {
    insert({ action: 'test.old', time: old(100) })
    const plan = await request('POST /api/audit/cleanup?plan=true', { body: { older_than: 86_400 } })
    assert.equal(plan.json().data.changes[0].action, 'delete')
    assert.equal(left(), 1)
    for (const body of [{}, { older_than: -1 }, { older_than: '1' }, { older_than: 1.5 }]) {
      assert.equal((await request('POST /api/audit/cleanup', { body })).statusCode, 400, JSON.stringify(body))
    }
  })

  test('cleaning up everything leaves the event that says so', async () => {
    await request('POST /api/audit/cleanup', { as: 'alice', body: { older_than: 0 } })
    const [only, ...others] = await events()
    assert.deepEqual([only?.action, only?.actor_name, others.length], ['audit.cleanup', 'alice', 0])
  })
})

test('who is bound to some deployments sees what was done to them and what he did himself, and removes nothing', async () => {
  const body = { username: 'auditor', password: PASSWORD, role: 'viewer', permissions: ['audit:write', 'plans:read'] }
  const { id } = (await request('POST /api/users', { body })).json().data
  await request(`POST /api/users/${id}/deployments`, { body: { deployment_name: 'shop', access_level: 'read' } })
  const { token } = (
    await request('POST /api/auth/login', { as: 'nobody', body: { username: 'auditor', password: PASSWORD } })
  ).json()
  insert({ action: 'test.shop', resource_type: 'deployment', resource_id: 'shop' })
  insert({ action: 'test.blog', resource_type: 'deployment', resource_id: 'blog' })
  const ask = { as: { token } }
  const seen = await events({}, ask)
  assert.deepEqual(
    seen.map(event => event.action),
    ['test.shop', 'user.login'],
  )
  const blog = (await events({ action: 'test.blog' }))[0] as Event
  assert.equal((await request(`GET /api/audit/events/${blog.id}`, ask)).statusCode, 404)
  assert.equal((await request('POST /api/audit/export', { ...ask, body: {} })).json().length, 2)
  const stats = (await request('GET /api/audit/stats', ask)).json().data
  assert.deepEqual([stats.total, stats.by_actor.length], [2, 2])
  assert.doesNotMatch(JSON.stringify(stats), /alice|test\.blog/)
  assert.equal((await request('POST /api/audit/cleanup', { ...ask, body: { older_than: 0 } })).statusCode, 403)
})

/** Rows of cells, quotes taken off. */
function csvCells(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const match of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    const cell = match[1] === undefined ? (match[2] as string) : match[1].replaceAll('""', '"')
    rows.at(-1)?.push(cell)
    if (match[3] === '\r\n') rows.push([])
  }
  return rows.filter(row => row.length > 0)
}
