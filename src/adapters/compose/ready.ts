// Waits until the containers of a project are seen to run and to be healthy, or says which one does not and why.

import { Failure } from '../../core/failure.ts'
import type { ContainerEntry } from '../container-engine/entries.ts'
import type { EngineMirror } from '../container-engine/mirror.ts'

export interface Awaited {
  project: string
  /** How many containers of which service must be there. */
  services: Readonly<Record<string, number>>
  limitMs: number
  signal: AbortSignal
  onProgress(ready: number, of: number, phase: string): void
}

/** A container without a health check counts when it has run for so long; one that crashes at once does not pass. */
const SETTLE_MS = 1000
/** It tries again by itself; after this many times it is a loop. */
const RESTARTS = 3
const LOOK_MS = 250

export async function untilReady(mirror: EngineMirror, awaited: Awaited): Promise<void> {
  const { project, services, limitMs, signal } = awaited
  const end = performance.now() + limitMs
  const wanted = Object.values(services).reduce((sum, count) => sum + count, 0)
  let waiting: string[] = []
  while (performance.now() < end) {
    signal.throwIfAborted()
    const containers = mirror
      .project(project)
      .filter(one => !one.compose?.oneoff && one.compose && services[one.compose.service] !== undefined)
    const failed = containers.map(one => ({ one, why: failing(one) })).filter(({ why }) => why !== undefined)
    if (failed.length > 0)
      throw deployFailed(
        failed.map(({ one, why }) => ({
          service: one.compose?.service ?? '',
          container: one.name,
          reason: why as string,
        })),
      )
    const ready = containers.filter(isReady)
    awaited.onProgress(ready.length, wanted, `${ready.length} of ${wanted} containers are ready`)
    const missing = Object.entries(services).filter(
      ([name, count]) => ready.filter(one => one.compose?.service === name).length < count,
    )
    if (missing.length === 0) return
    waiting = missing.map(([name]) => name)
    await changed(mirror, signal)
  }
  throw deployFailed(
    waiting.map(service => ({
      service,
      container: '',
      reason: `was not ready within ${Math.round(limitMs / 1000)} s`,
    })),
  )
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

function isReady(one: ContainerEntry): boolean {
  if (one.state === 'exited')
    return one.exitCode === 0 && (one.restartPolicy === 'no' || one.restartPolicy === 'on-failure')
  if (one.state !== 'running') return false
  if (one.health !== 'none') return one.health === 'healthy'
  return Date.now() - Date.parse(one.startedAt ?? '') >= SETTLE_MS
}

function failing(one: ContainerEntry): string | undefined {
  if (one.health === 'unhealthy') return 'is unhealthy'
  if (one.state === 'dead') return 'is dead'
  if (one.restartCount >= RESTARTS) return `restarts in a loop (exit code ${one.exitCode ?? 'unknown'})`
  if (one.state !== 'exited' || one.exitCode === 0 || one.restartPolicy !== 'no') return undefined
  return `exited with code ${one.exitCode}${one.oomKilled ? ' (out of memory)' : ''}${one.error ? `: ${one.error}` : ''}`
}

function changed(mirror: EngineMirror, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      stop()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, LOOK_MS)
    const stop = mirror.onChange(done)
    signal.addEventListener('abort', done)
  })
}
