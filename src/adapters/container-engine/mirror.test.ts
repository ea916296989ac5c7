import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Failure } from '../../core/failure.ts'
import { testEngine } from '../../testing/engine.ts'
import { engineProxy } from '../../testing/engine-proxy.ts'
import { openEngine } from './engine.ts'
import type { ContainerEntry } from './entries.ts'
import { findContainer, findImage } from './lookup.ts'
import { type EngineMirror, type MirrorChange, type MirrorOptions, mirrorEngine } from './mirror.ts'

const world = testEngine()
after(() => world.cleanup())

/** A mirror that sees the engine through a proxy which can take it away. */
async function proxied(options: MirrorOptions = {}) {
  const proxy = await engineProxy(world.address)
  const engine = openEngine(proxy.address)
  const mirror = mirrorEngine(engine, options)
  after(async () => {
    await mirror.close()
    engine.close()
    await proxy.close()
  })
  await mirror.ready
  return { proxy, engine, mirror }
}

const until = async (mirror: EngineMirror, holds: () => boolean, ms = 5000): Promise<void> => {
  if (holds()) return
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stop = mirror.onChange(() => holds() && resolve())
  const timer = setTimeout(() => reject(new Error('the mirror did not get there in time')), ms)
  await promise.finally(() => {
    stop()
    clearTimeout(timer)
  })
}

const quiet = () => new Promise(resolve => setTimeout(resolve, 150))

test('a container that was there and one that comes are mirrored with all their fields', async () => {
  const old = await world.run('old', 'sleep 60', { Labels: { a: 'b' } })
  const { mirror } = await proxied()
  assert.deepEqual([mirror.state, mirror.reason], ['up', null])
  assert.equal(mirror.containers.get(old)?.state, 'running')

  await world.engine.volumes.create({ name: world.name('data') })
  const id = await world.run('full', 'exit 4', {
    Tty: true,
    Labels: {
      'com.docker.compose.project': world.prefix,
      'com.docker.compose.service': 'web',
      'com.docker.compose.container-number': '2',
      'com.docker.compose.oneoff': 'False',
      'com.docker.compose.config-hash': 'abc',
      'com.docker.compose.project.working_dir': '/srv/x',
    },
    HostConfig: {
      RestartPolicy: { Name: 'on-failure', MaximumRetryCount: 1 },
      Binds: [`${world.name('data')}:/data:ro`],
    },
  })
  await until(
    mirror,
    () => mirror.containers.get(id)?.state === 'exited' && mirror.containers.get(id)?.restartCount === 1,
  )
  const entry = mirror.containers.get(id)
  assert.ok(entry)
  assert.deepEqual(
    { ...entry, createdAt: '', startedAt: '', finishedAt: '', imageId: '', labels: {}, networks: [], mounts: [] },
    {
      id,
      name: world.name('full'),
      image: world.image,
      imageId: '',
      state: 'exited',
      health: 'none',
      exitCode: 4,
      error: '',
      oomKilled: false,
      restartCount: 1,
      restartPolicy: 'on-failure',
      tty: true,
      pid: 0,
      networkMode: entry.networkMode,
      createdAt: '',
      startedAt: '',
      finishedAt: '',
      ports: [],
      networks: [],
      mounts: [],
      labels: {},
      compose: {
        project: world.prefix,
        service: 'web',
        number: 2,
        oneoff: false,
        configHash: 'abc',
        workingDir: '/srv/x',
      },
    },
  )
  assert.ok(mirror.images.has(entry.imageId))
  assert.deepEqual(
    entry.networks.map(({ name }) => name),
    ['bridge'],
  )
  assert.deepEqual(
    entry.mounts.map(({ source, ...mount }) => mount),
    [{ type: 'volume', name: world.name('data'), destination: '/data', readOnly: true }],
  )
  // Which is later the engine does not promise for a process that ends before its start was noted down.
  assert.ok(Date.parse(entry.startedAt ?? '') > 0 && Date.parse(entry.finishedAt ?? '') > 0)
  assert.deepEqual(mirror.project(world.prefix), [entry])
  await world.engine.containers.remove(id)
  await until(mirror, () => !mirror.containers.has(id))
  assert.deepEqual(mirror.project(world.prefix), [])
})

test('ports that are published, and health that changes, are seen', async () => {
  const { mirror } = await proxied()
  const id = await world.run('health', 'sleep 0.5; touch /ok; sleep 60', {
    Healthcheck: { Test: ['CMD', 'test', '-e', '/ok'], Interval: 300_000_000, Retries: 100 },
    ExposedPorts: { '80/tcp': {}, '81/udp': {} },
    HostConfig: { PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }] } },
  })
  await until(mirror, () => mirror.containers.get(id)?.health === 'starting')
  await until(mirror, () => mirror.containers.get(id)?.health === 'healthy')
  const ports = mirror.containers.get(id)?.ports ?? []
  assert.deepEqual(
    ports.map(({ hostIp, containerPort, protocol }) => `${hostIp} ${containerPort}/${protocol}`).sort(),
    ['127.0.0.1 80/tcp', 'null 81/udp'],
  )
  assert.ok(ports.find(({ containerPort }) => containerPort === 80)?.hostPort)
  await world.engine.containers.remove(id, { force: true })
})

test('commands inside containers and passing health checks cost no call to the engine', async () => {
  const id = await world.run('noise', 'sleep 60', { Healthcheck: { Test: ['CMD', 'true'], Interval: 100_000_000 } })
  const { mirror, proxy } = await proxied()
  await until(mirror, () => mirror.containers.get(id)?.health === 'healthy')
  await quiet()
  const before = proxy.requests.length
  await world.engine.exec.run(id, { command: ['true'] })
  await quiet()
  await quiet()
  const about = proxy.requests.slice(before).filter(line => line.includes(id))
  assert.deepEqual(about, [])
  await world.engine.containers.remove(id, { force: true })
})

test('a change from outside is told once, with what was before and after, and soon', async () => {
  const { mirror } = await proxied()
  const id = await world.run('told', 'trap "exit 0" TERM; while :; do sleep 0.02; done')
  await until(mirror, () => mirror.containers.get(id)?.state === 'running')
  await quiet()
  const changes: MirrorChange[] = []
  mirror.onChange(change => changes.push(change))
  await world.engine.containers.stop(id)
  const stopped = performance.now()
  await until(mirror, () => mirror.containers.get(id)?.state === 'exited')
  assert.ok(performance.now() - stopped < 1000)
  const own = changes.flatMap(({ containers }) => containers).filter(({ after }) => after?.id === id)
  assert.deepEqual(
    own.map(({ before, after }) => `${before?.state} ${after?.state}`),
    ['running exited'],
  )
  await world.engine.containers.rename(id, world.name('told-anew'))
  await until(mirror, () => mirror.containers.get(id)?.name === world.name('told-anew'))
  await world.engine.containers.remove(id)
})

test('volumes, networks and images follow what happens to them', async () => {
  const { mirror } = await proxied()
  const [volume, network, tag] = [world.name('v'), world.name('n'), `${world.prefix}/image:1`]
  await world.engine.volumes.create({ name: volume, labels: { x: 'y' } })
  const networkId = await world.engine.networks.create({ name: network, internal: true })
  await world.engine.images.tag(world.image, tag)
  await until(
    mirror,
    () => mirror.volumes.has(volume) && mirror.networks.has(networkId) && findImage(mirror.images, tag) !== undefined,
  )
  assert.deepEqual(mirror.volumes.get(volume)?.labels, { x: 'y' })
  const { name, driver, internal, subnets } = mirror.networks.get(networkId) ?? {}
  assert.deepEqual([name, driver, internal, subnets?.length], [network, 'bridge', true, 1])

  const id = await world.run('joins', 'sleep 60')
  await world.engine.networks.connect(networkId, id)
  const names = () => mirror.containers.get(id)?.networks.map(each => each.name)
  await until(mirror, () => names()?.includes(network) ?? false)
  await world.engine.containers.remove(id, { force: true })
  await world.engine.volumes.remove(volume)
  await world.engine.networks.remove(networkId)
  await world.engine.images.remove(tag)
  await until(
    mirror,
    () => !mirror.volumes.has(volume) && !mirror.networks.has(networkId) && !findImage(mirror.images, tag),
  )
})

test('the engine goes away and comes back newer: the mirror says so, reconnects and has what happened meanwhile', async () => {
  const kept = await world.run('kept', 'sleep 60')
  const gone = await world.run('gone', 'sleep 60')
  const { mirror, proxy, engine } = await proxied()
  await proxy.stop()
  await until(mirror, () => mirror.state === 'down')
  assert.match(mirror.reason ?? '', /engine\.sock/)
  assert.equal(mirror.containers.get(kept)?.state, 'running', 'what was last known stays readable')
  await assert.rejects(mirror.refresh([kept]), error => error instanceof Failure && error.code === 'ENGINE_UNAVAILABLE')

  await world.engine.containers.remove(gone, { force: true })
  await world.engine.containers.kill(kept)
  const added = await world.run('added', 'sleep 60')
  await quiet()
  proxy.claim('1.46', '1.44')
  await proxy.start()
  const told: MirrorChange[] = []
  const isOurs = (one: ContainerEntry | undefined) => one !== undefined && [kept, gone, added].includes(one.id)
  mirror.onChange(change => {
    if (change.state || change.containers.some(one => isOurs(one.before ?? one.after))) told.push(change)
  })
  await until(mirror, () => mirror.state === 'up')
  assert.equal((await engine.version()).api, '1.46')
  const states = [kept, gone, added].map(id => mirror.containers.get(id)?.state)
  assert.deepEqual(states, ['exited', undefined, 'running'])
  assert.equal(told.length, 1, 'all that happened meanwhile is told together')
  assert.equal(told[0]?.state, true)
  await Promise.all([kept, added].map(id => world.engine.containers.remove(id, { force: true })))
  await until(mirror, () => !mirror.containers.has(kept) && !mirror.containers.has(added))
})

test('an engine that hangs is noticed', async () => {
  const { mirror, proxy } = await proxied({ heartbeatMs: 200 })
  proxy.hang(true)
  await until(mirror, () => mirror.state === 'down')
  assert.match(mirror.reason ?? '', /did not answer within/)
})

test('a missed event is made up for by the sweep', async () => {
  const { mirror, engine } = await proxied({ heartbeatMs: 30, sweepMs: 60 })
  const id = await world.run('swept', 'sleep 60')
  await until(mirror, () => mirror.containers.get(id)?.state === 'running')
  const real = mirror.containers.get(id)
  assert.ok(real)
  const lie: ContainerEntry = { ...real, state: 'paused' }
  assert.ok(mirror.containers instanceof Map)
  mirror.containers.set(id, lie)
  await until(mirror, () => mirror.containers.get(id)?.state === 'running')
  await engine.containers.remove(id, { force: true })
})

test('a refresh makes the mirror exact at once, by id and by project', async () => {
  const { mirror, proxy } = await proxied()
  const labels = { 'com.docker.compose.project': world.prefix, 'com.docker.compose.service': 'a' }
  const id = await world.run('exact', 'sleep 60', { Labels: labels })
  await mirror.refresh([id])
  assert.equal(mirror.containers.get(id)?.state, 'running')
  await world.engine.containers.kill(id)
  await mirror.refreshProject(world.prefix)
  assert.deepEqual(
    mirror.project(world.prefix).map(({ state }) => state),
    ['exited'],
  )
  await world.engine.containers.remove(id)
  const volume = await world.engine.volumes.create({ name: world.name('exact') })
  await mirror.refreshProject(world.prefix)
  assert.deepEqual(mirror.project(world.prefix), [])
  assert.ok(mirror.volumes.has(volume.Name))
  await world.engine.volumes.remove(volume.Name)

  await quiet()
  const before = proxy.requests.length
  await Promise.all(Array.from({ length: 50 }, () => mirror.refreshVolumes()))
  const asked = proxy.requests.slice(before).filter(line => line.includes('/volumes'))
  assert.ok(asked.length <= 2, 'wishes for the same are joined')
})

test('a container and an image are found by name, id and a short id that only one has', async () => {
  const { mirror } = await proxied()
  const id = await world.run('found', 'sleep 60')
  await mirror.refresh([id])
  for (const asked of [id, id.slice(0, 12), world.name('found')])
    assert.equal(findContainer(mirror.containers, asked)?.id, id)
  for (const asked of ['', 'zzz', id.slice(0, 3)]) assert.equal(findContainer(mirror.containers, asked), undefined)
  const image = findImage(mirror.images, world.image)
  assert.ok(image)
  for (const asked of [image.id, image.id.slice(7, 19), `docker.io/${world.image}`]) {
    assert.equal(findImage(mirror.images, asked)?.id, image.id)
  }
  await world.engine.containers.remove(id, { force: true })
})

test('without an engine the mirror is down with the reason, and closes at once', async () => {
  const engine = openEngine('/nonexistent/engine.sock')
  const mirror = mirrorEngine(engine)
  await mirror.ready
  assert.equal(mirror.state, 'down')
  assert.match(mirror.reason ?? '', /no container engine at unix:\/\/\/nonexistent/)
  await mirror.close()
})
