// The last lines a container printed, for telling why it failed.

import type { Engine } from './engine.ts'
import type { ContainerEntry } from './entries.ts'

export async function logTail(
  engine: Engine,
  container: Pick<ContainerEntry, 'id' | 'tty'>,
  lines: number,
): Promise<string[]> {
  const found: string[] = []
  try {
    for await (const batch of engine.containers.logs(container.id, { tty: container.tty, tail: lines }))
      found.push(...batch.map(({ line }) => line))
  } catch {
    // The container may be gone already; its last words then are, too.
  }
  return found.slice(-lines)
}
