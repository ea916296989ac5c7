// Paths that cannot leave their root: every folder is opened first, and only what the kernel says was opened counts.

import { constants } from 'node:fs'
import { type FileHandle, open, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure, fail } from '../../core/failure.ts'

export interface Place {
  /** The path as it is named to people: relative, without empty or `.` parts. */
  path: string
  folder: string[]
  name: string
}

/** Splits a relative path; `..`, an absolute path and what no file system could hold are refused. */
export function placeOf(path: string): Place {
  if (path.includes('\0') || !path.isWellFormed()) refuse(path, 'is not a possible name of a file')
  if (path.startsWith('/')) refuse(path, 'must be relative')
  const parts = path.split('/').filter(part => part !== '' && part !== '.')
  if (parts.includes('..')) refuse(path, 'must not contain ".."')
  if (parts.some(part => Buffer.byteLength(part) > 255) || Buffer.byteLength(path) > 3000) refuse(path, 'is too long')
  return { path: parts.join('/'), folder: parts.slice(0, -1), name: parts.at(-1) ?? '' }
}

/**
 * Opens a folder below `root` and gives `use` a path to it that stays the same folder, whatever is renamed or
 * replaced by a link meanwhile. Undefined when there is no such folder; refused when a link leads to it.
 */
export async function inFolder<T>(
  root: string,
  folder: string[],
  use: (here: string) => Promise<T>,
): Promise<T | undefined> {
  const wanted = join(root, ...folder)
  const handle = await openOr(wanted, constants.O_RDONLY | constants.O_DIRECTORY, folder.join('/'))
  if (!handle) return undefined
  try {
    const here = `/proc/self/fd/${handle.fd}`
    if ((await readlink(here)) !== wanted) refuse(folder.join('/'), 'leads through a link')
    return await use(here)
  } finally {
    await handle.close()
  }
}

/** Opens a regular file of a folder given by `inFolder`; a link, a device or a pipe is refused, a folder too. */
export async function openRegular(here: string, name: string, path: string): Promise<FileHandle | undefined> {
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await openOr(`${here}/${name}`, flags, path)
  if (!handle) return undefined
  const stat = await handle.stat()
  if (stat.isFile()) return handle
  await handle.close()
  return refuse(path, stat.isDirectory() ? 'is a folder' : 'is not a regular file')
}

export function refuse(path: string, message: string): never {
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)
  return fail('VALIDATION_FAILED', `The path ${shown} ${message}.`, [{ path: 'path', message }])
}

/** Turns what the system says about a file into a sentence for the caller; its own path never shows. */
export function fileFailure(path: string, error: unknown): Failure {
  if (error instanceof Failure) return error
  const code = (error as NodeJS.ErrnoException).code ?? ''
  const words = SENTENCES[code]
  if (words) return new Failure('SERVICE_UNAVAILABLE', `"${path}" ${words}`, undefined, error)
  return new Failure(
    'INTERNAL',
    `"${path}" could not be read or written (${code || 'unknown reason'}).`,
    undefined,
    error,
  )
}

const SENTENCES: Record<string, string> = {
  ENOSPC: 'was not written: the disk is full. Make room and try again; the old content is intact.',
  EDQUOT: 'was not written: the disk quota is used up. Make room and try again; the old content is intact.',
  EFBIG: 'was not written: it is larger than a file may be here. The old content is intact.',
  EROFS: 'was not changed: the file system is read-only.',
  EACCES: "is not accessible to the agent's user: give it the right to that file and its folder.",
  EPERM: "may not be changed by the agent's user: give it the right to that file and its folder.",
  EBUSY: 'is in use by the system, a mount perhaps, and was left.',
  EMFILE: 'was not opened: the agent has too many files open. Try again.',
  ENFILE: 'was not opened: the machine has too many files open. Try again.',
  EIO: 'could not be read or written: the disk reports an error.',
}

async function openOr(path: string, flags: number, shown: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'ELOOP') refuse(shown, 'leads through a link')
    if (code === 'ENXIO' || code === 'ENODEV') refuse(shown, 'is not a regular file')
    throw error
  }
}
