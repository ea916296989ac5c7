// The files of one log: the current one and those it was turned over to, opened so that turning over loses none.

import { type FileHandle, open } from 'node:fs/promises'

export interface Generation {
  handle: FileHandle
  ino: number
  dev: number
  /** When it was opened. */
  size: number
  mtimeMs: number
}

/** Newest first: a file that is turned over meanwhile is met again under its next name, and known by its inode. */
export async function openGenerations(
  file: string,
  opener: (path: string) => Promise<FileHandle | undefined>,
): Promise<Generation[]> {
  const found: Generation[] = []
  let missing = 0
  try {
    for (let n = 0; n < MOST && missing < 2; n++) {
      const handle = await opener(n === 0 ? file : `${file}.${n}`)
      // One may be missing for a moment while it is renamed; two are the end.
      missing = handle ? 0 : missing + 1
      if (!handle) continue
      const { ino, dev, size, mtimeMs } = await handle.stat()
      if (found.some(one => one.ino === ino && one.dev === dev)) await handle.close()
      else found.push({ handle, ino, dev, size, mtimeMs })
    }
    return found
  } catch (error) {
    await closeAll(found)
    throw error
  }
}

export async function closeAll(generations: readonly Generation[]): Promise<void> {
  for (const { handle } of generations) await handle.close()
}

export async function openPlain(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

const MOST = 20
