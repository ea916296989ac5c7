// Replacing a file so that a reader, a crash and a full disk find the old content or the new one, whole.

import { randomBytes } from 'node:crypto'
import { link, lstat, open, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface WriteAside {
  mode: number
  /** Who shall own the file, where the process has the right to say so; left out, its own user. */
  owner?: { uid: number; gid: number } | undefined
  /** Refuse with EEXIST, atomically, when the file is already there. */
  exclusive?: boolean
  /** Called when all is on disk and only the swap is left; throwing leaves the old content. */
  beforeSwap?: () => Promise<void>
}

/** Write beside the target, flush, put in its place, flush the folder. On any error the target is as it was. */
export async function writeAside(path: string, content: string | Uint8Array, how: WriteAside): Promise<void> {
  const folder = dirname(path)
  const aside = join(folder, temporaryName())
  try {
    await writeFlushed(aside, content, how)
    await how.beforeSwap?.()
    if (how.exclusive) await putNew(aside, path)
    else await rename(aside, path)
  } catch (error) {
    await unlink(aside).catch(() => {})
    throw error
  }
  await flushFolder(folder)
}

/** A name nobody else uses, and by which what a crash left behind is recognised. */
export const temporaryName = (): string => `.fairlead-tmp-${randomBytes(8).toString('hex')}`
export const isTemporaryName = (name: string): boolean => /^\.fairlead-tmp-[0-9a-f]{16}$/.test(name)

/** Makes renames and removals in a folder outlive a power cut. */
export async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function writeFlushed(path: string, content: string | Uint8Array, { mode, owner }: WriteAside): Promise<void> {
  // Nobody else may read it before it has the owner and mode it shall have.
  const handle = await open(path, 'wx', 0o600)
  try {
    await handle.writeFile(content)
    if (owner) await handle.chown(owner.uid, owner.gid).catch(unlessForbidden)
    await handle.chmod(mode)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function putNew(aside: string, path: string): Promise<void> {
  try {
    await link(aside, path)
  } catch (error) {
    if (!NO_HARD_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error
    await refuseExisting(path)
    return rename(aside, path)
  }
  await unlink(aside)
}

/** For file systems without hard links: not atomic, but all they offer. */
async function refuseExisting(path: string): Promise<void> {
  const present = await lstat(path).catch(() => undefined)
  if (present) throw Object.assign(new Error(`EEXIST: ${path} is already there`), { code: 'EEXIST' })
}

const unlessForbidden = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EPERM') throw error
}

const NO_HARD_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])
