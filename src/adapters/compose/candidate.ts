// What Compose would make of a folder if its compose file and `.env` had another text: asked before anything is written.

import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type ComposeModel, proposedModel } from './model.ts'
import type { ComposeProgram } from './program.ts'

export interface Candidate {
  /** The folder it is meant for; it need not be there yet. */
  folder: string
  composeFile: string
  composeText: string
  envText: string | null
  /** The id of the first container of a service, for services that share with others. */
  containers?: ReadonlyMap<string, string>
}

/** Refused like the real files would be; nothing is left behind. */
export async function candidateModel(
  program: ComposeProgram,
  candidate: Candidate,
  signal?: AbortSignal,
): Promise<ComposeModel> {
  const aside = await mkdtemp(join(tmpdir(), 'fairlead-candidate-'))
  try {
    const shadow = await shadowOf(candidate, aside)
    return await proposedModel(program, { shadow, folder: candidate.folder, containers: candidate.containers, signal })
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}

/** A folder of the same name with the new texts, in which everything else leads to the real one. */
async function shadowOf({ folder, composeFile, composeText, envText }: Candidate, aside: string): Promise<string> {
  const shadow = join(aside, basename(folder))
  await mkdir(shadow, { mode: 0o700 })
  await writeFile(join(shadow, composeFile), composeText, { mode: 0o600 })
  if (envText !== null) await writeFile(join(shadow, '.env'), envText, { mode: 0o600 })
  const others = (await readdir(folder).catch(() => [])).filter(name => name !== composeFile && name !== '.env')
  await Promise.all(others.map(name => symlink(join(folder, name), join(shadow, name))))
  return shadow
}
