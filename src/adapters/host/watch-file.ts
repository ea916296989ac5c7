// Waiting until something happens to a file, whether it is there or not.

import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname } from 'node:path'

export interface FileChanges {
  /** Resolves at the next change since the last call, after this long at the latest, and when the signal aborts. */
  next(milliseconds: number): Promise<void>
  close(): void
}

/** Watches the folder, because a file that is turned over takes a watch of its own along. */
export function watchFile(file: string, signal?: AbortSignal): FileChanges {
  let changed = false
  let wake: (() => void) | undefined
  const note = () => {
    changed = true
    wake?.()
  }
  const name = basename(file)
  const watcher = watchOrNot(dirname(file), touched => {
    if (touched === null || touched === name) note()
  })
  signal?.addEventListener('abort', note, { once: true })
  return {
    next(milliseconds) {
      return new Promise(resolve => {
        const timer = setTimeout(() => wake?.(), milliseconds)
        wake = () => {
          clearTimeout(timer)
          wake = undefined
          changed = false
          resolve()
        }
        if (changed || signal?.aborted) wake()
      })
    },
    close() {
      signal?.removeEventListener('abort', note)
      watcher?.close()
    },
  }
}

/** Where there are no watches left to give, or no folder, the time limit of each wait has to do. */
function watchOrNot(folder: string, touched: (name: string | null) => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, (_, name) => touched(name))
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}
