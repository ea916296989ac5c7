// Reading, tailing and following logs, while they grow, turn over, are truncated and go away.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { openRotatingFile } from '../../lib/rotating-file.ts'
import { openFiles } from '../files/index.ts'
import { followLog, type LogLine, type LogQuery, readLog } from './log-file.ts'

const world = mkdtempSync(join(tmpdir(), 'fairlead-logs-'))
after(() => rmSync(world, { recursive: true }))

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(world, 'case-'))
  file = join(folder, 'agent.log')
})

async function all(batches: AsyncIterable<LogLine[]>): Promise<string[]> {
  return (await Array.fromAsync(batches)).flat().map(({ line }) => line)
}
const read = (query?: LogQuery) => all(readLog(file, query))
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `line ${from + n}`)
const text = (lines: string[]) => lines.map(line => `${line}\n`).join('')

/** Takes lines until there are `count`, then leaves. */
async function take(batches: AsyncIterable<LogLine[]>, count: number): Promise<string[]> {
  const taken: string[] = []
  for await (const batch of batches) {
    taken.push(...batch.map(({ line }) => line))
    if (taken.length >= count) break
  }
  return taken
}

function turnOver(): void {
  for (const n of [3, 2, 1]) {
    try {
      renameSync(n === 1 ? file : `${file}.${n - 1}`, `${file}.${n}`)
    } catch {}
  }
}

test('lines come from all files, oldest first', async () => {
  writeFileSync(`${file}.2`, 'a\nb\n')
  writeFileSync(`${file}.1`, 'c\n')
  writeFileSync(file, 'd\ne')
  assert.deepEqual(await read(), ['a', 'b', 'c', 'd', 'e'])
})

test('a missing file and an empty one have no lines', async () => {
  assert.deepEqual(await read(), [])
  writeFileSync(file, '')
  assert.deepEqual(await read({ tail: 5 }), [])
})

test('the tail reaches over files', async () => {
  writeFileSync(`${file}.1`, 'a\nb\nc\n')
  writeFileSync(file, 'd\ne\n')
  assert.deepEqual(await read({ tail: 1 }), ['e'])
  assert.deepEqual(await read({ tail: 2 }), ['d', 'e'])
  assert.deepEqual(await read({ tail: 4 }), ['b', 'c', 'd', 'e'])
  assert.deepEqual(await read({ tail: 100 }), ['a', 'b', 'c', 'd', 'e'])
})

test('the tail is taken of the lines that match', async () => {
  writeFileSync(`${file}.1`, 'GET /a\nPOST /b\nGET /c\n')
  writeFileSync(file, 'get /d\nPOST /e\n')
  assert.deepEqual(await read({ tail: 2, filter: 'get' }), ['GET /c', 'get /d'])
  assert.deepEqual(await read({ filter: 'POST /' }), ['POST /b', 'POST /e'])
  assert.deepEqual(await read({ tail: 1, filter: line => line.endsWith('b') }), ['POST /b'])
})

test('any tail and filter of any text is the end of what matches', async () => {
  const piece = fc.oneof(fc.constantFrom('', 'a', 'b', 'ab', 'ä'), fc.constant('x'.repeat(70_000)))
  const content = fc
    .tuple(fc.array(piece, { maxLength: 12 }), fc.boolean())
    .map(([lines, ended]) => lines.join('\n') + (ended ? '\n' : ''))
  await fc.assert(
    fc.asyncProperty(
      content,
      content,
      fc.nat(15),
      fc.constantFrom('', 'a', 'x'),
      async (older, newer, tail, filter) => {
        writeFileSync(`${file}.1`, older)
        writeFileSync(file, newer)
        const lines = [older, newer].flatMap(part => (part === '' ? [] : part.replace(/\n$/, '').split('\n')))
        const matching = lines.filter(line => line.includes(filter))
        assert.deepEqual(await read({ tail, filter }), tail === 0 ? matching : matching.slice(-tail))
      },
    ),
    { numRuns: 60 },
  )
})

test('since leaves out what is older, and keeps lines without a time with the one before them', async () => {
  writeFileSync(
    file,
    '{"time":"2026-01-01T10:00:00.000Z","msg":"a"}\nstack of a\n2026-01-01T12:00:00+01:00 b\nstack of b\n',
  )
  const since = new Date('2026-01-01T10:30:00Z')
  assert.deepEqual(await read({ since }), ['2026-01-01T12:00:00+01:00 b', 'stack of b'])
  assert.deepEqual(await read({ since, tail: 1 }), ['stack of b'])
  assert.deepEqual((await read({ since, tail: 9 })).slice(-2), ['2026-01-01T12:00:00+01:00 b', 'stack of b'])
  assert.deepEqual(await read({ since: new Date('2026-01-02T00:00:00Z') }), [])
  const [first] = (await Array.fromAsync(readLog(file))).flat()
  assert.equal(first?.time?.toISOString(), '2026-01-01T10:00:00.000Z')
})

test('line breaks of Windows and letters across chunks come out right', async () => {
  const line = 'ä'.repeat(50_000)
  writeFileSync(file, `${line}\r\n${line}\n`)
  assert.deepEqual(await read(), [line, line])
  assert.deepEqual(await read({ tail: 1 }), [line])
})

test('a line without end is cut and does not fill the memory', async () => {
  writeFileSync(file, `a\n${'x'.repeat(3 * 1024 * 1024)}\nb\n`)
  assert.deepEqual(
    (await read()).map(line => line.length),
    [1, 1024 * 1024, 1],
  )
  assert.deepEqual(
    (await read({ tail: 2, filter: line => line.length > 1 || line === 'b' })).map(line => line.length),
    [1024 * 1024, 1],
  )
})

test('100 MB are streamed and tailed in constant memory', () => {
  const block = text(numbered(0, 100_000).map(line => line.padEnd(99)))
  for (let n = 0; n < 10; n++) appendFileSync(file, block)
  const program = `
    import { readLog } from ${JSON.stringify(join(import.meta.dirname, 'log-file.ts'))}
    const before = process.memoryUsage.rss()
    let [lines, bytes, most] = [0, 0, 0]
    for await (const batch of readLog(process.argv[1], { tail: 900_000 })) {
      for (const { line } of batch) bytes += line.length
      lines += batch.length
      most = Math.max(most, process.memoryUsage.rss() - before)
    }
    console.log(JSON.stringify({ lines, bytes, most }))
  `
  const output = execFileSync(process.execPath, ['--input-type=module-typescript', '-e', program, file], {
    encoding: 'utf8',
  })
  const { lines, bytes, most } = JSON.parse(output)
  assert.deepEqual([lines, bytes], [900_000, 900_000 * 99])
  assert.ok(most < 60 * 1024 ** 2, `${Math.round(most / 1024 ** 2)} MB`)
})

test('the end of a long file is reached without reading the rest', async () => {
  writeFileSync(file, '')
  truncateSync(file, 50 * 1024 ** 3)
  appendFileSync(file, '\nlast but one\nlast\n')
  assert.deepEqual(await read({ tail: 2 }), ['last but one', 'last'])
})

test('followed lines are those that are there and those that come, whole', async () => {
  writeFileSync(file, 'a\nb\n')
  const following = take(followLog(file, { tail: 1 }), 3)
  await sleep(50)
  appendFileSync(file, 'half')
  await sleep(50)
  appendFileSync(file, ' line\nnext\n')
  assert.deepEqual(await following, ['b', 'half line', 'next'])
})

test('following goes on through turning over, several times at once too', async () => {
  writeFileSync(file, 'a\n')
  const following = take(followLog(file, { pollMilliseconds: 50 }), 6)
  await sleep(50)
  appendFileSync(file, 'b\n')
  turnOver()
  writeFileSync(file, 'c\n')
  await sleep(120)
  appendFileSync(file, 'd\n')
  turnOver()
  writeFileSync(file, 'e\n')
  turnOver()
  writeFileSync(file, 'f\n')
  assert.deepEqual(await following, ['a', 'b', 'c', 'd', 'e', 'f'])
})

test('following goes on after a truncation and after the file was made anew', async () => {
  writeFileSync(file, 'aaaa\n')
  writeFileSync(`${file}.1`, 'old\n')
  const following = take(followLog(file, { tail: 1, pollMilliseconds: 50 }), 3)
  await sleep(50)
  writeFileSync(file, 'b\n')
  await sleep(120)
  rmSync(file)
  writeFileSync(file, 'c\n')
  assert.deepEqual(await following, ['aaaa', 'b', 'c'])
})

test('following ends when the file went away, with what it held', async () => {
  writeFileSync(file, 'a\nno end')
  const following = all(followLog(file))
  await sleep(30)
  rmSync(file)
  assert.deepEqual(await following, ['a', 'no end'])
})

test('following ends at once when it is told to', async () => {
  writeFileSync(file, 'a\n')
  const stop = new AbortController()
  const following = all(followLog(file, { signal: stop.signal }))
  await sleep(50)
  const begun = performance.now()
  stop.abort()
  assert.deepEqual(await following, ['a'])
  assert.ok(performance.now() - begun < 500)
})

test('a filter holds for followed lines', async () => {
  writeFileSync(file, '')
  const following = take(followLog(file, { filter: 'yes' }), 2)
  await sleep(30)
  appendFileSync(file, 'yes 1\nno\nyes 2\n')
  assert.deepEqual(await following, ['yes 1', 'yes 2'])
})

test('a writer that turns over and a follower that keeps up lose and repeat no line', async () => {
  const out = openRotatingFile(file, { maxBytes: 20_000, keep: 50 })
  const total = 6000
  const following = take(followLog(file, { pollMilliseconds: 20 }), total)
  for (let n = 0; n < total; n++) {
    out.write(`line ${n}\n`)
    if (n % 200 === 0) {
      out.flush()
      await sleep(2)
    }
  }
  out.close()
  assert.deepEqual(await following, numbered(0, total))
})

test('reading while the log turns over loses and repeats no line', async () => {
  const out = openRotatingFile(file, { maxBytes: 4000, keep: 18 })
  let written = 0
  const writeMore = () => {
    for (let n = 0; n < 40; n++) out.write(`line ${written++}\n`)
    out.flush()
  }
  writeMore()
  for (let round = 0; round < 25; round++) {
    const known = written
    const reading = read()
    writeMore()
    const lines = await reading
    const first = Number(lines[0]?.slice(5))
    assert.deepEqual(lines, numbered(first, first + lines.length))
    assert.ok(first + lines.length >= known)
  }
  out.close()
})

test('a file of a user is opened through his folder, which refuses a link', async () => {
  const outside = join(world, 'outside.log')
  writeFileSync(outside, 'canary\n')
  symlinkSync(outside, file)
  const files = await openFiles(folder)
  const open = (path: string) => files.open(path.slice(folder.length + 1))
  await assert.rejects(read({ open }), /link/)
  rmSync(file)
  writeFileSync(file, 'fine\n')
  assert.deepEqual(await read({ open }), ['fine'])
})
