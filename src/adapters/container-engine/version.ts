// Chooses the engine API version to speak: as new as both sides know, never older than the engine accepts.

import { fail } from '../../core/failure.ts'

export type EngineVersion = {
  /** What every path begins with, for example `/v1.41`. */
  readonly prefix: string
  readonly api: string
  readonly minApi: string
  readonly engine: 'docker' | 'podman'
  readonly version: string
}

/** Docker 20.10. */
export const oldestApi = '1.41'
/** The newest version this code was tested with. */
export const newestApi = '1.51'

export function chooseVersion(answer: unknown, address: string): EngineVersion {
  const said = isVersionAnswer(answer)
    ? answer
    : fail('UPSTREAM_FAILED', `What answers at ${address} is not a container engine.`)
  const offered = said.ApiVersion
  const minApi = isApi(said.MinAPIVersion) ? said.MinAPIVersion : oldestApi
  if (compareApi(offered, oldestApi) < 0) {
    return fail(
      'ENGINE_UNAVAILABLE',
      `The container engine at ${address} speaks API ${offered}; ${oldestApi} (Docker 20.10) or newer is needed: upgrade it.`,
    )
  }
  const common = compareApi(offered, newestApi) < 0 ? offered : newestApi
  // An engine so new that it no longer accepts what we tested: its oldest is the best guess.
  const api = compareApi(common, minApi) < 0 ? minApi : common
  return { prefix: `/v${api}`, api, minApi, engine: engineOf(said), version: String(said.Version ?? '') }
}

/** The engine refuses the version in the path: it is another one than the one we asked. */
export const isVersionRefusal = (message: string): boolean => /client version \S+ is too (new|old)/i.test(message)

export function compareApi(a: string, b: string): number {
  const [aMajor = 0, aMinor = 0] = a.split('.').map(Number)
  const [bMajor = 0, bMinor = 0] = b.split('.').map(Number)
  return aMajor - bMajor || aMinor - bMinor
}

type VersionAnswer = { ApiVersion: string; MinAPIVersion?: unknown; Version?: unknown; Components?: unknown }

function isVersionAnswer(answer: unknown): answer is VersionAnswer {
  return typeof answer === 'object' && answer !== null && 'ApiVersion' in answer && isApi(answer.ApiVersion)
}

const isApi = (value: unknown): value is string => typeof value === 'string' && /^\d+\.\d+$/.test(value)

const engineOf = ({ Components }: VersionAnswer): 'docker' | 'podman' =>
  /podman/i.test(JSON.stringify(Components ?? '')) ? 'podman' : 'docker'
