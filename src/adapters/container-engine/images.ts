// What can be asked of and done to images at the engine; pulling is the engine's work, with our credential and our cancel.

import { Failure } from '../../core/failure.ts'
import { type EngineClient, EngineError } from './client.ts'
import type { CallLimit, Filters } from './containers.ts'
import { jsonLines } from './frames.ts'
import { Limit } from './limit.ts'
import type { ImageInspect, ImageRemoval, ImageSummary } from './wire.ts'

export type RegistryAuth = { readonly username: string; readonly password: string; readonly serveraddress?: string }

/** One line of progress: a layer's, or without `layer` one about the image. */
export type PullProgress = {
  readonly layer?: string
  readonly status: string
  readonly current?: number
  readonly total?: number
}

export type PullOptions = {
  readonly auth?: RegistryAuth | undefined
  readonly platform?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: PullProgress) => void) | undefined
  /** A pull that says nothing for so long is given up. */
  readonly stallMs?: number | undefined
}

export type ImageCalls = ReturnType<typeof imageCalls>

export function imageCalls(client: EngineClient) {
  return {
    list: (filters: Filters = {}, limit: CallLimit = {}): Promise<ImageSummary[]> =>
      client.json('GET', '/images/json', { ...limit, query: { filters } }),
    inspect: (name: string, limit: CallLimit = {}): Promise<ImageInspect> =>
      client.json('GET', `${at(name)}/json`, limit),
    tag: (source: string, reference: string, limit: CallLimit = {}): Promise<void> => {
      const { repository, tag } = splitReference(reference)
      return client.json('POST', `${at(source)}/tag`, { ...limit, query: { repo: repository, tag } })
    },
    remove: (
      name: string,
      { force = false, ...limit }: CallLimit & { force?: boolean } = {},
    ): Promise<ImageRemoval[]> => client.json('DELETE', at(name), { deadlineMs: 120_000, ...limit, query: { force } }),
    pull: (reference: string, options: PullOptions = {}): Promise<void> => pull(client, reference, options),
  }
}

/** `registry:5000/a/b:tag` or `…@sha256:…`, cut where Docker cuts it; no tag means `latest`, never all of them. */
export function splitReference(reference: string): { repository: string; tag: string } {
  const [beforeDigest = '', digest] = reference.split('@', 2)
  const colon = beforeDigest.lastIndexOf(':')
  const hasTag = colon > beforeDigest.lastIndexOf('/')
  const repository = hasTag ? beforeDigest.slice(0, colon) : beforeDigest
  return { repository, tag: digest ?? (hasTag ? beforeDigest.slice(colon + 1) : 'latest') }
}

const defaultStallMs = 120_000

/** An image name may hold slashes, which the engine wants as they are. */
const at = (name: string): string => `/images/${name.split('/').map(encodeURIComponent).join('/')}`

async function pull(client: EngineClient, reference: string, options: PullOptions): Promise<void> {
  const { stallMs = defaultStallMs } = options
  const sentence = `The registry of "${reference}" sent nothing for ${Math.ceil(stallMs / 1000)} s: check that it is reachable.`
  const limit = new Limit(stallMs, () => new Failure('TIMEOUT', sentence), options.signal)
  try {
    const { repository, tag } = splitReference(reference)
    const response = await client.stream('POST', '/images/create', {
      query: { fromImage: repository, tag, platform: options.platform },
      headers: options.auth ? { 'x-registry-auth': authHeader(options.auth) } : {},
      // The engine answers only when the registry has: that wait is bounded by the stall time.
      deadlineMs: stallMs + 1000,
      signal: limit.signal,
    })
    for await (const line of jsonLines(response)) {
      limit.extend()
      progressOf(line, options.onProgress)
    }
    limit.signal.throwIfAborted()
  } catch (error) {
    throw client.explain(limit.cause(error))
  } finally {
    limit.release()
  }
}

type PullLine = {
  id?: string
  status?: string
  error?: string
  progressDetail?: { current?: number; total?: number } | null
}

function progressOf(line: unknown, onProgress: PullOptions['onProgress']): void {
  const { id, status, error, progressDetail } = line as PullLine
  if (error !== undefined) throw new EngineError(500, error)
  if (!status) return
  const { current, total } = progressDetail ?? {}
  onProgress?.({
    ...(id === undefined ? {} : { layer: id }),
    status,
    ...(current === undefined ? {} : { current }),
    ...(total === undefined ? {} : { total }),
  })
}

/** In the alphabet for URLs, and with its padding: without, Docker takes it for no login at all, and says nothing. */
export const authHeader = (auth: RegistryAuth): string =>
  Buffer.from(JSON.stringify(auth)).toString('base64').replaceAll('+', '-').replaceAll('/', '_')
