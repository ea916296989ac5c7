import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { AnyKind, World } from '../../core/step.ts'
import { type TestEngine, testEngine } from '../../testing/engine.ts'
import { authHeader } from './images.ts'
import { type EngineMirror, mirrorEngine } from './mirror.ts'
import {
  createNetwork,
  createVolume,
  pullImage,
  removeContainer,
  restartContainer,
  startContainer,
  stopContainer,
  type Target,
} from './steps.ts'

let engineWorld: TestEngine
let mirror: EngineMirror
let world: World
before(async () => {
  engineWorld = testEngine()
  mirror = mirrorEngine(engineWorld.engine)
  await mirror.ready
  world = { engine: engineWorld.engine, mirror } as unknown as World
})
after(async () => {
  await mirror.close()
  await engineWorld.cleanup()
})

const { signal } = new AbortController()

/** Performs a step, and gives what undoes it. */
async function perform(kind: unknown, data: unknown): Promise<() => Promise<void>> {
  const { before: look, perform: act, end } = kind as AnyKind
  const before = await look?.(world, data)
  await act(world, data, { before, signal, upload: undefined, now: new Date(), progress: () => {} })
  return async () => {
    if (typeof end === 'object') await end.undo(world, data, before, { signal })
  }
}

async function target(suffix: string): Promise<Target & { now(): Promise<string> }> {
  const id = await engineWorld.run(suffix, 'sleep 3600', { HostConfig: { Init: true }, StopTimeout: 1 })
  await mirror.refresh([id])
  const now = async () => (await engineWorld.engine.containers.inspect(id)).State.Status
  return { id, name: engineWorld.name(suffix), state: 'running', now }
}

test('what a container step did is undone to the state before, whichever that was', async () => {
  const { now, ...running } = await target('undo')
  const restart = await perform(stopContainer, running)
  assert.equal(await now(), 'exited')
  await restart()
  assert.equal(await now(), 'running')

  await (await perform(restartContainer, running))()
  assert.equal(await now(), 'running')

  await engineWorld.engine.containers.pause(running.id)
  const pause = await perform(stopContainer, { ...running, state: 'paused' })
  assert.equal(await now(), 'exited')
  await pause()
  assert.equal(await now(), 'paused')

  const pauseAgain = await perform(startContainer, { ...running, state: 'paused' })
  assert.equal(await now(), 'running')
  await pauseAgain()
  assert.equal(await now(), 'paused')

  await perform(stopContainer, { ...running, state: 'paused' })
  const stopAgain = await perform(startContainer, { ...running, state: 'exited' })
  assert.equal(await now(), 'running')
  await stopAgain()
  assert.equal(await now(), 'exited')

  const stopOnce = await perform(restartContainer, { ...running, state: 'exited' })
  assert.equal(await now(), 'running')
  await stopOnce()
  assert.equal(await now(), 'exited')
})

test('a removal can be repeated, and never takes what runs', async () => {
  const { now, ...running } = await target('gone')
  await assert.rejects(perform(removeContainer, running), { code: 'CONTAINER_RUNNING' })
  assert.equal(await now(), 'running')
  await perform(stopContainer, running)
  await perform(removeContainer, running)
  await perform(removeContainer, running)
  assert.equal(mirror.containers.has(running.id), false)
})

test('a volume and a network that were made are unmade, and one that was there is never touched', async () => {
  const volume = { name: engineWorld.name('v'), driver: 'local', driverOptions: {}, labels: {} }
  const unmake = await perform(createVolume, volume)
  assert.ok(mirror.volumes.has(volume.name))
  await assert.rejects(perform(createVolume, volume), { code: 'ALREADY_EXISTS' })
  assert.ok(mirror.volumes.has(volume.name))
  await unmake()
  assert.ok(!mirror.volumes.has(volume.name))
  await unmake()

  const network = { name: engineWorld.name('n'), labels: {} }
  const named = () => [...mirror.networks.values()].filter(({ name }) => name === network.name).length
  const disconnect = await perform(createNetwork, network)
  assert.equal(named(), 1)
  await assert.rejects(perform(createNetwork, network), { code: 'ALREADY_EXISTS' })
  await disconnect()
  assert.equal(named(), 0)
})

test('the header with a login has its padding, without which Docker ignores it', () => {
  for (const password of ['a', 'ab', 'abc', '\u00fb\u00ff?>']) {
    const header = authHeader({ username: 'u', password })
    assert.match(header, /^[A-Za-z0-9_-]+={0,2}$/)
    assert.equal(header.length % 4, 0)
  }
})

test('nothing is pulled from a metadata address, whoever asks', async () => {
  await assert.rejects(perform(pullImage, { image: '169.254.169.254/latest/meta-data:1' }), {
    code: 'VALIDATION_FAILED',
  })
})

test('a pull from where nothing listens fails in the words of the engine', async () => {
  await assert.rejects(perform(pullImage, { image: '127.0.0.1:1/team/app:1' }), {
    code: 'UPSTREAM_FAILED',
    message: /could not be pulled from 127.0.0.1:1/,
  })
})
