// What can be asked about deployments.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { sees } from '../../core/permission.ts'

declare module '../../core/operation.ts' {
  interface Readers {
    deployments: DeploymentReader
  }
}

export type DeploymentReader = ReturnType<typeof deploymentReader>

export function deploymentReader(root: string, { actor }: Viewer) {
  return {
    requireKnown(name: string): void {
      if (!sees(actor, name) || !existsSync(join(root, name))) notFound('deployment', name)
    },
  }
}
