// What can be asked about the agent itself, as the caller may see it.

import type { Download, Viewer } from '../../core/operation.ts'
import type { HealthWatch } from './health.ts'
import { logReader, type Source } from './logs.ts'
import { type StatsParts, statsFor } from './stats.ts'

export interface SystemParts extends StatsParts {
  health: HealthWatch
  logSources: readonly Source[]
  openapi(): object
  docs(): Download
}

declare module '../../core/operation.ts' {
  interface Readers {
    system: SystemReader
  }
}

export type SystemReader = ReturnType<typeof systemReader>

export function systemReader(parts: SystemParts, { actor }: Viewer) {
  return {
    health: () => parts.health.current(),
    openapi: () => parts.openapi() as Record<string, unknown>,
    docs: () => parts.docs(),
    stats: (deployments: Parameters<typeof statsFor>[2]) => statsFor(parts, actor, deployments),
    logs: () => logReader(parts.logSources, actor),
  }
}
