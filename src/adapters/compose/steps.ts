// The steps that act through Compose: bringing a project up, with an undo that converges to what was there, and taking it down.

import { asFailure, Failure } from '../../core/failure.ts'
import { type Change, stepKind, type World } from '../../core/step.ts'
import { logTail } from '../container-engine/log-tail.ts'
import type { Compose } from './compose.ts'
import { type FailedService, LONG_SETTLE_MS, runsOf, untilReady } from './ready.ts'

declare module '../../core/step.ts' {
  interface World {
    compose: Compose
    /** Deployments that are being changed at this moment. */
    deploying: Set<string>
  }
}

/** One container, network or volume that a step will touch, and why. */
export interface Expected {
  type: 'container' | 'network' | 'volume'
  id: string
  action: 'create' | 'replace' | 'delete' | 'run'
  cause: string
}

/** Everything that undo needs to bring the old version back. It never relies on files that are still new. */
export interface Old {
  files: { path: string; content: string | null }[]
  /** The image ids behind the tags, for a tag that has moved meanwhile. */
  images: { tag: string; id: string }[]
  /** The containers there were, and which of them ran. */
  containers: string[]
  running: string[]
}

export interface Up {
  deployment: string
  folder: string
  project: string
  /** All when null. */
  services: string[] | null
  /** How many containers of which service must be seen to run. */
  awaited: Record<string, number>
  expect: Expected[]
  readySeconds: number
  /** How long a container without a health check must be seen to run; a step stored by an older version has none. */
  settleMs?: number
  old: Old
}

export const composeUp = stepKind<Up>('compose.up', {
  describe: ({ expect }) => expect.map(changeOf),
  perform: (world, up, { signal, progress }) =>
    whileDeploying(world, up.deployment, async () => {
      const { compose, mirror } = world
      const ranBefore = runsOf(mirror, up.project)
      try {
        await removeSurplus(world, up, signal)
        await compose.up(up.folder, {
          ...(up.services ? { services: up.services } : {}),
          removeOrphans: up.services === null,
          timeoutMs: up.readySeconds * 1000 + 60_000,
          signal,
          onProgress: ({ id, status }) => progress(10, `${id}: ${status}`),
        })
        await untilReady(mirror, {
          project: up.project,
          services: up.awaited,
          ranBefore,
          settleMs: up.settleMs ?? LONG_SETTLE_MS,
          limitMs: up.readySeconds * 1000,
          signal,
          onProgress: (ready, of, phase) => progress(30 + (of === 0 ? 70 : (ready / of) * 70), phase),
        })
      } catch (thrown) {
        signal.throwIfAborted()
        throw await told(world, up, thrown)
      }
    }),
  end: {
    undo: (world, up, _before, { signal }) =>
      whileDeploying(world, up.deployment, async () => {
        const { compose, engine, mirror } = world
        const timeoutMs = up.readySeconds * 1000 + 60_000
        if (up.old.containers.length === 0) {
          await compose.down(up.folder, { removeOrphans: true, timeoutMs, signal })
          await restoreFiles(world, up)
          await mirror.refreshProject(up.project)
          return
        }
        await restoreFiles(world, up)
        for (const { tag, id } of up.old.images) await engine.images.tag(id, tag)
        await compose.up(up.folder, { noStart: true, removeOrphans: true, timeoutMs, signal })
        await mirror.refreshProject(up.project)
        await converge(world, up)
        await mirror.refreshProject(up.project)
      }),
  },
})

export interface Down {
  deployment: string
  folder: string
  project: string
  expect: Expected[]
  running: string[]
}

/** Removes the containers and networks of a project, never a volume. */
export const composeDown = stepKind<Down>('compose.down', {
  describe: ({ expect }) => expect.map(changeOf),
  perform: (world, down, { signal, progress }) =>
    whileDeploying(world, down.deployment, async () => {
      const { compose, mirror } = world
      await compose.down(down.folder, {
        removeOrphans: true,
        timeoutMs: 180_000,
        signal,
        onProgress: ({ id, status }) => progress(50, `${id}: ${status}`),
      })
      await mirror.refreshProject(down.project)
    }),
  end: {
    undo: (world, down, _before, { signal }) =>
      whileDeploying(world, down.deployment, async () => {
        const { compose, mirror } = world
        await compose.up(down.folder, { noStart: down.running.length === 0, timeoutMs: 180_000, signal })
        await mirror.refreshProject(down.project)
      }),
  },
})

export interface Stop {
  deployment: string
  folder: string
  project: string
  services: string[] | null
  /** Those that run now. */
  containers: string[]
}

export const composeStop = stepKind<Stop>('compose.stop', {
  describe: ({ containers }) =>
    containers.map(
      (id): Change => ({
        type: 'container',
        id,
        action: 'update',
        after: { state: 'exited' },
        reason: 'it is stopped',
      }),
    ),
  perform: (world, stop, { signal, progress }) =>
    whileDeploying(world, stop.deployment, async () => {
      const { compose, mirror } = world
      await compose.stop(stop.folder, {
        ...(stop.services ? { services: stop.services } : {}),
        timeoutMs: 300_000,
        signal,
        onProgress: ({ id, status }) => progress(50, `${id}: ${status}`),
      })
      await mirror.refreshProject(stop.project)
      const left = mirror
        .project(stop.project)
        .filter(one => stop.containers.includes(one.name) && one.state === 'running')
      if (left.length > 0)
        throw new Failure('DEPLOY_FAILED', `It did not stop: ${left.map(one => one.name).join(', ')}.`)
    }),
  end: {
    undo: async ({ engine, mirror }, { project, containers }) => {
      await mirror.refreshProject(project)
      for (const one of mirror.project(project)) {
        if (containers.includes(one.name) && one.state !== 'running') await engine.containers.start(one.id)
      }
      await mirror.refreshProject(project)
    },
  },
})

export interface Restart {
  deployment: string
  project: string
  containers: string[]
  awaited: Record<string, number>
  readySeconds: number
  settleMs?: number
}

/** Restarts containers as they are. There is nothing to put back: they are what they were. */
export const restartContainers = stepKind<Restart>('containers.restart', {
  describe: ({ containers }) =>
    containers.map((id): Change => ({ type: 'container', id, action: 'run', reason: 'it is restarted' })),
  perform: (world, restart, { signal, progress }) =>
    whileDeploying(world, restart.deployment, async () => {
      const { engine, mirror } = world
      const ranBefore = runsOf(mirror, restart.project)
      for (const one of mirror.project(restart.project).filter(({ name }) => restart.containers.includes(name))) {
        signal.throwIfAborted()
        progress(20, `restarting ${one.name}`)
        await engine.containers.restart(one.id, { signal })
      }
      await untilReady(mirror, {
        project: restart.project,
        services: restart.awaited,
        ranBefore,
        settleMs: restart.settleMs ?? LONG_SETTLE_MS,
        limitMs: restart.readySeconds * 1000,
        signal,
        onProgress: (ready, of, phase) => progress(30 + (of === 0 ? 70 : (ready / of) * 70), phase),
      })
    }),
  end: 'harmless',
})

function changeOf({ type, id, action, cause }: Expected): Change {
  return { type, id, action, reason: cause }
}

/** Which of several alike goes is for the plan to say: left to Compose, it depends on its version. */
async function removeSurplus({ engine, mirror }: World, up: Up, signal: AbortSignal): Promise<void> {
  const surplus = new Set(
    up.expect.filter(one => one.type === 'container' && one.action === 'delete').map(({ id }) => id),
  )
  for (const one of mirror.project(up.project)) {
    if (!surplus.has(one.name)) continue
    if (one.state === 'running' || one.state === 'restarting') await engine.containers.stop(one.id, { signal })
    await engine.containers.remove(one.id, { signal })
  }
}

/** What ran runs again, what did not run is stopped. */
async function converge({ engine, mirror }: World, up: Up): Promise<void> {
  for (const one of mirror.project(up.project)) {
    const ran = up.old.running.includes(one.name)
    if (ran && one.state !== 'running') await engine.containers.start(one.id)
    if (!ran && (one.state === 'running' || one.state === 'restarting')) await engine.containers.stop(one.id)
  }
}

async function restoreFiles({ files }: World, up: Up): Promise<void> {
  for (const { path, content } of up.old.files) {
    const now = await files.read(path)
    if ((now?.content.toString() ?? null) === content) continue
    if (content === null) await files.remove(path)
    else await files.write(path, content)
  }
}

/** Says what the failing containers said last, before undo takes them away. */
async function told(world: World, up: Up, thrown: unknown): Promise<Failure> {
  const failure = asFailure(thrown)
  if (failure.code === 'INTERNAL' || failure.code === 'ENGINE_UNAVAILABLE') return failure
  await world.mirror.refreshProject(up.project).catch(() => {})
  const known = (failure.details as { services?: FailedService[] } | undefined)?.services ?? []
  const services = await Promise.all(
    known.map(async one => {
      const container = world.mirror.project(up.project).find(({ name }) => name === one.container)
      return { ...one, ...(container ? { log: await logTail(world.engine, container, 20) } : {}) }
    }),
  )
  const reason = failure.code === 'DEPLOY_FAILED' ? (failure.details as { reason: string }).reason : failure.message
  const sentence =
    failure.code === 'DEPLOY_FAILED' ? failure.message : `The deployment did not come up: ${failure.message}`
  return new Failure('DEPLOY_FAILED', sentence, { reason, services }, failure.cause)
}

async function whileDeploying(world: World, deployment: string, work: () => Promise<void>): Promise<void> {
  world.deploying.add(deployment)
  try {
    await work()
  } finally {
    world.deploying.delete(deployment)
  }
}

export const composeKinds = [composeUp, composeDown, composeStop, restartContainers] as const
