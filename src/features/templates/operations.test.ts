import assert from 'node:assert/strict'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type TestAgent, testAgent } from '../../testing/agent.ts'

let agent: TestAgent
before(async () => {
  agent = await testAgent()
})
after(() => agent.stop())

interface Shown {
  id: string
  name: string
  category: string
  source: string
  variables: { key: string; generate: boolean }[]
}
const list = async (query = ''): Promise<Shown[]> => (await agent.request(`GET /api/templates${query}`)).json().data
const refresh = async () => (await agent.request('POST /api/templates/refresh')).json().data
const write = async (id: string, texts: Record<string, string>) => {
  await mkdir(join(agent.folder, 'templates', id), { recursive: true })
  for (const [file, text] of Object.entries(texts)) await writeFile(join(agent.folder, 'templates', id, file), text)
}
const template = 'name: Ours\ndescription: our own\ncategory: in-house\nversion: "1"\n'
const compose = 'services:\n  web:\n    image: fairlead-test/busybox:1\n'

test('templates are listed by name, and found by category and by words', async () => {
  const all = await list()
  assert.ok(all.length >= 30)
  assert.deepEqual(
    all.map(({ name }) => name),
    all.map(({ name }) => name).sort((a, b) => a.localeCompare(b, 'en')),
  )
  const postgres = all.find(({ id }) => id === 'postgres')
  assert.equal(postgres?.source, 'builtin')
  assert.equal(postgres?.variables.find(({ key }) => key === 'POSTGRES_PASSWORD')?.generate, true)
  assert.deepEqual(
    (await list('?category=web')).map(({ id }) => id),
    ['caddy', 'nginx'],
  )
  assert.deepEqual(
    (await list('?search=BLOG%20newsletter')).map(({ id }) => id),
    ['ghost'],
  )
  assert.deepEqual(await list('?search=nothing-is-called-so'), [])
})

test('categories are counted', async () => {
  const categories = (await agent.request('GET /api/templates/categories')).json().data
  const total = categories.reduce((sum: number, { count }: { count: number }) => sum + count, 0)
  assert.equal(total, (await list()).length)
  assert.deepEqual(
    categories.find(({ id }: { id: string }) => id === 'web'),
    { id: 'web', name: 'Web servers', count: 2 },
  )
})

test('a template is shown with values, and its secrets are not', async () => {
  const values = JSON.stringify({ POSTGRES_DB: 'shop', POSTGRES_PASSWORD: 'canary', DB_PORT: 5433 })
  const answer = await agent.request('GET /api/templates/postgres/compose', { query: { values } })
  assert.equal(answer.statusCode, 200, answer.body)
  const { id, compose_content, env_vars } = answer.json().data
  assert.equal(id, 'postgres')
  assert.match(compose_content, /POSTGRES_PASSWORD: \$\{POSTGRES_PASSWORD:\?\}/)
  const shown = Object.fromEntries(env_vars.map(({ key, value }: { key: string; value: string }) => [key, value]))
  assert.deepEqual(shown, {
    POSTGRES_DB: 'shop',
    POSTGRES_USER: 'app',
    POSTGRES_PASSWORD: '[redacted]',
    DB_PORT: '5433',
    BIND: '127.0.0.1',
  })
  assert.doesNotMatch(answer.body, /canary/)
})

test('an unknown template is 404; values that do not fit are 400, each by its name', async () => {
  for (const id of ['nothing', '..', '%2e%2e%2fsrc', 'postgres%2f..%2fnginx', '__proto__', 'x'.repeat(64)]) {
    const { statusCode, body } = await agent.request(`GET /api/templates/${id}/compose`)
    assert.ok(statusCode === 404 || statusCode === 400, `${id}: ${statusCode} ${body}`)
    assert.doesNotMatch(body, /\/home|\/work|\/tmp|\/usr/)
  }
  const asked = async (values: string) =>
    (await agent.request('GET /api/templates/nginx/compose', { query: { values } })).json()
  assert.deepEqual((await asked('{"HTTP_PORT": 0, "PORT": 1}')).details, [
    { path: 'values.PORT', message: 'is not a variable of this template' },
    { path: 'values.HTTP_PORT', message: 'must be a port: 1 to 65535' },
  ])
  for (const values of ['not json', '[1]', '{"HTTP_PORT": {}}', 'null', '7'])
    assert.equal((await asked(values)).code, 'VALIDATION_FAILED', values)
})

test('local templates add to the built-in ones and stand in for them after a refresh', async () => {
  const before = (await list()).length
  await write('ours', { 'template.yml': template, 'compose.yml': compose })
  await write('nginx', { 'template.yml': template.replace('Ours', 'My nginx'), 'compose.yml': compose })
  assert.equal((await list()).length, before)

  const plan = await agent.request('POST /api/templates/refresh?plan=true')
  assert.equal(plan.json().data.changes.length, 1)
  assert.equal((await list()).length, before)

  assert.deepEqual(await refresh(), { count: before + 1, errors: [] })
  const all = await list()
  assert.equal(all.find(({ id }) => id === 'ours')?.source, 'local')
  assert.equal(all.find(({ id }) => id === 'nginx')?.name, 'My nginx')
  const categories = (await agent.request('GET /api/templates/categories')).json().data
  assert.deepEqual(
    categories.find(({ id }: { id: string }) => id === 'in-house'),
    { id: 'in-house', name: 'In house', count: 2 },
  )

  await rm(join(agent.folder, 'templates'), { recursive: true })
  assert.deepEqual(await refresh(), { count: before, errors: [] })
  assert.equal((await list()).find(({ id }) => id === 'nginx')?.name, 'nginx')
})

test('what is broken is told, hides no other, and leaves the built-in one in place', async () => {
  const before = (await list()).length
  await write('good', { 'template.yml': template, 'compose.yml': compose })
  await write('nginx', { 'template.yml': 'name: [', 'compose.yml': compose })
  await write('half', { 'template.yml': template })
  await write('large', { 'template.yml': template, 'compose.yml': `${compose}#${'x'.repeat(257 * 1024)}` })
  await write('Bad Name', { 'template.yml': template, 'compose.yml': compose })
  await write('linked', { 'template.yml': template })
  await symlink('/etc/hostname', join(agent.folder, 'templates', 'linked', 'compose.yml'))
  await symlink(agent.folder, join(agent.folder, 'templates', 'way-out'))
  await write('.git', { config: '' })

  const { count, errors } = await refresh()
  assert.equal(count, before + 1)
  assert.deepEqual(
    errors.map(({ path }: { path: string }) => path),
    ['Bad Name', 'half', 'large', 'linked', 'nginx', 'way-out'],
  )
  const [name, half, large, linked, nginx, wayOut] = errors.map(({ error }: { error: string }) => error)
  assert.match(name, /must be 1 to 63 of a-z/)
  assert.match(half, /There is no compose\.yml/)
  assert.match(large, /larger than 262144 bytes/)
  assert.match(linked, /leads through a link/)
  assert.match(nginx, /^template\.yml is not valid YAML/)
  assert.match(wayOut, /not a folder/)
  assert.equal((await list()).find(({ id }) => id === 'nginx')?.source, 'builtin')
  await rm(join(agent.folder, 'templates'), { recursive: true })
  await refresh()
})

test('a folder that is not there, or is none, hides nothing', async () => {
  const before = (await list()).length
  await rm(join(agent.folder, 'templates'), { recursive: true, force: true })
  assert.deepEqual(await refresh(), { count: before, errors: [] })
  await rm(join(agent.folder, 'templates'), { recursive: true, force: true })
  await writeFile(join(agent.folder, 'templates'), '')
  const { count, errors } = await refresh()
  assert.equal(count, before)
  assert.equal(errors[0].path, '.')
  assert.doesNotMatch(errors[0].error, /\//)
})

test('viewers look, and who may write templates reads them again', async () => {
  assert.equal((await agent.request('GET /api/templates', { as: 'vera' })).statusCode, 200)
  assert.equal((await agent.request('POST /api/templates/refresh', { as: 'vera' })).statusCode, 403)
  assert.equal((await agent.request('POST /api/templates/refresh', { as: 'bob' })).statusCode, 200)
})
