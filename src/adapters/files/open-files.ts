// Files below one root: confined, written aside and swapped, compared before they are changed.

import { createHash } from 'node:crypto'
import { type FileHandle, lstat, mkdir, readdir, realpath, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure, fail } from '../../core/failure.ts'
import { flushFolder, isTemporaryName, writeAside } from '../../lib/write-aside.ts'
import { fileFailure, inFolder, openRegular, type Place, placeOf, refuse } from './confined.ts'
import type { Expectation, FileContent, FileEntry, FileStat, Files, FileType, WriteOptions } from './files.ts'
import { clearEntry, refuseMounts, removeTree } from './remove-tree.ts'

/** Makes the root when it is missing. The root itself may be a link: what it leads to now is the root. */
export async function openFiles(folder: string): Promise<Files> {
  await mkdir(folder, { recursive: true })
  const root = await realpath(folder)
  const inTurn = turns()
  const listeners = new Set<(path: string) => void>()
  const told = async <T>(path: string, change: () => Promise<T>): Promise<T> => {
    try {
      return await change()
    } finally {
      for (const listener of listeners) listener(placeOf(path).path)
    }
  }
  return {
    root,
    read: (path, options) => readFile(root, path, options?.max),
    open: async path => openFile(root, namedPlace(path)),
    stat: async path => statFile(root, placeOf(path)),
    list: async path => listFolder(root, placeOf(path)),
    write: (path, content, options = {}) =>
      inTurn(path, () => told(path, () => writeFile(root, namedPlace(path), content, options))),
    remove: (path, options = {}) =>
      inTurn(path, () => told(path, () => removeFile(root, namedPlace(path), options.expect))),
    makeFolder: async (path, mode = 0o755) => told(path, () => makeFolder(root, placeOf(path), mode)),
    removeTree: async path => told(path, () => removeFolder(root, namedPlace(path))),
    sweepLeftovers: (depth = 2) => sweepLeftovers(root, [], depth),
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

async function readFile(root: string, path: string, max = 16 * 1024 * 1024): Promise<FileContent | undefined> {
  const place = namedPlace(path)
  const handle = await openFile(root, place)
  if (!handle) return undefined
  try {
    const { size } = await handle.stat()
    if (size > max) fail('PAYLOAD_TOO_LARGE', `"${place.path}" is larger than ${max} bytes.`)
    const content = await handle.readFile()
    return { content, sha256: sha256(content) }
  } catch (error) {
    throw fileFailure(place.path, error)
  } finally {
    await handle.close()
  }
}

const openFile = (root: string, place: Place): Promise<FileHandle | undefined> =>
  inside(root, place, here => openRegular(here, place.name, place.path))

async function statFile(root: string, place: Place): Promise<FileStat | undefined> {
  const found = await inside(root, place, here => present(here, place))
  return found && { type: typeOf(found), size: found.size, mode: found.mode & 0o7777, modified: found.mtime }
}

async function listFolder(root: string, place: Place): Promise<FileEntry[] | undefined> {
  const entries = await inside(root, asFolder(place), here => readdir(here, { withFileTypes: true }))
  return entries
    ?.filter(entry => !isTemporaryName(entry.name))
    .map(entry => ({ name: entry.name, type: typeOf(entry) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

type Content = string | Uint8Array

async function writeFile(
  root: string,
  place: Place,
  content: Content,
  { expect, mode }: WriteOptions,
): Promise<{ sha256: string }> {
  const written = await inside(root, place, async here => {
    const old = await present(here, place)
    if (old && !old.isFile()) refuse(place.path, `is a ${typeOf(old)}, not a file`)
    const compared = () => compare(here, place, expect)
    await compared()
    await writeAside(`${here}/${place.name}`, content, {
      mode: mode ?? (old ? old.mode & 0o7777 : 0o644),
      owner: old && { uid: old.uid, gid: old.gid },
      exclusive: expect === null,
      beforeSwap: compared,
    })
    return { sha256: sha256(content) }
  })
  return written ?? fail('NOT_FOUND', `"${place.path}" was not written: its folder is not there.`)
}

async function removeFile(root: string, place: Place, expect: Expectation): Promise<boolean> {
  const removed = await inside(root, place, async here => {
    const old = await present(here, place)
    if (old?.isDirectory()) refuse(place.path, 'is a folder')
    await compare(here, place, expect)
    if (!old) return false
    await unlink(`${here}/${place.name}`)
    await flushFolder(here)
    return true
  })
  if (removed === undefined && typeof expect === 'string') throw changed(place)
  return removed ?? false
}

async function makeFolder(root: string, place: Place, mode: number): Promise<string[]> {
  const parts = asFolder(place).folder
  const made: string[] = []
  for (const [depth, name] of parts.entries()) {
    const one = { path: parts.slice(0, depth + 1).join('/'), folder: parts.slice(0, depth), name }
    const created = await inside(root, one, here => makeOne(here, one, mode))
    if (created === undefined) fail('CONFLICT', `The folder "${place.path}" was not made: one above it went away.`)
    if (created) made.push(one.path)
  }
  return made
}

async function makeOne(here: string, place: Place, mode: number): Promise<boolean> {
  const old = await present(here, place)
  if (old && !old.isDirectory()) refuse(place.path, `is a ${typeOf(old)}, not a folder`)
  if (old) return false
  await mkdir(`${here}/${place.name}`, { mode })
  await flushFolder(here)
  return true
}

async function removeFolder(root: string, place: Place): Promise<boolean> {
  const removed = await inside(root, place, async here => {
    const old = await present(here, place)
    if (!old) return false
    if (!old.isDirectory()) refuse(place.path, `is a ${typeOf(old)}, not a folder`)
    await refuseMounts(join(root, place.path), place.path)
    await removeTree(here, place.name)
    return true
  })
  return removed ?? false
}

async function sweepLeftovers(root: string, folder: string[], depth: number): Promise<string[]> {
  const removed: string[] = []
  const below = await inside(root, { path: folder.join('/'), folder, name: '' }, async here => {
    const entries = await readdir(here, { withFileTypes: true })
    for (const { name } of entries.filter(entry => isTemporaryName(entry.name))) {
      await clearEntry(here, name)
      removed.push([...folder, name].join('/'))
    }
    return entries.filter(entry => entry.isDirectory() && !isTemporaryName(entry.name)).map(entry => entry.name)
  })
  if (folder.length >= depth) return removed
  for (const name of below ?? []) removed.push(...(await sweepLeftovers(root, [...folder, name], depth)))
  return removed
}

async function inside<T>(root: string, place: Place, use: (here: string) => Promise<T>): Promise<T | undefined> {
  try {
    const result = await inFolder(root, place.folder, use)
    if (result === undefined && place.folder.length === 0) await rootPresent(root)
    return result
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? changed(place) : fileFailure(place.path, error)
  }
}

async function rootPresent(root: string): Promise<void> {
  await lstat(root).catch(error =>
    fail('SERVICE_UNAVAILABLE', 'The folder that holds all others is gone. Put it back.', undefined, error),
  )
}

/** Refuses unless the file is what `expect` says. Between this and the swap only a program that is not ours can come. */
async function compare(here: string, place: Place, expect: Expectation): Promise<void> {
  if (expect === undefined) return
  const now = await fingerprint(here, place)
  if (now !== expect) throw changed(place)
}

async function fingerprint(here: string, place: Place): Promise<string | null> {
  const handle = await openRegular(here, place.name, place.path)
  if (!handle) return null
  const hash = createHash('sha256')
  for await (const chunk of handle.createReadStream()) hash.update(chunk)
  return hash.digest('hex')
}

const changed = (place: Place): Failure =>
  new Failure(
    'CONFLICT',
    `"${place.path}" was changed meanwhile by somebody else and was left as it is. Look at it and try again.`,
    {
      path: place.path,
    },
  )

/** One after the other for each path, so that of two writers with the same expectation exactly one wins. */
function turns(): <T>(path: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>()
  return (path, work) => {
    const key = path
      .split('/')
      .filter(part => part !== '' && part !== '.')
      .join('/')
    const mine = (last.get(key) ?? Promise.resolve()).then(work, work)
    const settled = mine
      .catch(() => {})
      .then(() => {
        if (last.get(key) === settled) last.delete(key)
      })
    last.set(key, settled)
    return mine
  }
}

function namedPlace(path: string): Place {
  const place = placeOf(path)
  return place.name === '' ? refuse(path, 'names no file') : place
}

const asFolder = (place: Place): Place =>
  place.name === '' ? place : { ...place, folder: [...place.folder, place.name] }

const present = (here: string, place: Place) =>
  lstat(`${here}/${place.name}`).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })

interface Typed {
  isFile(): boolean
  isDirectory(): boolean
  isSymbolicLink(): boolean
}

function typeOf(entry: Typed): FileType {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  return entry.isSymbolicLink() ? 'link' : 'other'
}
