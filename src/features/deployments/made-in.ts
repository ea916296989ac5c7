// Which containers of a project are a deployment's own: another program may use the same project name elsewhere.

import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'

/** Made from this folder, or from one beside it that is no longer there: it was moved. */
export function isMadeIn({ compose }: ContainerEntry, path: string): boolean {
  const from = compose?.workingDir ?? ''
  return from === '' || from === path || (dirname(from) === dirname(path) && !existsSync(from))
}
