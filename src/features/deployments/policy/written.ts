// Places that a container can change while Compose or the engine follow a path through them: a link put there wins the race.

import type { ContainerEntry } from '../../../adapters/container-engine/entries.ts'
import { isWithin } from './inside.ts'

/** The sources of the writable mounts of these containers, for `PolicyFolder.written`. */
export function writtenBy(containers: Iterable<Pick<ContainerEntry, 'mounts'>>): string[] {
  const mounts = [...containers].flatMap(({ mounts }) => mounts)
  return [...new Set(mounts.filter(one => one.type === 'bind' && !one.readOnly).map(one => one.source))]
}

/** Below a writable mount, not the mount itself: a container cannot replace the very folder it was given. */
export const isBelowAny = (path: string, written: readonly string[]): boolean =>
  written.some(source => source !== path && isWithin(path, source))

/** The mount itself too: its content is what counts. */
export const isReachedBy = (path: string, written: readonly string[]): boolean =>
  written.some(source => isWithin(path, source))

export const BELOW_WRITABLE =
  'lies below a folder that a container can write to, and could be replaced by a link: move it out, or mount that folder read-only'
export const STEERED =
  'would let a container change what Compose reads: add `read_only: true` (`:ro`), or mount another folder'
