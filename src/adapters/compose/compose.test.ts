import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Failure } from '../../core/failure.ts'
import { testEngine } from '../../testing/engine.ts'
import { type ComposeProgress, dockerPluginFolders, openCompose } from './compose.ts'

const world = testEngine()
after(() => world.cleanup())
const root = mkdtempSync(join(tmpdir(), 'fl-compose-'))
after(() => rmSync(root, { recursive: true, force: true }))

const settings = { path: process.env.PATH ?? '', home: root, dockerHost: world.address }
const compose = openCompose(settings)

let count = 0
/** A folder whose project nobody else has. */
const folderWith = (text: string, more: Record<string, string> = {}): string => {
  const folder = join(root, `${world.prefix}${count++}`)
  mkdirSync(folder)
  for (const [name, content] of Object.entries({ 'compose.yaml': text, ...more }))
    writeFileSync(join(folder, name), content)
  return folder
}

const projectOf = (folder: string): string => folder.slice(root.length + 1)

const service = (more = ''): string => `
    image: ${world.image}
    command: sleep 1000
    stop_grace_period: 0s
${more}`

const failsWith = (code: string, words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof Failure, String(error))
  assert.equal(error.code, code)
  assert.match(error.message, words)
  return true
}

const labelsOf = async (folder: string): Promise<Map<string, string>> => {
  const containers = await world.engine.containers.list({ label: [`com.docker.compose.project=${projectOf(folder)}`] })
  return new Map(
    containers.map(({ Labels }) => [
      Labels?.['com.docker.compose.service'] ?? '',
      Labels?.['com.docker.compose.config-hash'] ?? '',
    ]),
  )
}

/** A stand-in for the plugin that notes its arguments, and then is the plugin, or says what it is told. */
const stub = (script: string): { folder: string; calls(): string[] } => {
  const folder = mkdtempSync(join(root, 'stub-'))
  const log = join(folder, 'log')
  writeFileSync(log, '')
  writeFileSync(join(folder, 'docker-compose'), `#!/bin/sh\necho "$@" >> ${log}\n${script}\n`)
  chmodSync(join(folder, 'docker-compose'), 0o755)
  return { folder, calls: () => readFileSync(log, 'utf8').split('\n').filter(Boolean) }
}

test('a version of 2 or newer is found, an old one is refused with its number, and none is looked for again', async () => {
  assert.ok((await compose.version()).major >= 2)
  const old = stub('echo docker-compose version 1.29.2, build unknown')
  const v1 = openCompose({ ...settings, path: '/nonexistent', pluginFolders: [old.folder] })
  await assert.rejects(v1.version(), failsWith('SERVICE_UNAVAILABLE', /1\.29\.2 is too old: version 2 or newer/))

  const empty = mkdtempSync(join(root, 'empty-'))
  const late = openCompose({ ...settings, path: '/nonexistent', pluginFolders: [empty] })
  await assert.rejects(late.version(), failsWith('SERVICE_UNAVAILABLE', /not installed/))
  writeFileSync(join(empty, 'docker-compose'), '#!/bin/sh\necho v2.99.1-desktop.1\n')
  chmodSync(join(empty, 'docker-compose'), 0o755)
  assert.deepEqual(await late.version(), { text: '2.99.1-desktop.1', major: 2, minor: 99 })
})

test('the plugin, `docker compose` and `docker-compose` are each found', async () => {
  const alone = stub('echo 2.30.0')
  const standalone = openCompose({ ...settings, path: `${alone.folder}:/usr/bin:/bin`, pluginFolders: [] })
  assert.ok((await standalone.version()).major >= 2)
  const only = openCompose({ ...settings, path: alone.folder, pluginFolders: [] })
  assert.equal((await only.version()).text, '2.30.0')
})

test('a model has the project, the normalised services and the files it came from', async () => {
  const folder = folderWith(
    `
services:
  web:${service(`    environment: { A: "pa$$word", B: "\${FROM_ENV}" }
    env_file: extra.env
    ports: ["127.0.0.1:0:80"]
    depends_on: [db]`)}
  db:${service()}`,
    { '.env': 'FROM_ENV=x', 'extra.env': 'EXTRA=1' },
  )
  const model = await compose.model(folder)
  assert.equal(model.project, projectOf(folder))
  assert.deepEqual(Object.keys(model.services), ['db', 'web'])
  assert.deepEqual(model.services.web?.environment, { A: 'pa$word', B: 'x', EXTRA: '1' })
  assert.deepEqual(Object.keys(model.services.web?.depends_on ?? {}), ['db'])
  const read = model.files.filter(({ sha256 }) => sha256 !== null).map(({ path }) => path)
  assert.deepEqual(read, ['.env', 'compose.yaml', 'extra.env'])
})

test('nothing of the environment of the agent reaches a compose file or a container', async () => {
  process.env.FL_CANARY = 'canary-value'
  try {
    const folder = folderWith(`
services:
  web:${service(`    environment: ["FL_CANARY", "COPY=\${FL_CANARY}", "MINE=\${HOME}"]`)}`)
    const model = await compose.model(folder)
    assert.deepEqual(model.services.web?.environment, { FL_CANARY: null, COPY: '', MINE: root })
    assert.ok(model.warnings.some(warning => /"FL_CANARY" variable is not set/.test(warning)))
    await compose.up(folder, { timeoutMs: 60_000 })
    const [container] = await world.engine.containers.list({
      label: [`com.docker.compose.project=${projectOf(folder)}`],
    })
    assert.ok(container)
    assert.ok(!JSON.stringify(await world.engine.containers.inspect(container.Id)).includes('canary-value'))
    await compose.down(folder, { timeoutMs: 60_000 })
  } finally {
    delete process.env.FL_CANARY
  }
})

/** The real Compose, with a note of what it was asked. */
const countedCompose = () => {
  const real = dockerPluginFolders.map(folder => join(folder, 'docker-compose'))
  const noted = stub(
    `for real in ${real.join(' ')}; do [ -x "$real" ] && exec "$real" "$@"; done; exec docker compose "$@"`,
  )
  return { noted, counted: openCompose({ ...settings, pluginFolders: [noted.folder] }) }
}

test('a folder is read once per state of its files, however many ask, and again when one of them changed', async () => {
  const { noted, counted } = countedCompose()
  const configs = () => noted.calls().filter(line => line.startsWith('config --format')).length
  const folder = folderWith(`services:\n  web:${service('    env_file: a.env')}`, { 'a.env': 'A=1' })
  const models = await Promise.all(Array.from({ length: 10 }, () => counted.model(folder)))
  assert.equal(configs(), 1)
  assert.ok(models.every(model => model === models[0]))
  assert.equal(await counted.model(folder), models[0])
  assert.equal(configs(), 1)

  writeFileSync(join(folder, 'a.env'), 'A=2')
  const changed = await counted.model(folder)
  assert.deepEqual(changed.services.web?.environment, { A: '2' })
  assert.notEqual(changed.hashes.get('web'), models[0]?.hashes.get('web'))
  writeFileSync(join(folder, 'compose.override.yml'), 'services: { more: { image: x } }')
  assert.deepEqual(Object.keys((await counted.model(folder)).services), ['more', 'web'])
  assert.equal(configs(), 3)
})

test('the hashes of services that share are asked for once for the same containers', async () => {
  const { noted, counted } = countedCompose()
  const folder = folderWith(`services:\n  a:${service()}\n  b:${service('    network_mode: service:a')}`)
  await counted.model(folder)
  const asked = noted.calls().length
  const one = await counted.hashesWith(folder, new Map([['a', 'id-1']]))
  assert.equal(await counted.hashesWith(folder, new Map([['a', 'id-1']])), one)
  assert.equal(noted.calls().length, asked + 1)
  const other = await counted.hashesWith(folder, new Map([['a', 'id-2']]))
  assert.notEqual(other.get('b'), one.get('b'))
  assert.equal(other.get('a'), one.get('a'))
  assert.equal(noted.calls().length, asked + 2)
})

test('a caller that gives up leaves the run to the others', async () => {
  const folder = folderWith(`services:\n  web:${service()}`)
  const abort = new AbortController()
  const first = compose.model(folder, abort.signal)
  const second = compose.model(folder)
  abort.abort(new Error('gave up'))
  await assert.rejects(first, /gave up/)
  assert.equal((await second).project, projectOf(folder))
})

test("an invalid file is refused with Compose's words and no path of the machine", async () => {
  const invalid = (text: string, words: RegExp) =>
    assert.rejects(compose.model(folderWith(text)), error => {
      failsWith('COMPOSE_INVALID', words)(error)
      assert.ok(error instanceof Failure && !error.message.includes(root) && !error.message.includes('/etc/'))
      return true
    })
  await invalid('services:\n  web:\n    imag: x', /imag/)
  await invalid('services:\n  web: [\n', /yaml: line 2/)
  await invalid('services:\n  web:\n    image: x\n    depends_on: [nope]', /undefined service "?nope/)
  await invalid('services:\n  web:\n    image: x\n    env_file: /etc/fl-nope.env', /outside the deployment\) not found/)
  await invalid('include: [/etc/fl-nope.yml]\nservices: {}', /outside the deployment/)
  await invalid(`services:\n  web:\n    image: \${X:?must be set}`, /must be set/)
})

/** Every feature that touches the hash in a way of its own. */
const everything = (): string => `
x-base: &base
  image: ${world.image}
  command: sleep 1000
  stop_grace_period: 0s
services:
  envfile: { <<: *base, env_file: [a.env, { path: none.env, required: false }], environment: [HOME, UNSET, "Z=$$x"] }
  plain:
    <<: *base
    command: sh -c 'echo "a b" $$HOME; sleep 1000'
    depends_on: { envfile: { condition: service_started } }
    labels: [a=b, "c=d$$e"]
    healthcheck: { test: exit 0, interval: 1m30s, start_period: 2s }
    x-own: { foo: 1 }
  shared: { <<: *base, network_mode: "service:plain", tmpfs: /t, init: true, mem_limit: 64m, cap_drop: [ALL] }
  pid: { <<: *base, pid: "service:shared", restart: unless-stopped, tty: true }
  from: { <<: *base, volumes_from: ["plain:ro"] }
  extended: { extends: { file: base.yml, service: base }, networks: { default: { aliases: [foo] }, back: {} }, expose: [99] }
  files:
    <<: *base
    secrets: [s]
    configs: [{ source: c, target: /c }]
    volumes: ["data:/d", "./:/sub:ro", { type: tmpfs, target: /tm }]
    scale: 2
    deploy: { resources: { limits: { memory: 64M } } }
networks: { back: { internal: true } }
volumes: { data: { labels: { x: y } } }
secrets: { s: { file: ./a.env } }
configs: { c: { file: ./a.env } }
`

test('the hashes are those that Compose labels its containers with, also of services that share with others', async () => {
  const base = 'services: { base: { image: IMAGE, command: [sleep, "1000"], stop_grace_period: 0s, env_file: a.env } }'
  const folder = folderWith(everything(), { 'a.env': 'A=1', 'base.yml': base.replace('IMAGE', world.image) })
  const progress: ComposeProgress[] = []
  await compose.up(folder, { timeoutMs: 120_000, onProgress: line => progress.push(line) })
  assert.ok(progress.some(({ id, status }) => id === `Container ${projectOf(folder)}-plain-1` && status === 'Started'))

  const containers = await world.engine.containers.list({ label: [`com.docker.compose.project=${projectOf(folder)}`] })
  const firsts = containers.filter(({ Labels }) => Labels?.['com.docker.compose.container-number'] === '1')
  const ids = new Map(firsts.map(({ Id, Labels }) => [Labels?.['com.docker.compose.service'] ?? '', Id]))
  const labels = await labelsOf(folder)
  assert.equal(labels.size, 7)
  const foretold = await compose.hashesWith(folder, ids)
  const known = [...labels.keys()].filter(name => foretold.has(name))
  assert.deepEqual(known.filter(name => name !== 'from').sort(), [
    'envfile',
    'extended',
    'files',
    'pid',
    'plain',
    'shared',
  ])
  for (const name of known) assert.equal(foretold.get(name), labels.get(name), name)
  const { hashes } = await compose.model(folder)
  for (const name of ['envfile', 'plain', 'extended', 'files']) assert.equal(hashes.get(name), labels.get(name), name)
  await compose.down(folder, { timeoutMs: 60_000 })
})

test('up, stop, restart and down do what they say, and down keeps the volumes', async () => {
  const folder = folderWith(`
services:
  web:${service('    volumes: ["data:/data"]')}
  db:${service()}
volumes: { data: {} }`)
  const states = async () => {
    const found = await world.engine.containers.list({ label: [`com.docker.compose.project=${projectOf(folder)}`] })
    return Object.fromEntries(found.map(({ Labels, State }) => [Labels?.['com.docker.compose.service'], State]))
  }
  const limit = { timeoutMs: 60_000 }
  await compose.up(folder, { ...limit, services: ['web'], noDeps: true })
  assert.deepEqual(await states(), { web: 'running' })
  await compose.up(folder, { ...limit, waitSeconds: 30 })
  assert.deepEqual(await states(), { web: 'running', db: 'running' })
  await compose.stop(folder, { ...limit, services: ['db'], stopSeconds: 0 })
  assert.deepEqual(await states(), { web: 'running', db: 'exited' })
  await compose.restart(folder, { ...limit, stopSeconds: 0 })
  assert.deepEqual(await states(), { web: 'running', db: 'running' })
  writeFileSync(join(folder, 'compose.yaml'), `services:\n  web:${service()}`)
  await compose.up(folder, { ...limit, removeOrphans: true })
  assert.deepEqual(await states(), { web: 'running' })
  await compose.down(folder, limit)
  assert.deepEqual(await states(), {})
  assert.equal((await world.engine.volumes.inspect(`${projectOf(folder)}_data`)).Name, `${projectOf(folder)}_data`)
})

test("a start that fails says why in the engine's words, and never pulls", async () => {
  const folder = folderWith('services:\n  web:\n    image: fl-none/none:1')
  await assert.rejects(
    compose.up(folder, { timeoutMs: 60_000 }),
    failsWith('UPSTREAM_FAILED', /^docker compose up: .*[Nn]o such image: fl-none/s),
  )
})

test('cancel and a deadline end a run', async () => {
  const folder = folderWith(`
services:
  web:${service('    healthcheck: { test: "false", interval: 1s, retries: 1000 }')}`)
  const abort = new AbortController()
  const onProgress = ({ status }: ComposeProgress) => status === 'Started' && abort.abort(new Error('cancelled'))
  const run = compose.up(folder, { timeoutMs: 60_000, waitSeconds: 50, signal: abort.signal, onProgress })
  const started = performance.now()
  await assert.rejects(run, /cancelled/)
  assert.ok(performance.now() - started < 10_000)
  await assert.rejects(
    compose.up(folder, { timeoutMs: 700, waitSeconds: 50 }),
    failsWith('TIMEOUT', /did not end within 1 s/),
  )
  await compose.down(folder, { timeoutMs: 60_000 })
})

test('a name with shell characters stays a name', async () => {
  const folder = folderWith(`services:\n  web:${service()}`)
  const name = `$(touch ${root}/marker);\`touch ${root}/marker\``
  await assert.rejects(
    compose.stop(folder, { timeoutMs: 10_000, services: [name] }),
    failsWith('UPSTREAM_FAILED', /no such service/),
  )
  await assert.rejects(
    compose.stop(folder, { timeoutMs: 10_000, services: ['--help'] }),
    failsWith('UPSTREAM_FAILED', /no such service/),
  )
  assert.throws(() => readFileSync(join(root, 'marker')))
})
