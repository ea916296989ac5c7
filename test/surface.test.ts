// Walks the list of operations: what exists, what is still missing, who may reach it, and the document made from it.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { Compile } from 'typebox/compile'
import { type Ask, type Command, checkOperations, type Operation } from '../src/core/operation.ts'
import { system } from '../src/core/permission.ts'
import { isPaged, validationErrors } from '../src/core/schema.ts'
import { EACH, type Step } from '../src/core/step.ts'
import { operations } from '../src/features/index.ts'
import { type TestAgent, testAgent } from '../src/testing/agent.ts'
import { type Document, inlined, operationsOf, resolveRef } from './document.ts'
import { methodsOf, standardWorlds } from './walk.ts'

/** The areas whose operations come later. An operation that exists is taken from this list. */
const missing = readFileSync(new URL('./operations-missing.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n')

const publicOnes = ['auth.login', 'auth.status', 'system.docs', 'system.health']
const anybodyWithAToken = [
  'auth.validate',
  'jobs.cancel',
  'jobs.get',
  'jobs.list',
  'system.openapi',
  'users.change_password',
  'users.me',
  'users.update_me',
]
const administratorsOnly = [
  'settings.update',
  'settings.update_security',
  'users.create',
  'users.delete',
  'users.get',
  'users.list',
  'users.update',
]
const withoutPlanMode = ['auth.login', 'plans.apply', 'plans.discard']
const withAFlatAnswer = [
  'apikeys.create',
  'auth.login',
  'auth.status',
  'auth.validate',
  'deployments.list',
  'system.health',
  'system.openapi',
]

const specified = readFileSync(new URL('./operations.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n')
const lineOf = (method: string, path: string) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`
const present = operations.flatMap(one => methodsOf(one).map(method => lineOf(method, one.http.path)))

let agent: TestAgent
let document: Document
before(async () => {
  agent = await testAgent()
  document = (await agent.request('GET /api/openapi.json')).json()
})
after(() => agent.stop())

test('every operation of the specification exists, or is on the list of what is still missing', () => {
  assert.deepEqual(missing.toSorted(), specified.filter(line => !present.includes(line)).toSorted())
})

test('no operation exists that the specification does not name', () => {
  assert.deepEqual(
    present.filter(line => !specified.includes(line)),
    [],
  )
})

test('the list as it is lets the agent start', () => checkOperations(operations))

for (const operation of operations) {
  test(`${operation.id} has a summary, a permission, schemas and a valid example`, () => {
    assert.match(operation.id, /^[a-z_]+(\.[a-z_]+)+$/)
    assert.match(operation.summary, /^[A-Z].{3,120}[^.]$/)
    assert.ok(operation.permission)
    assert.equal((operation.input as { type?: string }).type, 'object')
    assert.ok(operation.output)
    assert.deepEqual(validationErrors(operation.input, operation.example), [])
    const documented = (operation.http.path.match(/:\w+/g) ?? []).map(name => name.slice(1))
    for (const name of documented)
      assert.ok(operation.input.properties[name], `${name} is in the path, not in the input`)
  })
}

test('the operations that need no token are these and no others', () => {
  assert.deepEqual(
    idsWhere(one => one.permission === 'public'),
    publicOnes,
  )
})

test('the operations that need only a token are these and no others', () => {
  assert.deepEqual(
    idsWhere(one => one.permission === 'authenticated'),
    anybodyWithAToken,
  )
})

test('the operations that need the role admin are these and no others', () => {
  assert.deepEqual(
    idsWhere(one => one.permission === 'admin'),
    administratorsOnly,
  )
})

test('the mutations without plan mode are these and no others', () => {
  const refuses = (one: Operation) => one.kind === 'apply' || (one.kind === 'command' && one.plannable === false)
  assert.deepEqual(idsWhere(refuses), withoutPlanMode)
})

test('the flat answers are those of the specification', () => {
  const present = withAFlatAnswer.filter(id => operations.some(one => one.id === id))
  assert.deepEqual(
    idsWhere(one => one.http.bare === true),
    present,
  )
})

test('a question never has a method that changes, and a command never GET', () => {
  const wrong = operations.filter(one =>
    one.kind === 'command' || one.kind === 'apply'
      ? one.http.method === 'GET'
      : one.kind !== 'download' && one.http.method !== 'GET',
  )
  const readsByPost = ['databases.test', 'databases.list', 'databases.tables', 'credentials.test', 'notifications.test']
  assert.deepEqual(
    wrong.map(one => one.id).filter(id => !readsByPost.includes(id)),
    [],
  )
})

test('what is still missing answers 404 without a token and is absent from the document', async () => {
  for (const line of missing) {
    const [method, template] = line.split(' ') as [string, string]
    assert.equal(document.paths[template]?.[method.toLowerCase()], undefined, line)
    const known = document.paths[template] !== undefined || isServedByAnother(template)
    const path = template.replace(/\{\w+\}/g, 'some')
    const { statusCode } = await agent.request(`${method} ${path}`, { as: 'nobody' })
    assert.equal(statusCode, known ? 405 : 404, line)
  }
})

test('no undoable step follows a final one, and records come last, in what every example decides', async t => {
  const worlds = await standardWorlds()
  const world = await worlds.open({ for: operations })
  t.after(async () => {
    await world.stop()
    await worlds.close()
  })
  const alice = world.door.askAs({ ...system, type: 'user', id: 1, name: 'alice', userId: 1 })
  for (const operation of operations) {
    if (operation.kind !== 'command' || operation.id === 'auth.login') continue
    const steps = await stepsOf(operation, alice, world.exampleOf(operation))
    const ends = steps.map(step => world.door.kinds.of(step).end)
    const firstFinal = ends.findIndex(end => end === 'final' || end === 'repeatable')
    const lastUndoable = ends.findLastIndex(end => typeof end === 'object')
    assert.ok(
      firstFinal < 0 || lastUndoable < firstFinal,
      `${operation.id}: ${steps.map(step => step.kind).join(' → ')}`,
    )
    const isRecord = steps.map(step => step.kind.startsWith('record.'))
    assert.ok(
      !isRecord.includes(true) || isRecord.slice(isRecord.indexOf(true)).every(Boolean),
      `${operation.id}: records last`,
    )
  }
})

test('the document is OpenAPI 3.1 with everything an operation needs', () => {
  assert.match(document.openapi, /^3\.1\.\d+$/)
  assert.ok(document.info.title && document.info.version)
  assert.ok(document.components.securitySchemes.bearer)
  const ids = operationsOf(document).map(({ described }) => described.operationId)
  assert.equal(new Set(ids).size, ids.length, 'operationIds are unique')
  for (const { line, path, described } of operationsOf(document)) {
    assert.ok(path.startsWith('/api/'), line)
    assert.ok(described.operationId && described.summary && Array.isArray(described.parameters), line)
    const templated = [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1])
    const inPath = described.parameters.filter(one => one.in === 'path')
    assert.deepEqual(
      inPath.map(one => one.name),
      templated,
      line,
    )
    assert.ok(
      inPath.every(one => one.required && one.schema),
      line,
    )
    const names = described.parameters.map(one => `${one.in} ${one.name}`)
    assert.equal(new Set(names).size, names.length, `${line}: parameters are unique`)
    for (const tag of described.tags)
      assert.ok(
        document.tags.some(one => one.name === tag),
        line,
      )
  }
})

test('the document has exactly the operations of the list', () => {
  assert.deepEqual(
    operationsOf(document)
      .map(one => one.line)
      .toSorted(),
    present.toSorted(),
  )
})

test('every reference in the document leads somewhere, and every schema compiles', () => {
  let references = 0
  const walk = (node: unknown): void => {
    if (node === null || typeof node !== 'object') return
    const { $ref } = node as { $ref?: unknown }
    if (typeof $ref === 'string') {
      references++
      assert.ok(resolveRef(document, $ref), $ref)
    }
    Object.values(node).forEach(walk)
  }
  walk(document)
  assert.ok(references > 10)
  for (const { line, described } of operationsOf(document)) {
    const schemas = [
      ...described.parameters.map(one => one.schema),
      ...Object.values(described.requestBody?.content ?? {}).map(one => one.schema),
      ...Object.values(described.responses).flatMap(one =>
        Object.values(resolved(one).content ?? {}).map(content => content.schema),
      ),
    ]
    for (const schema of schemas)
      if (schema) assert.doesNotThrow(() => Compile(inlined(document, schema) as never), line)
  }
})

test('every operation documents the statuses that the mechanism itself can answer', () => {
  for (const { line, method, described } of operationsOf(document)) {
    const statuses = Object.keys(described.responses)
    const { kind, permission, plan } = described['x-fairlead']
    const expected = ['400', '500']
    expected.push(kind === 'follow' ? '101' : '200')
    if (permission !== 'public') expected.push('401')
    if (permission !== 'public' && permission !== 'authenticated') expected.push('403')
    if (described.parameters.some(one => one.in === 'path')) expected.push('404')
    if (method !== 'GET') expected.push('413', '415')
    if (kind === 'command' || kind === 'apply') expected.push('409', '412', '503')
    if (plan || kind === 'apply') expected.push('201')
    if (kind === 'query' && method === 'GET') expected.push('304')
    if (kind === 'follow') expected.push('426')
    assert.deepEqual(
      expected.filter(status => !statuses.includes(status)),
      [],
      line,
    )
    for (const answer of Object.values(described.responses)) assert.ok(resolved(answer).description, line)
  }
})

test('lists that can grow take limit and offset, and the document says so', () => {
  const paged = operations.filter(one => isPaged(one.output))
  assert.ok(paged.length >= 3)
  for (const { input, id } of paged) {
    const { limit, offset } = input.properties as Record<
      string,
      { minimum?: number; maximum?: number; default?: number }
    >
    assert.deepEqual([limit?.minimum, limit?.maximum], [1, 1000], id)
    assert.deepEqual([offset?.minimum, offset?.default], [0, 0], id)
  }
})

test('secret fields are marked in the document, and its examples do not show them', () => {
  const text = JSON.stringify(document)
  assert.doesNotMatch(text, /correct horse battery|another horse battery/)
  const marked = operationsOf(document).filter(one =>
    JSON.stringify(one.described.requestBody ?? {}).includes('"x-secret":true'),
  )
  const ids = marked.map(one => one.described.operationId)
  for (const id of ['auth.login', 'users.create', 'users.update', 'users.change_password', 'settings.update']) {
    assert.ok(ids.includes(id), `${id} has a secret field`)
  }
})

const idsWhere = (fits: (operation: Operation) => boolean) =>
  operations
    .filter(fits)
    .map(one => one.id)
    .toSorted()

const resolved = (answer: { $ref?: string }) =>
  (answer.$ref ? resolveRef(document, answer.$ref) : answer) as {
    description?: string
    content?: Record<string, { schema?: object }>
  }

/** Whether a path that is not an operation of its own falls under the parameter of one that is: `/plans/jobs` under `/plans/{id}`. */
function isServedByAnother(template: string): boolean {
  const parts = template.split('/')
  return Object.keys(document.paths).some(path => {
    const known = path.split('/')
    return known.length === parts.length && known.every((part, index) => part.startsWith('{') || part === parts[index])
  })
}

async function stepsOf(command: Command, ask: Ask, input: object): Promise<Step[]> {
  const decided = await command.decide(ask, input as never)
  const steps = Array.isArray(decided) ? decided : decided.steps
  return steps.flatMap(step => (step.kind === EACH ? (step.data as Step[]) : [step]))
}
