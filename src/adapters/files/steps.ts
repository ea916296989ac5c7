// The steps that change a user's files. Each refuses when the file is no longer what the decision saw.

import { stepKind } from '../../core/step.ts'
import { envFileDiff, textDiff } from '../../lib/text-diff.ts'
import type { Files } from './files.ts'
import { sha256 } from './open-files.ts'

declare module '../../core/step.ts' {
  interface World {
    files: Files
  }
}

export interface FileWrite {
  /** Relative to the folder of all deployments. */
  path: string
  before: string | null
  after: string
  mode?: number
  /** Shown in plans without the name of the deployment in front. */
  shown: string
}

/** Writes a text file. A diff of an env file shows its keys and hides its values. */
export const writeFile = stepKind<FileWrite>('file.write', {
  describe: ({ before, after, shown }) => ({
    type: 'file',
    id: shown,
    action: before === null ? 'create' : 'update',
    diff: (isEnvFile(shown) ? envFileDiff : textDiff)(shown, before ?? undefined, after),
    ...(isEnvFile(shown) ? { sensitive: true } : {}),
  }),
  async perform({ files }, { path, before, after, mode }) {
    await files.write(path, after, {
      expect: before === null ? null : sha256(before),
      ...(mode === undefined ? {} : { mode }),
    })
  },
  end: { undo: ({ files }, { path, before, after }) => restore(files, path, before, after) },
})

export const removeFile = stepKind<{ path: string; before: string; shown: string }>('file.remove', {
  describe: ({ before, shown }) => ({
    type: 'file',
    id: shown,
    action: 'delete',
    diff: (isEnvFile(shown) ? envFileDiff : textDiff)(shown, before, undefined),
  }),
  async perform({ files }, { path, before }) {
    await files.remove(path, { expect: sha256(before) })
  },
  end: { undo: ({ files }, { path, before }) => restore(files, path, before, null) },
})

/** Makes a folder that is not there; undone, it goes again if nobody put anything into it. */
export const makeFolder = stepKind<{ path: string }, { existed: boolean }>('folder.make', {
  describe: ({ path }) => ({ type: 'file', id: `${path}/`, action: 'create' }),
  before: async ({ files }, { path }) => ({ existed: (await files.stat(path)) !== undefined }),
  async perform({ files }, { path }) {
    await files.makeFolder(path)
  },
  end: {
    async undo({ files }, { path }, { existed }) {
      if (existed || (await files.list(path))?.length !== 0) return
      await files.removeTree(path)
    },
  },
})

/** Removes a folder with all that is in it: asked for by name, and for good. */
export const removeFolder = stepKind<{ path: string }>('folder.remove', {
  describe: ({ path }) => ({
    type: 'file',
    id: `${path}/`,
    action: 'delete',
    reason: 'with everything in it, for good',
  }),
  async perform({ files }, { path }) {
    await files.removeTree(path)
  },
  end: 'repeatable',
})

/** Puts the old content back, unless somebody has written something else meanwhile. */
async function restore(files: Files, path: string, before: string | null, after: string | null): Promise<void> {
  const now = await files.read(path)
  const text = now ? now.content.toString() : null
  if (text === before || text !== after) return
  if (before === null) await files.remove(path)
  else await files.write(path, before)
}

const isEnvFile = (path: string): boolean => /(^|\/)\.env[^/]*$/.test(path)

export const fileKinds = [writeFile, removeFile, makeFolder, removeFolder] as const
