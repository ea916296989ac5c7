// Which containers of a project are a deployment's own: another program may use the same project name elsewhere.

import { existsSync } from 'node:fs'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'

/** Made from this folder, or from one that is no longer there: it was moved. */
export function isMadeIn({ compose }: ContainerEntry, path: string): boolean {
  const from = compose?.workingDir ?? ''
  return from === '' || from === path || !existsSync(from)
}
