// Lines that reach their file, whatever happens to it.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openRotatingFile } from './rotating-file.ts'

const world = mkdtempSync(join(tmpdir(), 'fairlead-rotating-'))
after(() => rmSync(world, { recursive: true }))

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(world, 'case-'))
  file = join(folder, 'logs/agent.log')
})

const numbers = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map(line => Number(line.split(' ')[1]))

test('lines are in the file soon, for its owner only', async () => {
  const out = openRotatingFile(file)
  out.write('a\n')
  await sleep(250)
  assert.equal(readFileSync(file, 'utf8'), 'a\n')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  out.write('b\n')
  out.close()
  assert.equal(readFileSync(file, 'utf8'), 'a\nb\n')
})

test('an existing file is continued', () => {
  for (const line of ['a\n', 'b\n']) {
    const out = openRotatingFile(file)
    out.write(line)
    out.close()
  }
  assert.equal(readFileSync(file, 'utf8'), 'a\nb\n')
})

test('files turn over at their size, the newest are kept, and no line is split or lost', () => {
  const out = openRotatingFile(file, { maxBytes: 1000, keep: 3 })
  for (let n = 0; n < 500; n++) {
    out.write(`line ${n}\n`)
    if (n % 7 === 0) out.flush()
  }
  out.close()
  assert.deepEqual(readdirSync(join(folder, 'logs')).sort(), ['agent.log', 'agent.log.1', 'agent.log.2'])
  const kept = [`${file}.2`, `${file}.1`, file].flatMap(numbers)
  assert.deepEqual(
    kept,
    Array.from({ length: kept.length }, (_, n) => 500 - kept.length + n),
  )
  for (const path of [`${file}.2`, `${file}.1`, file]) assert.ok(statSync(path).size <= 1000)
})

test('a line larger than the whole file is still written', () => {
  const out = openRotatingFile(file, { maxBytes: 100, keep: 2 })
  out.write(`line 1 ${'x'.repeat(500)}\n`)
  out.flush()
  out.write('line 2\n')
  out.close()
  assert.deepEqual([`${file}.1`, file].flatMap(numbers), [1, 2])
})

test('a file that was moved or removed is made anew', async () => {
  const out = openRotatingFile(file)
  out.write('line 1\n')
  out.flush()
  renameSync(file, `${file}.moved`)
  await sleep(1100)
  out.write('line 2\n')
  out.close()
  assert.deepEqual(numbers(`${file}.moved`), [1])
  assert.deepEqual(numbers(file), [2])
})

test('a process that ends or fails leaves its lines in the file', () => {
  const program = `
    import { openRotatingFile } from ${JSON.stringify(join(import.meta.dirname, 'rotating-file.ts'))}
    openRotatingFile(process.argv[1]).write('line 1\\n')
    throw new Error('on purpose')
  `
  const ended = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', program, file], {
    encoding: 'utf8',
  })
  assert.match(ended.stderr, /on purpose/)
  assert.deepEqual(numbers(file), [1])
})

test('a full disk is outlived, and what could not be kept is counted', async () => {
  const ignore = () => {}
  process.on('SIGXFSZ', ignore)
  const limit = (size: string) => execFileSync('prlimit', ['--pid', `${process.pid}`, `--fsize=${size}:unlimited`])
  const out = openRotatingFile(file, { lostLine: count => `lost ${count}\n` })
  try {
    limit('10')
    for (let n = 0; n < 100; n++) out.write(`line ${n} ${'x'.repeat(50)}\n`)
    out.flush()
    limit('unlimited')
    out.flush()
    assert.deepEqual(
      numbers(file),
      Array.from({ length: 100 }, (_, n) => n),
    )

    limit('10')
    for (let n = 100; n < 30_000; n++) out.write(`line ${n} ${'x'.repeat(50)}\n`)
    limit('unlimited')
    out.flush()
  } finally {
    limit('unlimited')
    process.off('SIGXFSZ', ignore)
    out.close()
  }
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  const lost = lines.filter(line => line.startsWith('lost')).reduce((sum, line) => sum + Number(line.split(' ')[1]), 0)
  const kept = lines.filter(line => /^line \d+ x{50}$/.test(line))
  assert.ok(lost > 1000)
  assert.equal(kept.length + lost, 30_000)
  assert.equal(kept.at(-1)?.split(' ')[1], '29999')
})
