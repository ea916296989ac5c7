import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import type { Level } from '../../core/permission.ts'
import type { Folder } from './folders.ts'
import { Overview } from './overview.ts'

const everybody = { deployments: 'all' } as const
const only = (...names: string[]) => ({ deployments: new Map(names.map((name): [string, Level] => [name, 'read'])) })

test('as long as nothing changes it is the very same list, for each set of visible deployments', () => {
  const { overview, folders } = world('blog', 'shop', 'wiki')
  const all = overview.of(folders, everybody)
  assert.ok(Object.isFrozen(all))
  assert.equal(overview.of(folders, everybody), all)
  const some = overview.of(folders, only('wiki', 'blog', 'gone'))
  assert.deepEqual(namesOf(some), ['blog', 'wiki'])
  assert.equal(overview.of(folders, only('blog', 'gone', 'wiki')), some)
  assert.deepEqual(namesOf(overview.of(folders, only())), [])
  assert.equal(overview.of(folders, everybody), all)
})

test('a container that changes makes one row anew, and leaves the others as they are', () => {
  const { overview, folders, containers, change } = world('blog', 'shop')
  const before = overview.of(folders, everybody)
  assert.deepEqual(statusesOf(before), ['stopped', 'stopped'])
  change(() => containers.set('shop', [container('shop')]))
  const after = overview.of(folders, everybody)
  assert.deepEqual(statusesOf(after), ['stopped', 'running'])
  assert.equal(after[0], before[0])
  assert.notEqual(after[1], before[1])
})

test('a deployment is told to be changing, and the engine to be away, at once', () => {
  const { overview, folders, deploying, engine, change } = world('blog', 'shop')
  overview.of(folders, everybody)
  deploying.add('blog')
  assert.deepEqual(statusesOf(overview.of(folders, everybody)), ['deploying', 'stopped'])
  deploying.delete('blog')
  assert.deepEqual(statusesOf(overview.of(folders, everybody)), ['stopped', 'stopped'])
  change(() => {
    engine.state = 'down'
  })
  assert.deepEqual(statusesOf(overview.of(folders, everybody)), ['unknown', 'unknown'])
})

test('folders come, change and go', () => {
  const { overview, folders } = world('blog', 'shop')
  overview.of(folders, everybody)
  const [blog, shop] = folders as [Folder, Folder]
  const edited = { ...shop, revision: 'r2' }
  const list = overview.of([blog, edited, folder('wiki')], everybody)
  assert.deepEqual(
    list.map(({ name, revision }) => [name, revision]),
    [
      ['blog', 'r'],
      ['shop', 'r2'],
      ['wiki', 'r'],
    ],
  )
  assert.deepEqual(namesOf(overview.of([edited], everybody)), ['shop'])
})

test('two folders with one project name are both invalid, until one of them is gone', () => {
  const { overview } = world()
  const [blog, copy] = [folder('blog'), folder('copy', 'blog')]
  assert.deepEqual(statusesOf(overview.of([blog], everybody)), ['stopped'])
  assert.deepEqual(statusesOf(overview.of([blog, copy], everybody)), ['invalid', 'invalid'])
  assert.deepEqual(statusesOf(overview.of([copy], everybody)), ['stopped'])
})

const namesOf = (list: readonly { name: string }[]) => list.map(({ name }) => name)
const statusesOf = (list: readonly { status: string }[]) => list.map(({ status }) => status)

function world(...names: string[]) {
  const containers = new Map<string, readonly ContainerEntry[]>()
  const engine = { version: 1, state: 'up' }
  const none: readonly ContainerEntry[] = []
  const mirror = {
    get version() {
      return engine.version
    },
    get state() {
      return engine.state
    },
    project: (name: string) => containers.get(name) ?? none,
    imageOf: () => undefined,
  } as unknown as EngineMirror
  const deploying = new Set<string>()
  const change = (work: () => void) => {
    work()
    engine.version++
  }
  return {
    overview: new Overview(mirror, deploying),
    folders: names.map(name => folder(name)),
    containers,
    deploying,
    engine,
    change,
  }
}

const folder = (name: string, project = name): Folder =>
  ({
    name,
    path: `/d/${name}`,
    revision: 'r',
    model: { project, services: { web: { image: 'x' } }, hashes: new Map() },
  }) as unknown as Folder

const container = (project: string): ContainerEntry =>
  ({
    id: project,
    name: `${project}-web-1`,
    state: 'running',
    health: 'none',
    compose: { project, service: 'web', number: 1, oneoff: false, configHash: '', workingDir: `/d/${project}` },
  }) as unknown as ContainerEntry
