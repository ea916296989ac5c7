// The contract for touching a user's files: what can be asked, and what can be done.

import type { FileHandle } from 'node:fs/promises'

/** Every path is relative to the root; one that leaves it, or leads through a link, is refused. */
export interface FilesReader {
  readonly root: string
  /** Undefined when it is not there. More than `max` bytes (16 MiB) are refused. */
  read(path: string, options?: { max?: number }): Promise<FileContent | undefined>
  /** An open file for streaming; the caller closes it. */
  open(path: string): Promise<FileHandle | undefined>
  /** Links are reported, not followed. */
  stat(path: string): Promise<FileStat | undefined>
  /** Names in order; undefined when there is no such folder. Temporary files of a write in progress are left out. */
  list(folder: string): Promise<FileEntry[] | undefined>
}

/** A change is on disk when its promise resolves. */
export interface Files extends FilesReader {
  write(path: string, content: string | Uint8Array, options?: WriteOptions): Promise<{ sha256: string }>
  /** False when it was not there. A link is removed, not what it leads to. */
  remove(path: string, options?: { expect?: Expectation }): Promise<boolean>
  /** Makes the folder and those above it; answers those that were missing, outermost first. */
  makeFolder(path: string, mode?: number): Promise<string[]>
  /** Removes a folder and all in it, never following a link nor entering a mount. False when it was not there. */
  removeTree(path: string): Promise<boolean>
  /** At start, before the first write: removes what a crash left behind, down to `depth` folders below the root (2). */
  sweepLeftovers(depth?: number): Promise<string[]>
  /** Told of each path that was changed through here, well or not, before the change's promise resolves. */
  onChange(listener: (path: string) => void): () => void
}

export interface WriteOptions {
  expect?: Expectation
  /** Left out, an existing file keeps its mode and a new one gets 0644. Owner and group are always kept. */
  mode?: number | undefined
}

/** The sha256 the file must have now, null when it must not exist, undefined for no matter what. Otherwise `CONFLICT`. */
export type Expectation = string | null | undefined

export interface FileContent {
  content: Buffer
  sha256: string
}

export type FileType = 'file' | 'folder' | 'link' | 'other'

export interface FileEntry {
  name: string
  type: FileType
}

export interface FileStat {
  type: FileType
  size: number
  mode: number
  modified: Date
}
