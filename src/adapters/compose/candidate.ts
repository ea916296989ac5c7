// What Compose would make of a folder if its compose file and `.env` had another text: asked before anything is written.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ComposeModel, proposedModel } from './model.ts'
import type { ComposeProgram } from './program.ts'
import { filesRead } from './reads.ts'

export interface Candidate {
  /** The folder it is meant for; it need not be there yet. */
  folder: string
  exists: boolean
  composeText: string
  envText: string | null
  /** The id of the first container of a service, for services that share with others. */
  containers?: ReadonlyMap<string, string>
}

/** Refused like the real file would be; nothing is left behind. */
export async function candidateModel(
  program: ComposeProgram,
  candidate: Candidate,
  signal?: AbortSignal,
): Promise<ComposeModel> {
  const aside = await mkdtemp(join(tmpdir(), 'fairlead-candidate-'))
  try {
    const env = join(aside, 'env')
    await writeFile(env, candidate.envText ?? '', { mode: 0o600 })
    const overrides = candidate.exists
      ? (await filesRead(candidate.folder)).filter(file => file.role === 'override' && file.sha256 !== null)
      : []
    const files = ['-', ...overrides.map(file => join(candidate.folder, file.path))].flatMap(file => ['--file', file])
    const args = ['--project-directory', candidate.folder, '--env-file', env, ...files]
    return await proposedModel(program, {
      folder: candidate.exists ? candidate.folder : aside,
      args,
      input: candidate.composeText,
      containers: candidate.containers,
      signal,
    })
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}
