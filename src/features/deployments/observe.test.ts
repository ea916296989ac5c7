import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ComposeModel } from '../../adapters/compose/model.ts'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import type { Folder } from './folders.ts'
import { observe } from './observe.ts'

const running = { state: 'running', exitCode: null, health: 'none' } as const
const exited = (exitCode: number) => ({ state: 'exited', exitCode, health: 'none' }) as const

/** Two services, web and db; what their containers are in, and the status that follows. */
const cases: [what: string, web: Partial<ContainerEntry>[], db: Partial<ContainerEntry>[], status: string][] = [
  ['nothing was ever started', [], [], 'stopped'],
  ['all run', [running], [running], 'running'],
  ['one is missing', [running], [], 'partial'],
  ['one was stopped', [running], [exited(143)], 'partial'],
  ['all were stopped', [exited(137)], [exited(0)], 'stopped'],
  ['one crashed', [running], [exited(1)], 'error'],
  ['one ran out of memory', [running], [{ ...exited(137), oomKilled: true }], 'error'],
  ['one loops', [running], [{ ...exited(1), state: 'restarting' }], 'error'],
  ['one is unhealthy', [running], [{ ...running, health: 'unhealthy' }], 'error'],
  ['a one-shot did its work', [running], [{ ...exited(0), restartPolicy: 'no' }], 'running'],
  ['one that should run for ever ended with 0', [running], [{ ...exited(0), restartPolicy: 'always' }], 'partial'],
  ['only created', [{ state: 'created' }], [{ state: 'created' }], 'stopped'],
  ['one is paused', [running], [{ state: 'paused' }], 'partial'],
]

for (const [what, web, db, status] of cases) {
  test(`${what}: ${status}`, () => {
    const containers = [...web.map(one => container('web', one)), ...db.map(one => container('db', one))]
    const engine = { up: true, containers: () => containers, imageOf: () => undefined }
    assert.equal(observe(folder, engine, false).status, status)
  })
}

test('without an engine it is unknown, without a model invalid, and deploying while it is changed', () => {
  const engine = { up: true, containers: () => [], imageOf: () => undefined }
  assert.equal(observe(folder, { ...engine, up: false }, false).status, 'unknown')
  assert.equal(observe({ ...folder, model: null }, engine, false).status, 'invalid')
  assert.equal(observe(folder, engine, true).status, 'deploying')
})

test('a service is in sync when its containers are those the file wants, no fewer and no more', () => {
  const inSync = (...web: ContainerEntry[]) => {
    const engine = { up: true, containers: () => web, imageOf: () => undefined }
    return observe(folder, engine, false).services[0]?.inSync
  }
  const other = { project: 'blog', service: 'web', number: 1, oneoff: false, configHash: 'old', workingDir: '/d/blog' }
  assert.equal(inSync(container('web', running)), true)
  assert.equal(inSync(container('web', exited(0))), true)
  assert.equal(inSync(container('web', { ...running, compose: other })), false)
  assert.equal(inSync(container('web', running), container('web', running)), false)
  assert.equal(inSync(), false)
})

const model = {
  project: 'blog',
  services: { web: { image: 'x' }, db: { image: 'y' } },
  hashes: new Map([
    ['web', 'h'],
    ['db', 'h'],
  ]),
} as unknown as ComposeModel
const folder = { name: 'blog', model } as Folder

function container(service: string, state: Partial<ContainerEntry>): ContainerEntry {
  return {
    id: service,
    name: `blog-${service}-1`,
    imageId: 'i',
    restartPolicy: 'unless-stopped',
    restartCount: 0,
    oomKilled: false,
    health: 'none',
    exitCode: null,
    compose: { project: 'blog', service, number: 1, oneoff: false, configHash: 'h', workingDir: '/d/blog' },
    ...state,
  } as ContainerEntry
}
