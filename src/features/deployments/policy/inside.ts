// Whether a path stays inside the folder of a deployment, also when links are followed.

import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'

export interface PolicyFolder {
  path: string
  /** False while the deployment is being created: nothing is there yet that could lead outside. */
  exists: boolean
  /** What containers of the deployment can change at this moment: the sources of their writable mounts (`writtenBy`). */
  written?: readonly string[]
}

/** The same with all links followed. */
export interface RealFolder {
  readonly given: string
  readonly root: string
  readonly exists: boolean
  /** Only places below the folder: who can write outside has other ways. */
  readonly written: readonly string[]
}

export async function realFolder({ path, exists, written = [] }: PolicyFolder): Promise<RealFolder> {
  const given = resolve(path)
  const root = exists ? await realpath(given) : given
  const real = await Promise.all(written.map(one => realpath(one).catch(() => resolve(one))))
  return { given, root, exists, written: real.filter(one => isWithin(one, root)) }
}

export type Expects = 'file' | 'folder' | 'either'

/** `real` is the place when all links are followed; the last parts of it need not exist. */
export type Located =
  | { readonly refused: string; readonly real?: undefined }
  | { readonly refused?: undefined; readonly real: string }

export const OUTSIDE = 'leaves the folder of the deployment: use a path below it, such as ./data'
const THROUGH_LINK = 'leads through a link out of the folder of the deployment: use a real path below it'

/** A path that is not absolute is refused. What is there already must be a regular file or a folder: never a device, a pipe or a socket. */
export async function locate(folder: RealFolder, path: string, expects: Expects): Promise<Located> {
  if (!isAbsolute(path)) return { refused: OUTSIDE }
  if (!isWithin(path, folder.given) && !isWithin(path, folder.root)) return { refused: OUTSIDE }
  if (!folder.exists) return { real: resolve(path) }
  const found = await followed(resolve(path))
  if (!found || !isWithin(found.real, folder.root)) return { refused: THROUGH_LINK }
  if (found.type && !fits(found.type, expects)) return { refused: `is no ${nouns[expects]}` }
  return { real: found.real }
}

/** Also when it is the folder itself. */
export function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !way.startsWith(sep)
}

/** Undefined for a link to nowhere or in circles: who makes its target would decide where it leads. */
async function followed(path: string): Promise<{ real: string; type?: Expects | 'other' } | undefined> {
  try {
    const real = await realpath(path)
    const stat = await lstat(real)
    return { real, type: stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : 'other' }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ENOTDIR') return undefined
  }
  const isLink = await lstat(path).then(
    () => true,
    () => false,
  )
  if (isLink || path === dirname(path)) return undefined
  const parent = await followed(dirname(path))
  return parent && { real: join(parent.real, basename(path)) }
}

const fits = (type: Expects | 'other', expects: Expects): boolean =>
  type !== 'other' && (expects === 'either' || type === expects)

const nouns: Record<Expects, string> = {
  file: 'regular file',
  folder: 'folder',
  either: 'regular file or folder',
}
