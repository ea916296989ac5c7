import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type TestAgent, testAgent } from '../../testing/agent.ts'

let agent: TestAgent
before(async () => {
  agent = await testAgent()
})
after(() => agent.stop())

test('a user is created with a plan and then really', async () => {
  const body = { username: 'dora', password: 'long enough to pass', role: 'operator' }
  const planned = await agent.request('POST /api/users?plan=true', { body })
  assert.equal(planned.statusCode, 200)
  const { id } = planned.json().data
  assert.equal((await agent.request('GET /api/users')).json().data.length, 4)
  const applied = await agent.request(`POST /api/plans/${id}/apply`)
  assert.equal(applied.statusCode, 201, applied.body)
  assert.equal(applied.json().data.username, 'dora')
  assert.equal(applied.json().plan.status, 'applied')
  assert.equal((await agent.request(`POST /api/plans/${id}/apply`)).json().code, 'PLAN_NOT_APPLICABLE')
})
