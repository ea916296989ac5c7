import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { standIns } from '../../testing/images.ts'
import { freePort } from '../../testing/port.ts'

let agent: TestAgent
let world: TestEngine
let removeImages: () => Promise<void>
before(async () => {
  world = testEngine()
  agent = await testAgent()
  const kinds = ['postgres', 'mariadb', 'redis', 'nginx'] as const
  removeImages = await standIns(
    Object.fromEntries(await Promise.all(kinds.map(async kind => [kind, await imageOf(kind)]))),
  )
})
after(async () => {
  await agent.stop()
  await world.cleanup()
  await removeImages()
})

describe('deployed from its template by somebody who is no administrator', { concurrency: true }, () => {
  test('PostgreSQL becomes healthy, asks for the generated password, and keeps its data', async () => {
    const { name, secrets } = await deploy('postgres', { POSTGRES_DB: 'shop', DB_PORT: await freePort() })
    const sql = (text: string, PGPASSWORD = secrets.POSTGRES_PASSWORD ?? '') =>
      run(name, ['psql', '-h', '127.0.0.1', '-U', 'app', '-d', 'shop', '-Atc', text], { PGPASSWORD })
    assert.notEqual((await sql('SELECT 1', 'a guess')).code, 0)
    assert.equal((await sql("CREATE TABLE kept AS SELECT 'still here' AS words")).code, 0)
    await takeDownAndUp(name)
    assert.equal((await sql('SELECT words FROM kept')).stdout, 'still here\n')
  })

  test('MariaDB becomes healthy, asks for the generated passwords, and keeps its data', async () => {
    const { name, secrets } = await deploy('mariadb', { MARIADB_DATABASE: 'shop', DB_PORT: await freePort() })
    const sql = (text: string, MYSQL_PWD = secrets.MARIADB_PASSWORD ?? '') =>
      run(name, ['mariadb', '-h', '127.0.0.1', '-u', 'app', '-N', '-e', text, 'shop'], { MYSQL_PWD })
    assert.notEqual((await sql('SELECT 1', 'a guess')).code, 0)
    assert.notEqual(secrets.MARIADB_PASSWORD, secrets.MARIADB_ROOT_PASSWORD)
    assert.equal((await sql("CREATE TABLE kept AS SELECT 'still here' AS words")).code, 0)
    await takeDownAndUp(name)
    assert.equal((await sql('SELECT words FROM kept')).stdout, 'still here\n')
  })

  test('Redis becomes healthy, asks for the generated password, and keeps its data', async () => {
    const { name } = await deploy('redis', {
      MAX_MEMORY: '64mb',
      MAX_MEMORY_POLICY: 'allkeys-lru',
      REDIS_PORT: await freePort(),
    })
    const redis = (...words: string[]) => run(name, ['redis-cli', ...words])
    const guess = await run(name, ['redis-cli', 'GET', 'kept'], { REDISCLI_AUTH: 'a guess' })
    assert.match(guess.stdout, /NOAUTH/)
    assert.match((await redis('CONFIG', 'GET', 'maxmemory-policy')).stdout, /allkeys-lru/)
    assert.equal((await redis('SET', 'kept', 'still here')).stdout, 'OK\n')
    await takeDownAndUp(name)
    assert.equal((await redis('GET', 'kept')).stdout, 'still here\n')
  })

  test('nginx becomes healthy, serves its pages on the port that was asked for, and keeps them', async () => {
    const port = await freePort()
    const { name } = await deploy('nginx', { HTTP_PORT: port })
    const page = async () => (await fetch(`http://127.0.0.1:${port}/`)).text()
    assert.match(await page(), /nginx/)
    await run(name, ['sh', '-c', 'echo still here >/usr/share/nginx/html/index.html'])
    await takeDownAndUp(name)
    assert.equal(await page(), 'still here\n')
  })
})

test('the plan of a deployment shows its files and none of its secrets, and comes true', async () => {
  const name = world.name('planned')
  const body = { name, template_id: 'redis', values: { REDIS_PORT: await freePort(), REDIS_PASSWORD: 'canary' } }
  const plan = await agent.request('POST /api/deployments?plan=true', { body })
  assert.equal(plan.statusCode, 200, plan.body)
  assert.doesNotMatch(plan.body, /canary/)
  const applied = await agent.request(`POST /api/plans/${plan.json().data.id}/apply`)
  assert.equal(applied.statusCode, 201, applied.body)
  assert.match(applied.json().data.compose_content, /redis:/)
  assert.equal(secretsOf(applied.json().data.env_vars).REDIS_PASSWORD, 'canary')
})

type Values = Record<string, string | number>

async function deploy(template: string, values: Values) {
  const name = world.name(template)
  const body = { name, template_id: template, values, auto_start: true }
  const answer = await agent.request('POST /api/deployments', { as: 'nina', body })
  assert.equal(answer.statusCode, 201, answer.body)
  const { status, services, env_vars } = answer.json().data
  assert.equal(status, 'running')
  assert.deepEqual(
    services.map(({ health }: { health: string }) => health),
    ['healthy'],
  )
  return { name, secrets: secretsOf(env_vars) }
}

/** Its containers go; its volumes stay, and are taken up by new ones. What was left behind only an administrator takes up. */
async function takeDownAndUp(name: string): Promise<void> {
  const gone = await agent.request(`DELETE /api/deployments/${name}`, { as: 'nina' })
  assert.equal(gone.statusCode, 200, gone.body)
  const again = await agent.request('POST /api/deployments', { body: { name, auto_start: true } })
  assert.equal(again.statusCode, 201, again.body)
}

const secretsOf = (vars: { key: string; value: string }[]): Record<string, string> =>
  Object.fromEntries(vars.map(({ key, value }) => [key, value]))

async function run(deployment: string, command: string[], env: Record<string, string> = {}) {
  const { services } = (await agent.request(`GET /api/deployments/${deployment}`)).json().data
  return world.engine.exec.run(services[0].container_ids[0], { command, env })
}

async function imageOf(template: string): Promise<string> {
  const { compose_content } = (await agent.request(`GET /api/templates/${template}/compose`)).json().data
  return /image: (\S+)/.exec(compose_content)?.[1] as string
}
