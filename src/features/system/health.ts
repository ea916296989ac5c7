// Whether the agent's parts are well: looked at beforehand, so that an answer costs next to nothing.

import { statfs } from 'node:fs/promises'
import { formatUptime } from '../../lib/duration.ts'

export interface HealthParts {
  version: string
  startedAt: number
  dataPath: string
  engine: { readonly state: 'up' | 'down'; readonly reason: string | null }
  store: { readonly fault: string | null; probe(): void }
}

export interface Check {
  status: 'ok' | 'failed' | 'off'
  message?: string
}

export interface Health {
  status: 'healthy' | 'degraded'
  version: string
  uptime: string
  checks: { engine: Check; store: Check; proxy: Check; disk: Check }
}

export interface HealthWatch {
  /** Frozen, and the same object as long as it says the same. */
  current(): Health
  close(): void
}

/** Below this share of free space the data folder is about to be full. */
const DISK_LOW = 0.02
const LOOK_MS = 5000

export async function watchHealth({ version, startedAt, dataPath, engine, store }: HealthParts): Promise<HealthWatch> {
  let disk = await lookAtDisk(dataPath)
  const look = async () => {
    if (store.fault !== null) store.probe()
    disk = await lookAtDisk(dataPath)
  }
  const looking = setInterval(() => void look(), LOOK_MS).unref()

  let known:
    | { at: number; state: string; reason: string | null; fault: string | null; disk: Check; health: Health }
    | undefined
  return {
    current() {
      const at = Math.floor((performance.now() - startedAt) / 1000)
      const { state, reason } = engine
      const { fault } = store
      if (
        known?.at === at &&
        known.state === state &&
        known.reason === reason &&
        known.fault === fault &&
        known.disk === disk
      ) {
        return known.health
      }
      const checks = {
        engine: state === 'up' ? ok : failed(reason ?? 'The container engine does not answer.'),
        store: fault === null ? ok : failed(`The store could not be written: ${fault}.`),
        proxy: off,
        disk,
      }
      const healthy = Object.values(checks).every(check => check.status !== 'failed')
      const status = healthy ? 'healthy' : 'degraded'
      const health: Health = Object.freeze({ status, version, uptime: formatUptime(at), checks })
      known = { at, state, reason, fault, disk, health }
      return health
    },
    close: () => clearInterval(looking),
  }
}

const ok: Check = { status: 'ok' }
const off: Check = { status: 'off', message: 'No proxy is configured.' }
const failed = (message: string): Check => ({ status: 'failed', message })

async function lookAtDisk(path: string): Promise<Check> {
  try {
    const { bavail, blocks, bsize } = await statfs(path)
    if (blocks === 0 || bavail / blocks >= DISK_LOW) return ok
    return failed(`Only ${Math.floor((bavail * bsize) / 1e6)} MB are left on the disk of the data folder.`)
  } catch (error) {
    return failed(`The data folder cannot be looked at: ${(error as NodeJS.ErrnoException).code}.`)
  }
}
