// A real disk that is full while the store or the configuration is written: a clear error, the old content whole, and the
// agent goes on when there is room again.

import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'

let folder: string
let child: ChildProcessWithoutNullStreams
let lines: AsyncIterator<string>
let reader: Interface
let address: string
let token: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fairlead-full-'))
  const [disk, files] = [join(folder, 'disk'), join(folder, 'files')]
  await Promise.all([mkdir(disk), mkdir(files)])
  // The disk is seen by the agent alone and is gone with it, so that it needs no tidying up and no rights of the machine.
  const own = process.getuid?.() === 0 ? ['--mount'] : ['--mount', '--user', '--map-root-user']
  const mounting = 'mount -t tmpfs -o size=6m tmpfs "$1" && exec "$2" "$3" "$1" "$4"'
  const program = fileURLToPath(new URL('./full-disk/agent.ts', import.meta.url))
  child = spawn('unshare', [...own, 'sh', '-c', mounting, 'sh', disk, process.execPath, program, files])
  child.stderr.pipe(process.stderr)
  reader = createInterface({ input: child.stdout })
  lines = reader[Symbol.asyncIterator]()
  const ready = JSON.parse((await lines.next()).value as string)
  address = ready.address
  token = ready.token
})
after(async () => {
  reader.close()
  child.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

/** Has the disk filled or freed; gives the configuration file as it is then. */
async function disk(word: 'fill' | 'free' | 'look'): Promise<string> {
  child.stdin.write(`${word}\n`)
  return JSON.parse((await lines.next()).value as string).config
}

interface Answered {
  status: number
  body: {
    code?: string
    error?: string
    data?: { text?: string; status?: string; error?: string; result?: object }
    details?: object
    job_id?: string
  }
}

async function ask(line: string, body?: object, headers: Record<string, string> = {}): Promise<Answered> {
  const [method, path] = line.split(' ') as [string, string]
  const answer = await fetch(address + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return { status: answer.status, body: (await answer.json()) as Answered['body'] }
}

const noteOf = (name: string) => ask(`GET /api/probe/notes/${name}`)
const make = (name: string) => ask('POST /api/probe/notes', { name, text: name.repeat(20_000) })
const files = () => readdir(join(folder, 'files'))
const run = (names: string[], headers = {}) =>
  ask('POST /api/probe/p/run', { steps: names.map(file => ({ do: 'write', file, text: file })) }, headers)

test('a record that does not fit is refused, those before it are whole, and there is room for it later', async () => {
  assert.equal((await make('before')).status, 201)
  await disk('fill')
  const written: string[] = []
  let refused: Answered | undefined
  // What was freed inside the store before the disk filled up is still used.
  for (let count = 0; count < 200 && !refused; count++) {
    const answer = await make(`note-${count}`)
    if (answer.status === 201) written.push(`note-${count}`)
    else refused = answer
  }
  assert.equal(refused?.status, 503)
  assert.equal(refused?.body.code, 'SERVICE_UNAVAILABLE')
  assert.match(refused?.body.error ?? '', /disk .* is full.*Free some space/)
  for (const name of ['before', ...written]) assert.equal((await noteOf(name)).body.data?.text, name.repeat(20_000))
  assert.equal((await noteOf(`note-${written.length}`)).status, 404)
  assert.equal((await ask('GET /api/users')).status, 200, 'questions are answered')
  await disk('free')
  assert.equal((await make(`note-${written.length}`)).status, 201)
})

test('a change of the settings that does not fit leaves the configuration as it was', async () => {
  const before = await disk('fill')
  const refused = await ask('PUT /api/settings', { jobs: { retention_days: 5 } })
  assert.equal(refused.status, 503, JSON.stringify(refused.body))
  assert.match(refused.body.error ?? '', /is full/)
  assert.equal(await disk('look'), before)
  assert.equal(await disk('free'), before)
  assert.equal((await ask('PUT /api/settings', { jobs: { retention_days: 5 } })).status, 200)
  assert.match(await disk('look'), /retention_days: 5/)
})

test('a disk that fills up in the middle of a run: what was done is undone, although nothing can be put on record', async () => {
  const answer = await run(['first', 'full', 'last'])
  assert.equal(answer.status, 503, JSON.stringify(answer.body))
  assert.deepEqual(answer.body.details, { rolled_back: true })
  assert.deepEqual(await files(), [])
  await disk('free')
  assert.equal((await run(['first', 'last'])).status, 200)
  assert.deepEqual(await files(), ['first', 'last'])
})

test('a job that the full disk ended is not left running: it has failed as soon as there is room', async () => {
  const { job_id } = (await run(['job', 'full'], { prefer: 'respond-async' })).body
  assert.deepEqual(JSON.parse((await lines.next()).value as string), { undone: 'job' })
  assert.equal((await ask(`GET /api/jobs/${job_id}`)).status, 200)
  await disk('free')
  const { data } = (await ask(`GET /api/jobs/${job_id}`)).body
  assert.equal(data?.status, 'failed')
  assert.match(data?.error ?? '', /is full/)
  assert.deepEqual(await files(), ['first', 'last'])
})

test('an agent on a full disk stops in an orderly way', async () => {
  await disk('fill')
  child.stdin.write('stop\n')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
})
