// Generated requests against every operation of the served document: no defect, no undocumented status, no answer
// outside its schema; and each operation has at least one success.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { LightMyRequestResponse } from 'fastify'
import { Compile } from 'typebox/compile'
import { operations } from '../src/features/index.ts'
import type { Ask } from '../src/testing/agent.ts'
import { bodies, fitting, headers, hostileText } from './arbitrary.ts'
import { answerSchemaOf, type Described, type Document, inlined, operationsOf } from './document.ts'
import { callOf, isProbe, standardWorlds, type World, type Worlds } from './walk.ts'

/** SEED repeats a run, CASES makes it longer. */
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const cases = Number(process.env.CASES ?? 100)
/** An operation that asks slow programs gets fewer cases instead of more time. */
const LIMIT_MS = cases * 12

/** What these areas change lies in the store of their own world; everywhere else generated changes are only planned. */
const inTheStore = ['users', 'apikeys', 'audit', 'plans', 'jobs', 'credentials', 'registries', 'auth']

type Listed = ReturnType<typeof operationsOf>[number]

let worlds: Worlds
const table = new Map<string, Map<number, number>>()
before(async () => {
  worlds = await standardWorlds()
})
after(async () => {
  await worlds.close()
  console.log(`seed ${seed}\n${printed()}`)
})

for (const area of new Set(operations.map(({ id }) => id.split('.')[0] as string))) {
  test(`${area}: whatever is sent, the answer is as documented`, () => fuzzArea(area))
}

async function fuzzArea(area: string): Promise<void> {
  const world = await worlds.open({ for: operations.filter(({ id }) => id.startsWith(`${area}.`)) })
  // Nothing of this world has to outlive a power cut.
  world.db.run('PRAGMA synchronous = OFF')
  try {
    const document = (await world.request('GET /api/openapi.json')).json() as Document
    const listed = operationsOf(document).filter(({ described }) => described.operationId.startsWith(`${area}.`))
    for (const one of listed.filter(({ described }) => !isProbe(described.operationId)).sort(changesLast)) {
      const check = checker(document, one)
      await example(world, one, check)
      await generated(world, document, one, check)
    }
  } finally {
    await world.stop()
  }
}

/** Questions before changes, and what takes something away at the very end, so that each finds what its example names. */
function changesLast(a: Listed, b: Listed): number {
  const rank = ({ method, path }: Listed) => ['GET', 'PUT', 'POST', 'DELETE'].indexOf(method) - path.length / 1000
  return rank(a) - rank(b)
}

/** Sends the example as it is and as a plan, as a key and, where only a user will do, as a user. */
async function example(world: World, { method, described }: Listed, check: Check): Promise<void> {
  const id = described['x-fairlead'].alias ?? described.operationId
  const operation = operations.find(one => one.id === id)
  assert.ok(operation, id)
  const { line, ask } = callOf(operation, world.exampleOf(operation), method as 'GET')
  // First the plan: done, the example may not be possible a second time.
  if (described['x-fairlead'].plan === true)
    check(await world.request(`${line}${line.includes('?') ? '&' : '?'}plan=true`, ask), ask)
  const answer = await world.request(line, ask)
  check(answer, ask)
  if (answer.statusCode === 403) check(await world.request(line, { ...ask, as: 'alice' }), ask)
}

async function generated(world: World, document: Document, one: Listed, check: Check): Promise<void> {
  await fc.assert(
    fc.asyncProperty(requests(document, one), async ({ line, ask }) => check(await world.request(line, ask), ask)),
    { seed, numRuns: cases, interruptAfterTimeLimit: LIMIT_MS, endOnFailure: true },
  )
}

function requests(document: Document, { method, path, described }: Listed): fc.Arbitrary<{ line: string; ask: Ask }> {
  const given = (where: string) => described.parameters.filter(one => one.in === where)
  const schemaOf = (one: { schema: object }) => inlined(document, one.schema) as object
  const values = (one: Described['parameters'][number]) =>
    fc.oneof(
      { weight: 2, arbitrary: fc.constant(one.example ?? 'blog') },
      { weight: 2, arbitrary: fitting(schemaOf(one)) },
      { weight: 1, arbitrary: hostileText },
    )
  const params = fc.record(Object.fromEntries(given('path').map(one => [one.name, values(one)])))
  const known = fc.record(
    Object.fromEntries(
      given('query')
        .filter(one => one.name !== 'plan')
        .map(one => [one.name, values(one)]),
    ),
    {
      requiredKeys: [],
    },
  )
  const unknown = fc.oneof(
    { weight: 9, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.dictionary(hostileText, hostileText, { maxKeys: 2 }) },
  )
  const onlyPlanned =
    described['x-fairlead'].plan === true && !inTheStore.includes(described.operationId.split('.')[0] as string)
  const plan = described['x-fairlead'].plan === undefined ? fc.constant({}) : plans(onlyPlanned)
  const content = described.requestBody?.content['application/json']
  const body = content ? bodies(schemaOf(content), content.example) : fc.constant(undefined)
  const as: fc.Arbitrary<NonNullable<Ask['as']>> = fc.constantFrom(
    'key',
    'key',
    'key',
    'key',
    'key',
    'alice',
    'bob',
    'nobody',
  )
  return fc
    .record({ params, known, unknown, plan, body, headers: fc.oneof(fc.constant({}), headers), as })
    .map(({ params, known, unknown, plan, body, headers, as }) => {
      const url = path.replace(/\{(\w+)\}/g, (_, name: string) => segment((params as Record<string, unknown>)[name]))
      const query = new URLSearchParams(
        Object.entries({ ...known, ...unknown, ...plan }).map(
          ([key, value]) => [key, asText(value)] as [string, string],
        ),
      )
      const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
      const json: Record<string, string> = payload === undefined ? {} : { 'content-type': 'application/json' }
      const line = `${method} ${url}${query.size > 0 ? `?${query}` : ''}`
      return { line, ask: { as, headers: { ...json, ...headers }, ...(payload === undefined ? {} : { payload }) } }
    })
}

const plans = (only: boolean): fc.Arbitrary<{ plan?: string }> =>
  only
    ? fc.constantFrom({ plan: 'true' }, { plan: 'true' }, { plan: 'true' }, { plan: 'maybe' }, { plan: '' })
    : fc.constantFrom({}, {}, { plan: 'true' }, { plan: 'false' }, { plan: 'maybe' })

/** One segment of a path, never empty: that would be another path. */
function segment(value: unknown): string {
  const text = asText(value).toWellFormed()
  return text === '' || text === '.' || text === '..' ? '%20' : encodeURIComponent(text)
}

const asText = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value))

type Check = (answer: LightMyRequestResponse, ask: Ask) => void

/** Counts the answer and holds it to the document. */
function checker(document: Document, { line, described }: Listed): Check {
  const counts = table.get(line) ?? new Map<number, number>()
  table.set(line, counts)
  const validators = new Map<number, { Check(value: unknown): boolean; Errors(value: unknown): unknown } | undefined>()
  const validatorOf = (status: number) => {
    if (!validators.has(status)) {
      const schema = answerSchemaOf(document, described, status)
      validators.set(status, schema && (Compile(schema as never) as never))
    }
    return validators.get(status)
  }
  return answer => {
    const { statusCode: status, headers, body } = answer
    counts.set(status, (counts.get(status) ?? 0) + 1)
    assert.notEqual(status, 500, `a defect: ${body}`)
    assert.ok(described.responses[status], `${status} is not documented: ${body.slice(0, 300)}`)
    const type = String(headers['content-type'] ?? '')
    if (type.includes('x-ndjson')) {
      const last = JSON.parse(body.trim().split('\n').at(-1) as string)
      assert.equal(last.type, 'result')
      assert.notEqual(last.status, 500, `a defect: ${body}`)
      return
    }
    const validator = validatorOf(status)
    if (!validator || !type.startsWith('application/json')) return
    const value = JSON.parse(body)
    if (!validator.Check(value))
      assert.fail(`outside its schema: ${JSON.stringify(validator.Errors(value)).slice(0, 500)} ${body.slice(0, 300)}`)
  }
}

test('every operation had a success', () => {
  // A plain request to a websocket is right when it is told so.
  const succeeded = (counts: Map<number, number>) => [...counts.keys()].some(status => status < 400 || status === 426)
  const never = [...table].filter(([, counts]) => !succeeded(counts)).map(([line]) => line)
  assert.deepEqual(never, [])
  assert.ok(table.size >= operations.length)
})

function printed(): string {
  const statuses = [...new Set([...table.values()].flatMap(counts => [...counts.keys()]))].sort()
  const width = Math.max(...[...table.keys()].map(line => line.length))
  const row = (head: string, cells: string[]) => head.padEnd(width + 1) + cells.map(cell => cell.padStart(5)).join('')
  return [
    row('', statuses.map(String)),
    ...[...table].map(([line, counts]) =>
      row(
        line,
        statuses.map(status => String(counts.get(status) ?? '')),
      ),
    ),
  ].join('\n')
}
