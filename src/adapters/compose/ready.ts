// Waits until the containers of a project are seen to run and to be healthy, or says which one does not and why.

import { Failure } from '../../core/failure.ts'
import type { ContainerEntry } from '../container-engine/entries.ts'
import type { EngineMirror } from '../container-engine/mirror.ts'

export interface Awaited {
  project: string
  /** How many containers of which service must be there. */
  services: Readonly<Record<string, number>>
  /** What ran before the work began and still does: for that there is nothing to wait. */
  ranBefore: ReadonlySet<string>
  /** A container without a health check counts when it was seen to run for so long; one that crashes at once does not pass. */
  settleMs: number
  limitMs: number
  signal: AbortSignal
  onProgress(ready: number, of: number, phase: string): void
}

/** For a new version, for which the old one is given up, and for what has crashed already. */
export const LONG_SETTLE_MS = 1000
/** It tries again by itself; after this many times it is a loop. */
const RESTARTS = 3

/** Asks the engine at each change of the project, and when something has settled: what it answers with was seen. */
export async function untilReady(mirror: EngineMirror, awaited: Awaited): Promise<void> {
  const { project, services, ranBefore, limitMs, signal } = awaited
  const end = performance.now() + limitMs
  const wanted = Object.values(services).reduce((sum, count) => sum + count, 0)
  const settling = settlingOf(awaited)
  let waiting: string[] = []
  while (performance.now() < end) {
    await mirror.refreshProject(project)
    signal.throwIfAborted()
    const containers = mirror
      .project(project)
      .filter(one => one.compose && !one.compose.oneoff && services[one.compose.service] !== undefined)
    refuseFailing(containers, ranBefore)
    const ready = containers.filter(one => isReady(one, settling))
    awaited.onProgress(ready.length, wanted, `${ready.length} of ${wanted} containers are ready`)
    const missing = Object.entries(services).filter(
      ([name, count]) => ready.filter(one => one.compose?.service === name).length < count,
    )
    if (missing.length === 0) return
    waiting = missing.map(([name]) => name)
    const pauses = [end - performance.now(), ...containers.map(settling).filter(left => left > 0)]
    await changed(mirror, project, Math.min(...pauses), signal)
  }
  throw deployFailed(
    waiting.map(service => ({
      service,
      container: '',
      reason: `was not ready within ${Math.round(limitMs / 1000)} s`,
    })),
  )
}

/** The runs of a project at this moment: a container that is started again begins another one. */
export function runsOf(mirror: EngineMirror, project: string): ReadonlySet<string> {
  const running = mirror.project(project).filter(one => one.state === 'running')
  return new Set(running.map(runOf))
}

export interface FailedService {
  service: string
  container: string
  reason: string
}

export function deployFailed(services: FailedService[]): Failure {
  const reason = services
    .map(one => `service ${one.service}: ${one.container} ${one.reason}`.replace('  ', ' '))
    .join('; ')
  return new Failure('DEPLOY_FAILED', `The deployment did not come up: ${reason}.`, { reason, services })
}

/** How long a container still has to run until it has settled. By our own clock: that of the engine may go differently. */
type Settling = (one: ContainerEntry) => number

function settlingOf({ ranBefore, settleMs }: Awaited): Settling {
  const firstSeen = new Map<string, number>()
  return one => {
    if (one.state !== 'running') return Number.POSITIVE_INFINITY
    const run = runOf(one)
    if (ranBefore.has(run)) return 0
    const since = firstSeen.get(run) ?? performance.now()
    firstSeen.set(run, since)
    const needed = one.restartCount > 0 ? Math.max(settleMs, LONG_SETTLE_MS) : settleMs
    return Math.max(0, since + needed - performance.now())
  }
}

const runOf = ({ id, startedAt }: ContainerEntry): string => `${id} ${startedAt}`

function isReady(one: ContainerEntry, settling: Settling): boolean {
  if (one.state === 'exited')
    return one.exitCode === 0 && (one.restartPolicy === 'no' || one.restartPolicy === 'on-failure')
  if (one.state !== 'running') return false
  return one.health === 'none' ? settling(one) === 0 : one.health === 'healthy'
}

function refuseFailing(containers: readonly ContainerEntry[], ranBefore: ReadonlySet<string>): void {
  const failed = containers.flatMap(one => {
    // What it did before the work began is not the fault of this start.
    const reason = failing(one, ranBefore.has(runOf(one)) ? 0 : one.restartCount)
    return reason === undefined ? [] : [{ service: one.compose?.service ?? '', container: one.name, reason }]
  })
  if (failed.length > 0) throw deployFailed(failed)
}

function failing(one: ContainerEntry, restarts: number): string | undefined {
  if (one.health === 'unhealthy') return 'is unhealthy'
  if (one.state === 'dead') return 'is dead'
  if (restarts >= RESTARTS) return `restarts in a loop (exit code ${one.exitCode ?? 'unknown'})`
  if (one.state !== 'exited' || one.exitCode === 0 || one.restartPolicy !== 'no') return undefined
  return `exited with code ${one.exitCode}${one.oomKilled ? ' (out of memory)' : ''}${one.error ? `: ${one.error}` : ''}`
}

/** Resolves at the next change of the project, or after this time. */
function changed(mirror: EngineMirror, project: string, withinMs: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      stop()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, Math.ceil(withinMs))
    const stop = mirror.onChange(({ state, containers }) => {
      if (state || containers.some(({ before, after }) => (after ?? before)?.compose?.project === project)) done()
    })
    signal.addEventListener('abort', done)
  })
}
