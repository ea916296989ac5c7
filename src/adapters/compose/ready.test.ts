import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { World } from '../../core/step.ts'
import { testEngine } from '../../testing/engine.ts'
import { type EngineMirror, mirrorEngine } from '../container-engine/mirror.ts'
import { dockerPluginFolders, openCompose } from './compose.ts'
import { runsOf, untilReady } from './ready.ts'
import { composeUp } from './steps.ts'

const engineWorld = testEngine()
const { engine } = engineWorld
const root = mkdtempSync(join(tmpdir(), 'fl-ready-'))
const calls = join(root, 'calls')
let mirror: EngineMirror
let world: World

before(async () => {
  mirror = mirrorEngine(engine)
  await mirror.ready
  const compose = openCompose({
    path: process.env.PATH ?? '',
    home: root,
    dockerHost: engineWorld.address,
    pluginFolders: [countingPlugin()],
  })
  await compose.version()
  world = { compose, engine, mirror, deploying: new Set<string>() } as unknown as World
})
after(async () => {
  await mirror.close()
  await engineWorld.cleanup()
  rmSync(root, { recursive: true, force: true })
})

/** Notes what it is asked and is the real one otherwise. */
function countingPlugin(): string {
  const file = join(root, 'docker-compose')
  const real = dockerPluginFolders.map(folder => join(folder, 'docker-compose')).join(' ')
  const script = `for real in ${real}; do [ -x "$real" ] && exec "$real" "$@"; done; exec docker compose "$@"`
  writeFileSync(file, `#!/bin/sh\necho "$@" >> ${calls}\n${script}\n`)
  chmodSync(file, 0o755)
  return root
}

function projectWith(suffix: string, ...services: { command: string; restart?: string }[]): string {
  const project = engineWorld.name(suffix)
  const lines = services.map(({ command, restart = 'no' }, number) =>
    [
      `  s${number}:`,
      `    image: ${engineWorld.image}`,
      `    command: ${JSON.stringify(['sh', '-c', command])}`,
      `    restart: "${restart}"`,
      '    stop_signal: SIGKILL',
    ].join('\n'),
  )
  mkdirSync(join(root, project))
  writeFileSync(join(root, project, 'compose.yaml'), `services:\n${lines.join('\n')}\n`)
  return project
}

const up = async (project: string, services: number, more: { settleMs?: number } = {}): Promise<void> => {
  const data = {
    deployment: project,
    folder: join(root, project),
    project,
    services: null,
    awaited: Object.fromEntries(Array.from({ length: services }, (_, number) => [`s${number}`, 1])),
    expect: [],
    readySeconds: 10,
    old: { files: [], images: [], containers: [], running: [] },
    ...more,
  }
  const performing = { before: undefined, upload: undefined, now: new Date(), progress: () => {} }
  await composeUp.perform(world, data, { ...performing, signal: new AbortController().signal })
}

test('bringing a project up runs Compose once and asks it nothing else', async () => {
  const project = projectWith('once', { command: 'sleep 1000' }, { command: 'sleep 1000' })
  for (const state of ['from nothing', 'from stopped']) {
    writeFileSync(calls, '')
    await up(project, 2, { settleMs: 50 })
    const asked = readFileSync(calls, 'utf8').split('\n').filter(Boolean)
    assert.equal(asked.length, 1, `${state}: ${asked.join('; ')}`)
    assert.match(asked[0] ?? '', / up --detach --pull never/)
    assert.equal(runsOf(mirror, project).size, 2)
    for (const { id } of mirror.project(project)) await engine.containers.stop(id)
    await mirror.refreshProject(project)
  }
})

test('what dies before it has settled fails, and a step of an older version waits the longest', async () => {
  const project = projectWith('dies', { command: 'sleep 0.3; exit 7' }, { command: 'sleep 1000' })
  await assert.rejects(up(project, 2), {
    code: 'DEPLOY_FAILED',
    message: /service s0: .*-s0-1 exited with code 7/,
  })
})

test('what restarts at once is a loop, however short it has to settle', async () => {
  const project = projectWith('loop', { command: 'exit 3', restart: 'always' })
  await assert.rejects(up(project, 1, { settleMs: 50 }), { code: 'DEPLOY_FAILED', message: /restarts in a loop/ })
})

test('a container that has restarted in former times does not fail the start of another', async () => {
  const thirdTime = 'echo x >> /times; [ $$(wc -l < /times) -gt 3 ] && exec sleep 1000; exit 1'
  const project = projectWith('former', { command: thirdTime, restart: 'always' }, { command: 'sleep 1000' })
  await world.compose.up(join(root, project), { timeoutMs: 30_000, services: ['s0'] })
  const isCalm = () => mirror.project(project).some(one => one.restartCount >= 3 && one.state === 'running')
  for (let tries = 0; !isCalm() && tries < 200; tries++) await new Promise(next => setTimeout(next, 50))
  assert.ok(isCalm())
  await up(project, 2, { settleMs: 50 })
  assert.equal(runsOf(mirror, project).size, 2)
})

test('an engine whose clock goes differently neither shortens the wait nor lengthens it', async () => {
  const project = projectWith('clock', { command: 'sleep 1000' })
  await world.compose.up(join(root, project), { timeoutMs: 30_000 })
  for (const hours of [-1, 1]) {
    const shifted: EngineMirror = {
      ...mirror,
      project: name =>
        mirror.project(name).map(one => ({
          ...one,
          startedAt: new Date(Date.parse(one.startedAt ?? '') + hours * 3_600_000).toISOString(),
        })),
    }
    const began = performance.now()
    await untilReady(shifted, {
      project,
      services: { s0: 1 },
      ranBefore: new Set(),
      settleMs: 200,
      limitMs: 10_000,
      signal: new AbortController().signal,
      onProgress: () => {},
    })
    const waited = performance.now() - began
    assert.ok(waited >= 200 && waited < 5000, `${hours} h: ${waited} ms`)
  }
})
