// Removing a folder and all in it without ever following a link or entering something mounted there.

import { constants } from 'node:fs'
import { open, opendir, readFile, rename, rmdir, unlink } from 'node:fs/promises'
import { fail } from '../../core/failure.ts'
import { flushFolder, temporaryName } from '../../lib/write-aside.ts'

/** Gone at once under its name, then cleared; what a crash leaves is found by its temporary name. */
export async function removeTree(here: string, name: string): Promise<void> {
  const aside = temporaryName()
  await rename(`${here}/${name}`, `${here}/${aside}`)
  await flushFolder(here)
  try {
    await clearEntry(here, aside)
  } catch (error) {
    await rename(`${here}/${aside}`, `${here}/${name}`).catch(() => {})
    throw error
  }
  await flushFolder(here)
}

/** Removes one entry of an opened folder, whatever it is. */
export async function clearEntry(here: string, name: string): Promise<void> {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
  const handle = await open(`${here}/${name}`, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTDIR' || error.code === 'ELOOP') return undefined
    throw error
  })
  if (!handle) return unlink(`${here}/${name}`)
  try {
    const inside = `/proc/self/fd/${handle.fd}`
    for await (const entry of await opendir(inside, { bufferSize: 256 })) await clearEntry(inside, entry.name)
  } finally {
    await handle.close()
  }
  await rmdir(`${here}/${name}`)
}

export async function refuseMounts(folder: string, shown: string): Promise<void> {
  const [first] = mountsWithin(await readFile('/proc/self/mountinfo', 'utf8'), folder)
  if (first === undefined) return
  const where = [shown, first.slice(folder.length + 1)].filter(Boolean).join('/')
  fail('CONFLICT', `"${shown}" was not removed: something is mounted at "${where}". Unmount it first.`)
}

/** The mount points at or below a folder, out of the kernel's table. */
export function mountsWithin(mountinfo: string, folder: string): string[] {
  return mountinfo
    .split('\n')
    .map(line =>
      (line.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8))),
    )
    .filter(point => point === folder || point.startsWith(`${folder}/`))
}
