// The directions of the architecture, read from the imports: a wrong arrow fails here, with the file it starts from.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const src = join(root, 'src')

interface Import {
  from: string
  /** A file below src, or the name of a package. */
  to: string
  names: string[]
  typeOnly: boolean
}

const files = globSync('**/*.ts', { cwd: src }).sort()
/** Tests and what serves only them may reach for anything. */
const isTest = (file: string) => /\.test\.ts$|(^|\/)testing(\/|\.ts$)/.test(file)
const product = files.filter(file => !isTest(file))
const imports = product.flatMap(importsOf)
const between = imports.filter(({ to }) => files.includes(to))
const packages = imports.filter(({ to }) => !files.includes(to))

function importsOf(file: string): Import[] {
  const text = readFileSync(join(src, file), 'utf8')
  const statements = /^(?:import|export)\s+(type\s)?(?:([\w*{][^'"]*?)\s+from\s+)?'([^']+)'/gm
  const dynamic = /\bimport\('([^']+)'\)/g
  return [
    ...[...text.matchAll(statements)].map(([, type, names = '', to]) => ({
      from: file,
      to: target(file, to as string),
      names: names.split(/[{},\s]+/).filter(Boolean),
      typeOnly: type !== undefined || /^\{(\s*type\s+[\w\s]+,?)+\s*\}$/.test(names),
    })),
    ...[...text.matchAll(dynamic)].map(([, to]) => ({
      from: file,
      to: target(file, to as string),
      names: [],
      typeOnly: false,
    })),
  ]
}

function target(file: string, to: string): string {
  return to.startsWith('.') ? normalize(join(dirname(file), to)) : to
}

/** The folder of `src` that a file belongs to; a file beside the folders is a place of its own. */
const layerOf = (file: string) => (file.startsWith('config') ? 'config' : (file.split('/')[0] as string))
const partOf = (file: string) => file.split('/').slice(0, 2).join('/')
const show = (wrong: Import[]) => wrong.map(({ from, to, names }) => `${from} → ${to} (${names.join(', ')})`)

/** Which folders each folder may import, besides itself. */
const arrows: Record<string, readonly string[]> = {
  lib: [],
  store: ['lib'],
  core: ['lib', 'store'],
  adapters: ['lib', 'store', 'core'],
  features: ['lib', 'store', 'core', 'adapters', 'config'],
  http: ['lib', 'core'],
  cli: ['lib'],
  config: ['lib'],
  'log.ts': ['lib'],
  'agent.ts': ['lib', 'store', 'core', 'adapters', 'features', 'http', 'config', 'log.ts'],
  'main.ts': ['store', 'core', 'config', 'log.ts', 'agent.ts'],
}

/** Where a package may be imported: each is known in as few places as its purpose allows. */
const homes: Record<string, readonly string[]> = {
  fastify: ['http'],
  ws: ['http'],
  'swagger-ui-dist': ['http'],
  jose: ['features/auth'],
  pino: ['log.ts'],
  diff: ['lib'],
  typebox: ['lib'],
  yaml: ['lib', 'config', 'cli', 'adapters/compose', 'features/deployments', 'features/templates'],
}
const builtIn: Record<string, readonly string[]> = {
  'node:sqlite': ['store'],
  'node:child_process': ['adapters/process'],
  'node:worker_threads': ['features/audit'],
  'node:cluster': [],
}

test('the imports are seen', () => {
  assert.ok(imports.length > 300, `${imports.length}`)
  assert.ok(between.some(({ from, to }) => from === 'core/door.ts' && to === 'core/plan.ts'))
  assert.ok(between.some(({ from, typeOnly }) => from === 'core/door.ts' && typeOnly))
})

test('folders import in the direction of the architecture', () => {
  for (const file of product) assert.ok(layerOf(file) in arrows, `${file} has no place in the architecture`)
  const wrong = between.filter(({ from, to }) => {
    const [layer, other] = [layerOf(from), layerOf(to)]
    return layer !== other && !arrows[layer]?.includes(other)
  })
  assert.deepEqual(show(wrong), [])
})

test('nothing of the product imports a test or what serves tests', () => {
  assert.deepEqual(show(imports.filter(({ to }) => isTest(to))), [])
})

test('only the wiring opens an adapter: a feature knows what can be asked of it, and its steps', () => {
  const makers = between.filter(({ from, to, names, typeOnly }) => {
    if (layerOf(to) !== 'adapters' || partOf(from) === partOf(to) || from === 'agent.ts' || typeOnly) return false
    return names.some(name => /^(open|mirror|connect|watch)[A-Z]/.test(name))
  })
  assert.deepEqual(show(makers), [])
})

test('a feature reaches another one through its index, and never in a circle', () => {
  const across = between.filter(
    ({ from, to }) =>
      from !== 'features/index.ts' &&
      layerOf(from) === 'features' &&
      layerOf(to) === 'features' &&
      partOf(from) !== partOf(to),
  )
  assert.deepEqual(show(across.filter(({ to }) => !/^features\/\w+\/index\.ts$/.test(to))), [])
  const next = Map.groupBy(across, ({ from }) => partOf(from))
  const circles: string[] = []
  const walk = (part: string, way: string[]) => {
    if (way.includes(part)) return void circles.push([...way.slice(way.indexOf(part)), part].join(' → '))
    for (const other of new Set(next.get(part)?.map(({ to }) => partOf(to)))) walk(other, [...way, part])
  }
  for (const part of next.keys()) walk(part, [])
  assert.deepEqual(circles, [])
})

test('the wiring and the list of operations know each feature by its index', () => {
  const inside = between.filter(
    ({ from, to }) => ['agent.ts', 'features/index.ts'].includes(from) && layerOf(to) === 'features',
  )
  const wrong = inside.filter(({ to }) => to !== 'features/index.ts' && !/^features\/\w+\/index\.ts$/.test(to))
  assert.deepEqual(show(wrong), [])
})

test('each package, and what only one place may do, is imported where it belongs', () => {
  const wrong = packages.filter(({ from, to, typeOnly }) => {
    const places = to.startsWith('node:') ? builtIn[to] : (homes[to.split('/')[0] as string] ?? [])
    if (places === undefined || (typeOnly && from === 'agent.ts')) return false
    return !places.some(place => from === place || from.startsWith(`${place}/`) || layerOf(from) === place)
  })
  assert.deepEqual(show(wrong), [])
})

test('what the product imports is a dependency, and what only tests import is not', () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const used = new Set(packages.filter(({ to }) => !to.startsWith('node:')).map(({ to }) => to.split('/')[0] as string))
  for (const name of used) assert.ok(name in dependencies, `${name} is not a dependency`)
  for (const name of Object.keys(devDependencies)) assert.ok(!used.has(name), `${name} is only for development`)
})

test('every file begins with a sentence that says what it is for', () => {
  const without = product.filter(file => {
    const [comment = ''] = /^(\/\/ .*\n)+/.exec(readFileSync(join(src, file), 'utf8')) ?? []
    return !/^\/\/ [A-Z`].*[.…]\n$/s.test(comment)
  })
  assert.deepEqual(without, [])
})

test('importing a file does nothing: no timer, no socket, no output', () => {
  const modules = product.filter(file => file !== 'main.ts' && !/^cli\/(main|index)\.ts$/.test(file))
  const script = `
    for (const file of ${JSON.stringify(modules)}) await import('file://${src}/' + file)
    const left = process.getActiveResourcesInfo().filter(name => name !== 'TTYWrap' && name !== 'PipeWrap')
    process.stdout.write(JSON.stringify(left))`
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: root,
    encoding: 'utf8',
    timeout: 30_000,
  })
  assert.equal(output, '[]')
})

test('no name says that nobody knew a better one', () => {
  const vague = product.filter(file =>
    /(^|\/)(utils?|helpers?|manager|common|misc)(\/|\.ts$)|Impl\.ts$/.test(relative('', file)),
  )
  assert.deepEqual(vague, [])
})
