// The steps that change the engine directly: containers, images, volumes and networks, each by its name.

import { Failure, fail } from '../../core/failure.ts'
import { type Change, stepKind, type World } from '../../core/step.ts'
import { requireFetchable } from '../registry/guard.ts'
import { registryOf } from '../registry/reference.ts'
import { EngineError } from './client.ts'
import type { Engine } from './engine.ts'
import type { ContainerEntry, ContainerState } from './entries.ts'
import type { RegistryAuth } from './images.ts'
import { logTail } from './log-tail.ts'
import { findImage } from './lookup.ts'
import type { EngineMirror } from './mirror.ts'
import type { NetworkSpec } from './networks.ts'
import type { VolumeSpec } from './volumes.ts'

declare module '../../core/step.ts' {
  interface World {
    engine: Engine
    mirror: EngineMirror
    /** Opens a stored credential for one pull. What it returns is never written anywhere. */
    registryAuth(credential: string): RegistryAuth
  }
}

/** A container as the decision saw it. */
export interface Target {
  id: string
  name: string
  state: ContainerState
}

interface WasIn {
  state: ContainerState | undefined
}

/** Starts a container, or wakes a paused one. */
export const startContainer = stepKind<Target, WasIn, { name: string }>('container.start', {
  describe: ({ name, state }) => ({ ...runs(name, state), reason: `it is ${state}` }),
  before: wasIn,
  async perform(world, { id, name, state }, { signal }) {
    const { containers } = world.engine
    const starting = state === 'paused' ? containers.unpause(id, { signal }) : containers.start(id, { signal })
    await starting.catch(startFailure(name))
    await requireRunning(world, id, name)
    return { name }
  },
  end: { undo: putBack },
})

/** Stops a container, after the grace period it has. */
export const stopContainer = stepKind<Target, WasIn, { name: string }>('container.stop', {
  describe: ({ name, state }) => ({
    type: 'container',
    id: name,
    action: 'update',
    before: { state },
    after: { state: 'exited' },
    reason: 'it is stopped',
  }),
  before: wasIn,
  async perform(world, { id, name, state }, { signal }) {
    await stop(world, id, state, signal)
    const left = world.mirror.containers.get(id)
    if (left && isUp(left.state)) fail('UPSTREAM_FAILED', `Container "${name}" did not stop: it is ${left.state}.`)
    return { name }
  },
  end: { undo: putBack },
})

/** Restarts a container; a stopped one is started. */
export const restartContainer = stepKind<Target, WasIn, { name: string }>('container.restart', {
  describe: ({ name, state }) => ({ ...runs(name, state), reason: 'it is restarted' }),
  before: wasIn,
  async perform(world, { id, name, state }, { signal }) {
    if (state === 'paused') await world.engine.containers.unpause(id, { signal })
    await world.engine.containers.restart(id, { signal, deadlineMs: LONGEST_GRACE_MS }).catch(startFailure(name))
    await requireRunning(world, id, name)
    return { name }
  },
  end: { undo: putBack },
})

/** Removes a stopped container. Its volumes stay, the nameless ones too. */
export const removeContainer = stepKind<Target>('container.remove', {
  describe: ({ name, state }) => ({ type: 'container', id: name, action: 'delete', before: { state } }),
  async perform({ engine, mirror }, { id, name }) {
    await engine.containers.remove(id).catch((error: unknown) => {
      const { status, said } = saidBy(error)
      if (status === 409 && /already in progress/.test(said)) return
      if (status === 409) fail('CONTAINER_RUNNING', `Container "${name}" runs: stop it first.`, undefined, error)
      if (status !== 404) throw error
    })
    await mirror.refresh([id])
  },
  end: 'repeatable',
})

export interface Pull {
  image: string
  /** The id of the credential to log in with; it is opened only while pulling. */
  credential?: string | null
  /** The image is there already, and may be another one afterwards. */
  present?: boolean
}

/** Gets an image, or looks whether there is a newer one under its name. Nothing to undo: an image more harms nobody. */
export const pullImage = stepKind<Pull>('image.pull', {
  describe: ({ image, present }) => ({ type: 'image', id: image, action: present ? 'update' : 'create' }),
  async perform({ engine, mirror, registryAuth }, { image, credential }, { progress, signal }) {
    const registry = registryOf(image)
    await requireFetchable(registry)
    const layers = new Map<string, { current: number; total: number }>()
    const pulling = engine.images.pull(image, {
      auth: credential ? { ...registryAuth(credential), serveraddress: registry } : undefined,
      signal,
      onProgress: ({ layer, status, current = 0, total }) => {
        if (layer && total) layers.set(layer, { current, total })
        progress(share(layers), `pulling ${image}: ${status}`)
      },
    })
    await pulling.catch((error: unknown) => {
      signal.throwIfAborted()
      throw pullFailure(image, registry, error)
    })
    await mirror.refreshImages()
    if (!findImage(mirror.images, image))
      fail('UPSTREAM_FAILED', `"${image}" was pulled, but the engine does not have it.`)
  },
  end: 'harmless',
})

export interface ImageRemoval {
  id: string
  /** The names that go; with the last one goes the image. */
  names: string[]
  force: boolean
}

export const removeImage = stepKind<ImageRemoval>('image.remove', {
  describe: ({ names }) => names.map((id): Change => ({ type: 'image', id, action: 'delete' })),
  async perform({ engine, mirror }, { names, force }) {
    for (const name of names) {
      await engine.images.remove(name, { force }).catch((error: unknown) => {
        const { status, said } = saidBy(error)
        if (status === 409) fail('IN_USE', `Image "${name}" is in use: ${said}.`, undefined, error)
        if (status !== 404) throw error
      })
    }
    await mirror.refreshImages()
  },
  end: 'repeatable',
})

export const createVolume = stepKind<Required<VolumeSpec>, { existed: boolean }>('volume.create', {
  describe: ({ name, driver, driverOptions, labels }) => ({
    type: 'volume',
    id: name,
    action: 'create',
    // An option may hold the password of a share.
    after: { driver, driver_opts: Object.keys(driverOptions), labels },
    ...(Object.keys(driverOptions).length > 0 ? { sensitive: true } : {}),
  }),
  before: async ({ mirror }, { name }) => {
    await mirror.refreshVolumes()
    return { existed: mirror.volumes.has(name) }
  },
  async perform({ engine, mirror }, spec, { before: { existed } }) {
    // The engine would answer with the one that is there.
    if (existed) fail('ALREADY_EXISTS', `There is a volume "${spec.name}" already.`)
    await engine.volumes.create(spec).catch((error: unknown) => {
      throw refusedBy(error, `The engine could not create volume "${spec.name}"`)
    })
    await mirror.refreshVolumes()
  },
  end: {
    async undo({ engine, mirror }, { name }, { existed }) {
      if (existed) return
      await engine.volumes.remove(name).catch(unlessGone)
      await mirror.refreshVolumes()
    },
  },
})

/** Removes a volume with all its data: asked for by name, and for good. */
export const removeVolume = stepKind<{ volume: string }>('volume.remove', {
  describe: ({ volume }) => ({ type: 'volume', id: volume, action: 'delete', reason: 'with all its data, for good' }),
  async perform({ engine, mirror }, { volume }) {
    await engine.volumes.remove(volume).catch((error: unknown) => {
      const { status } = saidBy(error)
      if (status === 409) fail('IN_USE', `Volume "${volume}" is still in use, and was not removed.`, undefined, error)
      if (status !== 404) throw error
    })
    await mirror.refreshVolumes()
  },
  end: 'repeatable',
})

export const createNetwork = stepKind<NetworkSpec & { labels: Record<string, string> }, { existed: boolean }>(
  'network.create',
  {
    describe: ({ name, ...after }) => ({ type: 'network', id: name, action: 'create', after }),
    before: async ({ engine }, { name }) => ({ existed: (await networkIds(engine, name)).length > 0 }),
    async perform({ engine, mirror }, spec, { before: { existed } }) {
      if (existed) fail('ALREADY_EXISTS', `There is a network "${spec.name}" already.`)
      await engine.networks.create(spec).catch((error: unknown) => {
        const { said } = saidBy(error)
        if (/overlaps/i.test(said))
          fail('CONFLICT', `The subnet ${spec.subnet} overlaps with that of another network.`, undefined, error)
        throw refusedBy(error, `The engine could not create network "${spec.name}"`)
      })
      await mirror.refreshNetworks()
    },
    end: {
      async undo({ engine, mirror }, { name }, { existed }) {
        if (existed) return
        for (const id of await networkIds(engine, name)) await engine.networks.remove(id).catch(unlessGone)
        await mirror.refreshNetworks()
      },
    },
  },
)

export const removeNetwork = stepKind<{ id: string; name: string }>('network.remove', {
  describe: ({ name }) => ({ type: 'network', id: name, action: 'delete' }),
  async perform({ engine, mirror }, { id, name }) {
    await engine.networks.remove(id).catch((error: unknown) => {
      const { status, said } = saidBy(error)
      if (/active endpoints|in use/.test(said))
        fail('IN_USE', `Network "${name}" is still in use, and was not removed.`, undefined, error)
      if (status !== 404) throw error
    })
    await mirror.refreshNetworks()
  },
  end: 'repeatable',
})

export const engineKinds = [
  startContainer,
  stopContainer,
  restartContainer,
  removeContainer,
  pullImage,
  removeImage,
  createVolume,
  removeVolume,
  createNetwork,
  removeNetwork,
] as const

/** A container may be given this long to end by itself before it is killed. */
const LONGEST_GRACE_MS = 660_000

const isUp = (state: ContainerState): boolean => state === 'running' || state === 'restarting' || state === 'paused'

const runs = (id: string, state: ContainerState): Change => ({
  type: 'container',
  id,
  action: 'run',
  before: { state },
  after: { state: 'running' },
})

async function wasIn({ mirror }: World, { id }: Target): Promise<WasIn> {
  await mirror.refresh([id])
  return { state: mirror.containers.get(id)?.state }
}

/** Back to the state it was in, from whatever it is in now. */
async function putBack(
  world: World,
  { id }: Target,
  before: WasIn,
  { signal }: { signal: AbortSignal },
): Promise<void> {
  const { engine, mirror } = world
  await mirror.refresh([id])
  const now = mirror.containers.get(id)?.state
  if (now === undefined || before.state === undefined || now === before.state) return
  if (!isUp(before.state)) await stop(world, id, now, signal)
  else if (!isUp(now)) await engine.containers.start(id, { signal })
  if (before.state === 'paused') await engine.containers.pause(id, { signal })
  await mirror.refresh([id])
}

async function stop({ engine, mirror }: World, id: string, state: ContainerState, signal: AbortSignal): Promise<void> {
  if (state === 'paused') await engine.containers.unpause(id, { signal })
  await engine.containers.stop(id, { signal, deadlineMs: LONGEST_GRACE_MS })
  await mirror.refresh([id])
}

/** It runs, or it was a one-shot that has done its work. */
async function requireRunning({ engine, mirror }: World, id: string, name: string): Promise<void> {
  await mirror.refresh([id])
  const seen = mirror.containers.get(id)
  if (!seen || seen.state === 'running' || (seen.state === 'exited' && seen.exitCode === 0)) return
  throw new Failure('UPSTREAM_FAILED', `Container "${name}" was started, but ${endOf(seen)}.`, {
    state: seen.state,
    exit_code: seen.exitCode,
    log: await logTail(engine, seen, 20),
  })
}

const startFailure =
  (name: string) =>
  (error: unknown): never => {
    throw refusedBy(error, `Container "${name}" could not be started`)
  }

const endOf = ({ state, exitCode, error }: ContainerEntry): string =>
  error || (exitCode === null ? `is ${state}` : `is ${state} with code ${exitCode}`)

/** In the words of the registry, which the engine passes on. */
function pullFailure(image: string, registry: string, error: unknown): unknown {
  if (!(error instanceof EngineError)) return error
  const { said } = error
  if (/Client\.Timeout|deadline exceeded|i\/o timeout|handshake timeout/i.test(said)) {
    return new Failure(
      'TIMEOUT',
      `The registry ${registry} of "${image}" did not answer in time: ${said}`,
      undefined,
      error,
    )
  }
  const hint = /unauthorized|no basic auth|denied|authentication required/i.test(said)
    ? ' Check the credential for this registry.'
    : ''
  return new Failure(
    'UPSTREAM_FAILED',
    `"${image}" could not be pulled from ${registry}: ${said}.${hint}`,
    undefined,
    error,
  )
}

function refusedBy(error: unknown, what: string): unknown {
  return error instanceof EngineError
    ? new Failure('UPSTREAM_FAILED', `${what}: ${error.said}.`, undefined, error)
    : error
}

function saidBy(error: unknown): { status: number; said: string } {
  return error instanceof EngineError ? { status: error.engineStatus, said: error.said } : { status: 0, said: '' }
}

function unlessGone(error: unknown): void {
  if (saidBy(error).status !== 404) throw error
}

async function networkIds(engine: Engine, name: string): Promise<string[]> {
  const listed = await engine.networks.list({ name: [name] })
  return listed.filter(({ Name }) => Name === name).map(({ Id }) => Id)
}

function share(layers: ReadonlyMap<string, { current: number; total: number }>): number {
  const [current, total] = [...layers.values()].reduce(([c, t], layer) => [c + layer.current, t + layer.total], [0, 0])
  return total === 0 ? 0 : Math.floor((current / total) * 100)
}
