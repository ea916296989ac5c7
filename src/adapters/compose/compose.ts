// Docker Compose: what it makes of a folder, and its verbs, run in the folder as a person would run them.

import { availableParallelism } from 'node:os'
import { fail } from '../../core/failure.ts'
import { type Candidate, candidateModel } from './candidate.ts'
import { type ComposeModel, type ModelMemory, modelReader } from './model.ts'
import { type ComposeSettings, type ComposeVersion, composeProgram } from './program.ts'
import { type ComposeProgress, composeWords, errorOf, progressOf } from './words.ts'

export { dockerPluginFolders } from './program.ts'
export { composeFileNames, composeFileOf } from './reads.ts'
export type { ComposeModel, ComposeProgress, ComposeSettings, ComposeVersion, ModelMemory }

export type ComposeRun = {
  /** All services when left out or empty. */
  readonly services?: readonly string[] | undefined
  /** For the whole run; over it the program and all it started are ended. */
  readonly timeoutMs: number
  /** How long a container may take to stop before it is killed; what the file says when left out. */
  readonly stopSeconds?: number | undefined
  readonly onProgress?: ((progress: ComposeProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

export type ComposeUp = ComposeRun & {
  readonly removeOrphans?: boolean
  readonly noDeps?: boolean
  /** Create without starting. */
  readonly noStart?: boolean
  /** Seconds to wait until all run and are healthy; does not wait when left out. */
  readonly waitSeconds?: number | undefined
}

export type Compose = ReturnType<typeof openCompose>

export function openCompose(settings: ComposeSettings, memory?: ModelMemory) {
  const program = composeProgram(settings)
  const reader = modelReader(program, availableParallelism(), memory)

  const verb = async (folder: string, name: string, flags: readonly string[], run: ComposeRun): Promise<void> => {
    const stop = run.stopSeconds === undefined ? [] : ['--timeout', String(run.stopSeconds)]
    const services = run.services?.length ? ['--', ...run.services] : []
    const output = await program.run(
      folder,
      [...(await program.progressFlags()), name, ...flags, ...stop, ...services],
      {
        deadlineMs: run.timeoutMs,
        signal: run.signal,
        onLine: (_stream, line) => {
          const progress = progressOf(line)
          if (progress) run.onProgress?.(progress)
        },
      },
    )
    if (output.code === 0) return
    fail('UPSTREAM_FAILED', `docker compose ${name}: ${composeWords(errorOf(output.stderr), folder)}`)
  }

  return {
    /** The version in use; looked for again each time it was not found. */
    version: (): Promise<ComposeVersion> => program.version(),

    /** The normalised model of a folder with its hashes and the files it came from; read again only when one of these changed. */
    model: (folder: string, signal?: AbortSignal): Promise<ComposeModel> => reader.model(folder, signal),

    /**
     * The hashes that Compose gives services which share a namespace or the volumes of another one: they depend on the
     * id of the other's first container, by name. `containers` has that id by service. A service whose hash can't be
     * foretold (`volumes_from` with an older Compose) is left out.
     */
    hashesWith: (
      folder: string,
      containers: ReadonlyMap<string, string>,
      signal?: AbortSignal,
    ): Promise<ReadonlyMap<string, string>> => reader.hashesWith(folder, containers, signal),

    /** The model of another text for a folder, before it is written there. */
    candidate: (candidate: Candidate, signal?: AbortSignal): Promise<ComposeModel> =>
      candidateModel(program, candidate, signal),

    /** Drops what is kept about a folder that is gone. */
    forget: (folder: string): void => reader.forget(folder),

    /** Never pulls: the images were pulled through the engine. */
    up: (folder: string, options: ComposeUp): Promise<void> => verb(folder, 'up', upFlags(options), options),
    stop: (folder: string, options: ComposeRun): Promise<void> => verb(folder, 'stop', [], options),
    restart: (folder: string, options: ComposeRun & { noDeps?: boolean }): Promise<void> =>
      verb(folder, 'restart', options.noDeps ? ['--no-deps'] : [], options),
    /** Removes containers and networks. Never a volume: those go by name, through the engine. */
    down: (folder: string, options: Omit<ComposeRun, 'services'> & { removeOrphans?: boolean }): Promise<void> =>
      verb(folder, 'down', options.removeOrphans ? ['--remove-orphans'] : [], options),
  }
}

function upFlags(options: ComposeUp): string[] {
  return [
    ...(options.noStart ? ['--no-start'] : ['--detach']),
    ...['--pull', 'never'],
    ...(options.removeOrphans ? ['--remove-orphans'] : []),
    ...(options.noDeps ? ['--no-deps'] : []),
    ...(options.waitSeconds === undefined ? [] : ['--wait', '--wait-timeout', String(options.waitSeconds)]),
  ]
}
