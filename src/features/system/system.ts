// What can be asked about the agent itself.

import { statfsSync } from 'node:fs'
import type { Download } from '../../core/operation.ts'
import { formatUptime } from '../../lib/duration.ts'

export interface SystemParts {
  version: string
  startedAt: number
  dataPath: string
  engine(): { state: 'up' | 'down'; reason: string | null }
  openapi(): object
  docs(): Download
}

export type SystemReader = ReturnType<typeof systemReader>

/** Below this share of free space the data folder is about to be full. */
const DISK_LOW = 0.02

export function systemReader(parts: SystemParts) {
  return {
    openapi: () => parts.openapi() as Record<string, unknown>,
    docs: () => parts.docs(),

    health() {
      const engine = parts.engine()
      const checks = {
        engine: engine.state === 'up' ? ok : failed(engine.reason ?? 'The container engine does not answer.'),
        store: ok,
        proxy: { status: 'off' as const, message: 'No proxy is configured.' },
        disk: disk(parts.dataPath),
      }
      const healthy = Object.values(checks).every(check => check.status !== 'failed')
      return {
        status: healthy ? ('healthy' as const) : ('degraded' as const),
        version: parts.version,
        uptime: formatUptime((performance.now() - parts.startedAt) / 1000),
        checks,
      }
    },
  }
}

const ok = { status: 'ok' as const }
const failed = (message: string) => ({ status: 'failed' as const, message })

let lastDisk: { at: number; check: { status: 'ok' } | { status: 'failed'; message: string } } | undefined

function disk(path: string): typeof ok | ReturnType<typeof failed> {
  const now = performance.now()
  if (!lastDisk || now - lastDisk.at > 5000) {
    const { bavail, blocks, bsize } = statfsSync(path)
    const low = bavail / blocks < DISK_LOW
    lastDisk = { at: now, check: low ? failed(`Only ${Math.floor((bavail * bsize) / 1e6)} MB are left on the disk of the data folder.`) : ok }
  }
  return lastDisk.check
}
