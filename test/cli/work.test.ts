// Long work, jobs, files and streams, as a script and as somebody at a terminal meets them.

import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { API_KEY, PASSWORD, type TestAgent, testAgent } from '../../src/testing/agent.ts'
import { Client } from './client.ts'
import { probe } from './probe.ts'

let agent: TestAgent
let url: string
const client = new Client()
before(async () => {
  agent = await testAgent({ extra: probe })
  url = await agent.app.listen({ port: 0 })
  await client.ok(['login', url], { input: API_KEY })
})
after(async () => {
  await agent.stop()
  client.remove()
})

test('long work shows a bar with what is being done, and takes it away again', async () => {
  const terminal = client.terminal(['probe', 'polish', 'lamp', '--ms', '500'])
  await terminal.until(/█*░+ +\d+ % {2}polishing lamp/)
  const { code, text } = await terminal.end()
  assert.equal(code, 0)
  assert.ok(text.includes('\r\x1b[KIt shines.\r\n'), text)
  assert.match(text, /shine:.* 100\r\n$/)
  const shares = [...text.matchAll(/(\d+) % {2}polishing/g)].map(match => Number(match[1]))
  assert.deepEqual(
    shares,
    shares.toSorted((a, b) => a - b),
    'it only grows',
  )
})

test('piped work and JSON show none', async () => {
  const piped = await client.ok(['probe', 'polish', 'lamp', '--ms', '200'])
  assert.deepEqual([piped.stdout, piped.stderr], ['shine: 100\n', 'It shines.\n'])
  const json = await client.terminal(['probe', 'polish', 'lamp', '--ms', '200', '--json']).end()
  assert.equal(json.text, '{"data":{"shine":100},"message":"It shines."}\r\n')
})

test('work that fails in the middle says why, with and without somebody watching', async () => {
  const watched = await client.terminal(['probe', 'polish', 'lamp', '--ms', '400', '--fails']).end()
  assert.equal(watched.code, 1)
  assert.match(watched.text, /fairlead: The polish for lamp two is used up\.\r\n {2}rolled back: true\r\n$/)
  const piped = await client.run(['probe', 'polish', 'lamp', '--fails'])
  assert.deepEqual(
    [piped.code, piped.stderr],
    [1, 'fairlead: The polish for lamp two is used up.\n  rolled back: true\n'],
  )
})

test('Ctrl-C leaves the work to the server and says so', async () => {
  const terminal = client.terminal(['probe', 'polish', 'mirror', '--ms', '700'])
  await terminal.until('polishing mirror')
  terminal.type('\x03')
  const { code, text } = await terminal.end()
  assert.equal(code, 130)
  assert.match(text, /probe polish goes on on the server/)
  assert.match(text, /jobs wait/)
  const ended = async () => (await agent.request('GET /api/audit/events?action=probe.polish&limit=1')).json().data[0]
  const before = await ended()
  for (let tries = 0; tries < 100 && (await ended())?.id === before?.id; tries++)
    await new Promise(done => setTimeout(done, 50))
  assert.equal((await ended()).success, true)
})

test('--async answers at once with a job; waiting for it ends with its answer', async () => {
  const { stdout, stderr } = await client.ok(['probe', 'polish', 'lamp', '--ms', '300', '--async'])
  const id = stdout.trim()
  assert.match(stderr, new RegExp(`started as a job\\. Wait for it with: fairlead jobs wait ${id}\n`))
  const waited = await client.ok(['jobs', 'wait', id])
  assert.deepEqual([waited.stdout, waited.stderr], ['shine: 100\n', 'It shines.\n'])
  const json = await client.ok(['jobs', 'wait', id, '--json'])
  assert.equal(JSON.parse(json.stdout).data.status, 'completed')
})

test('waiting for a job that fails, that is not there, or for too long, ends with 1', async () => {
  const { stdout } = await client.ok(['probe', 'polish', 'lamp', '--fails', '--async', '--quiet'])
  const failed = await client.run(['jobs', 'wait', stdout.trim()])
  assert.deepEqual([failed.code, failed.stdout], [1, ''])
  assert.match(failed.stderr, /^fairlead: The polish for lamp two is used up\./)
  const unknown = await client.run(['jobs', 'wait', 'nowhere'])
  assert.deepEqual([unknown.code, unknown.stderr], [1, 'fairlead: There is no job "nowhere".\n'])
  const long = (await client.ok(['probe', 'polish', 'lamp', '--ms', '3000', '--async', '-q'])).stdout.trim()
  const late = await client.run(['jobs', 'wait', long, '--timeout', '0'])
  assert.deepEqual([late.code, /still (running|pending) after 0 s; it goes on/.test(late.stderr)], [1, true])
  await client.ok(['jobs', 'cancel', long])
  const cancelled = await client.run(['jobs', 'wait', long])
  assert.deepEqual([cancelled.code, /cancelled/.test(cancelled.stderr)], [1, true])
})

test('waiting shows the bar on a terminal; Ctrl-C leaves the job alone', async () => {
  const id = (await client.ok(['probe', 'polish', 'lamp', '--ms', '2000', '--async', '-q'])).stdout.trim()
  const terminal = client.terminal(['jobs', 'wait', id])
  await terminal.until(/█*░+ +\d+ % {2}polishing lamp/)
  terminal.type('\x03')
  const { code, text } = await terminal.end()
  assert.equal(code, 130)
  assert.match(text, new RegExp(`The job goes on\\. Look again with: fairlead jobs wait ${id}`))
  assert.match((await client.ok(['jobs', 'get', id, '--columns', 'status'])).stdout, /running|completed/)
  await client.run(['jobs', 'cancel', id])
})

test('--wait waits for the job in a script too', async () => {
  const done = await client.ok(['probe', 'polish', 'lamp', '--async', '--wait'])
  assert.equal(done.stdout, 'shine: 100\n')
  const failed = await client.run(['probe', 'polish', 'lamp', '--fails', '--async', '--wait'])
  assert.equal(failed.code, 1)
})

test('a file is streamed up, from a path or from standard input', async () => {
  const file = join(client.home, 'up.bin')
  await writeFile(file, Buffer.alloc(3_000_000, 'x'))
  const put = async (args: string[], input = '') =>
    (await client.ok(['probe', 'put', 'a b.bin', ...args, '--json'], { input })).stdout
  assert.deepEqual(JSON.parse(await put(['--file', file])).data, { key: 'a b.bin', bytes: 3_000_000 })
  assert.deepEqual(JSON.parse(await put(['--file', '-'], 'from a pipe')).data, { key: 'a b.bin', bytes: 11 })
  const profile = join(client.home, '.config/fairlead/profiles/default.json')
  await writeFile(profile, JSON.stringify({ ...JSON.parse(await readFile(profile, 'utf8')), token: 'x.y.z' }), {
    mode: 0o600,
  })
  assert.equal(JSON.parse(await put(['--file', file])).data.bytes, 3_000_000, 'also when its token has to be renewed')
  const refused = await client.run(['probe', 'put', 'forbidden', '--file', file])
  assert.deepEqual([refused.code, refused.stderr], [1, 'fairlead: Nothing is kept under this name.\n'])
  const without = await client.run(['probe', 'put', 'a'])
  assert.deepEqual([without.code, /needs --file FILE/.test(without.stderr)], [2, true])
  const missing = await client.run(['probe', 'put', 'a', '--file', '/nowhere'])
  assert.deepEqual([missing.code, missing.stderr], [1, 'fairlead: /nowhere does not exist.\n'])
})

test('a download goes to a file, a folder or standard output, but not to a terminal', async () => {
  const folder = client.home
  const { stdout } = await client.ok(['probe', 'take', 'a.bin', '--size', '200000'])
  assert.equal(stdout.length, 200_000)
  await client.ok(['probe', 'take', 'a.bin', '--size', '200000', '--output', join(folder, 'down.bin')])
  assert.equal(await readFile(join(folder, 'down.bin'), 'utf8'), stdout)
  await client.ok(['probe', 'take', 'named.bin', '-o', folder])
  assert.equal((await readFile(join(folder, 'named.bin'))).length, 1000)
  const shown = await client.terminal(['probe', 'take', 'a.bin']).end()
  assert.deepEqual([shown.code, /--output FILE/.test(shown.text)], [1, true])
})

test('a download that breaks leaves the old file and no half one', async () => {
  const folder = join(client.home, '.cache')
  await writeFile(join(folder, 'old.bin'), 'old')
  const broken = await client.run([
    'probe',
    'take',
    'a.bin',
    '--size',
    '500000',
    '--breaks',
    '--output',
    join(folder, 'old.bin'),
  ])
  assert.equal(broken.code, 1)
  assert.equal(await readFile(join(folder, 'old.bin'), 'utf8'), 'old')
  assert.deepEqual((await readdir(folder)).sort(), ['fairlead', 'old.bin'])
})

test('an export is a file as the server makes it', async () => {
  const { stdout } = await client.ok(['audit', 'export', '--format', 'csv', '--limit', '1'])
  assert.match(stdout, /^id,time,actor_type,.*\r?\n\d+,/)
})

test('lines of a log are lines, and --follow goes on where they end', async () => {
  const { stdout } = await client.ok(['probe', 'lines', '--tail', '2'])
  assert.equal(stdout, '2026-01-01T00:00:02.000Z web | line 2\n2026-01-01T00:00:03.000Z web | line 3\n')
  assert.equal((await client.ok(['probe', 'lines', '--tail', '1', '-q'])).stdout, 'line 3\n')
  const followed = await client.ok(['probe', 'lines', '--tail', '1', '--follow'])
  assert.equal(followed.stdout, '2026-01-01T00:00:03.000Z web | line 3\n2026-01-01T00:00:01.000Z web | a new line\n')
  assert.equal((await client.ok(['probe', 'lines-stream', '--tail', '1'])).stdout, followed.stdout)
  const frames = (await client.ok(['probe', 'lines', '--tail', '1', '-f', '--json'])).stdout.trimEnd().split('\n')
  assert.deepEqual(
    frames.map(frame => JSON.parse(frame).type),
    ['log', 'log', 'end'],
  )
  const { text } = await client.terminal(['probe', 'lines', '--tail', '1']).end()
  assert.match(text, /2026-01-01 00:00:03.*web.* \| line 3/)
})

test('a stream that is refused says why; a refused token is renewed', async () => {
  const refused = await client.run(['system', 'logs', '--follow', '--source', 'nowhere'])
  assert.deepEqual([refused.code, /nowhere/.test(refused.stderr)], [1, true])
  const file = join(client.home, '.config/fairlead/profiles/default.json')
  await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), token: 'x.y.z' }), {
    mode: 0o600,
  })
  assert.match((await client.ok(['probe', 'lines', '--tail', '1', '--follow'])).stdout, /a new line/)
  await client.ok(['login', url, '--profile', 'vera', '--username', 'vera', '--password-file', '-'], {
    input: PASSWORD,
  })
  const forbidden = await client.run(['system', 'logs', '--follow', '--profile', 'vera'])
  assert.equal(forbidden.code, 1)
  await client.ok(['profiles', 'use', 'default'])
})

test('Ctrl-C ends a stream', async () => {
  const terminal = client.terminal(['probe', 'lines-stream', '--endless'])
  await terminal.until('a new line')
  terminal.type('\x03')
  assert.equal((await terminal.end()).code, 130)
})
