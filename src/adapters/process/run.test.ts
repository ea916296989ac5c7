import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Failure } from '../../core/failure.ts'
import { type ProgramOptions, runProgram } from './run.ts'

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fl-process-'))
})
after(() => rm(folder, { recursive: true, force: true }))

const env = { PATH: '/usr/bin:/bin' }
const sh = (script: string, more: Partial<ProgramOptions> = {}) =>
  runProgram('sh', ['-c', script], { cwd: folder, env, deadlineMs: 10_000, ...more })

test('a program gives its code and both streams, and a bad code is an answer', async () => {
  const output = await sh('echo out; echo err >&2; exit 3')
  assert.deepEqual(output, { code: 3, stdout: 'out\n', stderr: 'err\n', truncated: false })
})

test('a program reads its input, and one that ignores it is no error', async () => {
  assert.equal((await sh('cat', { input: 'hello' })).stdout, 'hello')
  assert.equal((await sh('exit 0', { input: 'x'.repeat(1_000_000) })).code, 0)
})

test('nothing of the environment of the agent reaches a program', async () => {
  process.env.FL_CANARY = 'canary-value'
  try {
    const { stdout } = await runProgram('/usr/bin/env', [], { cwd: folder, env: { ONLY: 'this' }, deadlineMs: 10_000 })
    assert.equal(stdout, 'ONLY=this\n')
  } finally {
    delete process.env.FL_CANARY
  }
})

test('arguments are never read by a shell', async () => {
  const value = `; touch ${folder}/marker $(touch ${folder}/marker) \`touch ${folder}/marker\``
  const { stdout } = await runProgram('printf', ['%s', value], { cwd: folder, env, deadlineMs: 10_000 })
  assert.equal(stdout, value)
  await assert.rejects(readFile(join(folder, 'marker')))
})

test('output is bounded: the beginning of stdout and the end of stderr are kept', async () => {
  const script = 'i=0; while [ $i -lt 2000 ]; do echo "line $i"; echo "line $i" >&2; i=$((i+1)); done'
  const { stdout, stderr, truncated } = await sh(script, { maxOutput: 1000 })
  assert.equal(truncated, true)
  assert.equal(stdout.length, 1000)
  assert.ok(stdout.startsWith('line 0\n'))
  assert.ok(stderr.length <= 1000)
  assert.ok(stderr.endsWith('line 1999\n'))
})

test('lines arrive while the program still runs', async () => {
  const seen: string[] = []
  await sh('printf "a\\r\\nb"; until [ -e go ]; do sleep 0.01; done; printf "c\\n"; echo e >&2', {
    onLine: (stream, line) => {
      seen.push(`${stream}:${line}`)
      writeFileSync(join(folder, 'go'), '')
    },
  })
  assert.deepEqual(seen.sort(), ['stderr:e', 'stdout:a', 'stdout:bc'])
})

test('a program that is not installed and a folder that is gone are told apart', async () => {
  const failure = (code: string) => (error: unknown) => error instanceof Failure && error.code === code
  const none = runProgram('fl-no-such-program', [], { cwd: folder, env, deadlineMs: 1000 })
  await assert.rejects(none, failure('SERVICE_UNAVAILABLE'))
  await assert.rejects(sh('true', { cwd: join(folder, 'gone') }), failure('NOT_FOUND'))
})

/** A child and a grandchild that both ignore SIGTERM and hold the pipes open. */
const stubborn = `
trap "" TERM
sh -c 'trap "" TERM; echo $$ > grandchild; while :; do sleep 1; done' &
echo $$ > child
while :; do sleep 1; done`

const alive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

const pidIn = async (name: string): Promise<number> => {
  for (;;) {
    const text = await readFile(join(folder, name), 'utf8').catch(() => '')
    if (text.endsWith('\n')) return Number(text)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

test('cancel ends the whole tree within 5 s, even one that ignores SIGTERM', async () => {
  const abort = new AbortController()
  const run = sh(stubborn, { signal: abort.signal, deadlineMs: 60_000 })
  const pids = [await pidIn('child'), await pidIn('grandchild')]
  assert.deepEqual(pids.map(alive), [true, true])
  const started = performance.now()
  abort.abort(new Error('cancelled by a test'))
  await assert.rejects(run, /cancelled by a test/)
  assert.ok(performance.now() - started < 5000)
  assert.deepEqual(pids.map(alive), [false, false])
})

test('a program that does not end in time is ended with a TIMEOUT', async () => {
  const started = performance.now()
  const run = sh('sleep 60', { deadlineMs: 100 })
  await assert.rejects(run, error => error instanceof Failure && error.code === 'TIMEOUT')
  assert.ok(performance.now() - started < 1500, 'one that takes SIGTERM is gone at once')
})

test('a program started with a signal that is already aborted never starts', async () => {
  await assert.rejects(sh('touch started', { signal: AbortSignal.abort(new Error('before')) }), /before/)
  await assert.rejects(readFile(join(folder, 'started')))
})

test('something left in the background that holds the pipes does not hold the answer', async () => {
  const started = performance.now()
  const { stdout } = await sh('sleep 60 & echo done')
  assert.equal(stdout, 'done\n')
  assert.ok(performance.now() - started < 3000)
})
