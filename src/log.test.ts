// What the agent's log says, where, and what it never says.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLog, prettyLine } from './log.ts'

const world = mkdtempSync(join(tmpdir(), 'fairlead-log-'))
after(() => rmSync(world, { recursive: true }))

let folder: string
let file: string
let screen: string
beforeEach(() => {
  folder = mkdtempSync(join(world, 'case-'))
  file = join(folder, 'logs/agent.log')
  screen = join(folder, 'screen')
})

const lines = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))

test('a line has level, time, fields and sentence, in the file and on standard output', async () => {
  const log = openLog({ level: 'info', file, stdout: openSync(screen, 'w') })
  log.logger.child({ area: 'engine' }).info({ container: 'blog-web-1' }, 'started')
  log.logger.debug('not at this level')
  await log.close()
  const [line, ...others] = lines(file)
  assert.deepEqual(Object.keys(line), ['level', 'time', 'area', 'container', 'msg'])
  assert.deepEqual([line.level, line.area, line.container, line.msg], ['info', 'engine', 'blog-web-1', 'started'])
  assert.ok(Math.abs(Date.parse(line.time) - Date.now()) < 5000)
  assert.deepEqual(others, [])
  assert.equal(readFileSync(screen, 'utf8'), readFileSync(file, 'utf8'))
  assert.equal(statSync(file).mode & 0o777, 0o600)
})

test('an error carries its stack and its cause', async () => {
  const log = openLog({ level: 'info', file })
  log.logger.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed')
  const [line] = lines(file)
  assert.match(line.err.stack, /Error: outer[\s\S]*caused by: Error: inner/)
  await log.close()
})

test('an error is in the file at once, other lines soon', async () => {
  const log = openLog({ level: 'info', file })
  log.logger.info('first')
  assert.equal(statSync(file).size, 0)
  log.logger.error('second')
  assert.equal(lines(file).length, 2)
  log.logger.info('third')
  log.flush()
  assert.equal(lines(file).length, 3)
  log.logger.info('fourth')
  await sleep(200)
  assert.equal(lines(file).length, 4)
  await log.close()
})

test('the level changes while it runs', async () => {
  const log = openLog({ level: 'warn', file })
  log.logger.info('no')
  log.setLevel('debug')
  log.logger.debug('yes')
  log.logger.child({}).debug('child')
  log.setLevel('error')
  log.logger.warn('no')
  await log.close()
  assert.deepEqual(
    lines(file).map(({ msg }) => msg),
    ['yes', 'child'],
  )
})

test('credentials are in no line, wherever they stand', async () => {
  const log = openLog({ level: 'info', file, stdout: openSync(screen, 'w'), format: 'pretty' })
  const { logger } = log
  const key = `fl_${'canary0000'.repeat(4)}`
  logger.info({ req: { headers: { authorization: 'Bearer canary', Cookie: 'a=canary', host: 'kept' } } }, 'nested')
  logger.info(
    { deep: { deeper: [{ headers: { 'set-cookie': ['canary', 'canary'], 'X-Api-Key': 'can\\"canary' } }] } },
    'deep',
  )
  logger.child({ authorization: 'Bearer canary' }).info('bound')
  logger.info(
    { body: { password: 'canary', new_password: 'canary', api_key: 'canary', token: 'canary', secret: 'canary' } },
    'body',
  )
  logger.info(`the caller sent ${key} and "Bearer canary.canary.canary" in the text`)
  logger.error({ err: new Error(`refused ${key}`) }, 'failed')
  await log.close()
  assert.equal(lines(file).length, 6)
  assert.match(readFileSync(file, 'utf8'), /"host":"kept"/)
  for (const path of [file, screen]) assert.doesNotMatch(readFileSync(path, 'utf8'), /canary/, path)
})

test('words that look like credentials but are none stay', async () => {
  const log = openLog({ level: 'info', file })
  log.logger.info({ tokens: 5, path: '/api/secrets', note: 'cookie' }, 'fl_short and password rules')
  await log.close()
  const [line] = lines(file)
  assert.deepEqual(
    [line.tokens, line.path, line.note, line.msg],
    [5, '/api/secrets', 'cookie', 'fl_short and password rules'],
  )
})

test('the file turns over, and standard output does not care', async () => {
  const log = openLog({ level: 'info', file, stdout: openSync(screen, 'w'), maxBytes: 2000, keep: 2 })
  for (let n = 0; n < 100; n++) {
    log.logger.info({ n }, 'line')
    log.flush()
  }
  await log.close()
  const kept = [...lines(`${file}.1`), ...lines(file)].map(({ n }) => n)
  assert.deepEqual(
    kept,
    Array.from({ length: kept.length }, (_, n) => 100 - kept.length + n),
  )
  assert.equal(lines(screen).length, 100)
})

test('a pretty line is a time, a level, a sentence and its fields', () => {
  const line =
    '{"level":"warn","time":"2026-01-02T03:04:05.678Z","id":"a-1","list":[1],"text":"two words","msg":"slow"}\n'
  assert.equal(prettyLine(line, false), '03:04:05.678 WARN  slow id=a-1 list=[1] text="two words"\n')
  assert.ok(prettyLine(line, true).includes('\u001b[33mWARN '))
  const failed = JSON.stringify({
    level: 'error',
    time: '2026-01-02T03:04:05.678Z',
    err: { stack: 'Error: x\n at y' },
    msg: 'no',
  })
  assert.equal(prettyLine(failed, false), '03:04:05.678 ERROR no\n    Error: x\n     at y\n')
})

test('what is no JSON is shown as it is, and nothing in a line steers the terminal', () => {
  assert.equal(prettyLine('plain\n', true), 'plain\n')
  const shown = prettyLine(
    JSON.stringify({ level: 'info', msg: 'a\u001b[2Jb\u0007c\rd', path: '\u001b]0;x\u0007' }),
    false,
  )
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is the point
  assert.doesNotMatch(shown, /[\x00-\x09\x0b-\x1f]/)
})

test('a reader of standard output that stalls or leaves neither holds up nor ends the agent', async () => {
  const program = `
    import { openLog } from ${JSON.stringify(join(import.meta.dirname, 'log.ts'))}
    const log = openLog({ level: 'info', stdout: 1, file: process.argv[1] })
    for (let n = 0; n < 5000; n++) log.logger.info({ n, pad: 'x'.repeat(100) }, 'line')
    await new Promise(resolve => setTimeout(resolve, 100))
    for (let n = 0; n < 10; n++) log.logger.info('later')
    await log.close()
    process.exit(0)
  `
  for (const leaves of [false, true]) {
    const path = join(folder, `${leaves}.log`)
    const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (leaves) child.stdout.destroy()
    else child.stdout.pause()
    const [code] = await once(child, 'exit')
    assert.equal(code, 0)
    assert.equal(lines(path).length, 5010)
    child.stdout.destroy()
  }
})
