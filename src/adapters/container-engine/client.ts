// Talks HTTP to one container engine: connection, API version, deadlines, and errors that say what to do.

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Failure } from '../../core/failure.ts'
import { http } from '../../lib/node-http.ts'
import { dockerHost, type EngineAddress, parseAddress } from './address.ts'
import { Limit } from './limit.ts'
import { chooseVersion, type EngineVersion, isVersionRefusal } from './version.ts'

export type CallOptions = {
  readonly query?: Readonly<Record<string, QueryValue>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** For a call: until its answer is complete. For a stream: until it begins. */
  readonly deadlineMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export type QueryValue = string | number | boolean | undefined | Readonly<Record<string, readonly string[]>>

/** The engine understood and refused; `engineStatus` is its HTTP status, `said` its own words. */
export class EngineError extends Failure {
  readonly engineStatus: number
  readonly said: string

  constructor(engineStatus: number, said: string) {
    super(codeOf(engineStatus), `The container engine answered: ${said}`)
    this.name = 'EngineError'
    this.engineStatus = engineStatus
    this.said = said
  }
}

export class EngineClient {
  readonly address: string
  readonly #target: { socketPath: string } | { host: string; port: number }
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 16, timeout: 60_000 })
  readonly #closed = new AbortController()
  #version: Promise<EngineVersion> | undefined

  constructor(address: string) {
    const parsed = parseAddress(address)
    this.address = dockerHost(parsed)
    this.#target = target(parsed)
  }

  /** What was negotiated with the engine that answers now; asked once and kept until `renegotiate`. */
  version(): Promise<EngineVersion> {
    this.#version ??= this.#negotiate().catch(error => {
      this.#version = undefined
      throw error
    })
    return this.#version
  }

  /** Forgets the negotiated version: whoever lost a connection calls this, since another engine may answer now. */
  renegotiate(): void {
    this.#version = undefined
  }

  /** One bounded call. The answer is taken as the type the caller names; an empty answer is undefined. */
  async json<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const limit = this.#limit(options)
    try {
      const response = await this.#versioned(method, path, options, limit.signal, method === 'GET')
      const text = await textOf(response)
      return (text ? JSON.parse(text) : undefined) as T
    } catch (error) {
      throw this.explain(limit.cause(error))
    } finally {
      limit.release()
    }
  }

  /** An answer that goes on: its start is bounded, its length is not. Ends by `signal`, `destroy()` or the engine. */
  async stream(method: string, path: string, options: CallOptions = {}): Promise<IncomingMessage> {
    const limit = this.#limit(options)
    try {
      const response = await this.#versioned(method, path, options, limit.signal, false)
      // From here on only the caller and close() may end it.
      limit.disarm()
      response.once('close', () => limit.release())
      return response
    } catch (error) {
      limit.release()
      throw this.explain(limit.cause(error))
    }
  }

  /** A POST whose connection becomes a two-way byte stream. */
  async hijack(path: string, options: CallOptions = {}): Promise<Duplex> {
    const limit = this.#limit(options)
    try {
      const { prefix } = await this.version()
      const socket = await this.#upgrade(prefix + path, options, limit.signal)
      limit.disarm()
      const end = () => socket.destroy()
      limit.signal.addEventListener('abort', end, { once: true })
      socket.once('close', () => limit.release())
      return socket
    } catch (error) {
      limit.release()
      throw this.explain(limit.cause(error))
    }
  }

  /** A connection error in the words of this engine; anything else as it is. */
  explain(error: unknown): unknown {
    if (error instanceof Failure || !(error instanceof Error) || error.name === 'AbortError') return error
    if (error instanceof SyntaxError) {
      return new Failure(
        'UPSTREAM_FAILED',
        `What answers at ${this.address} is not a container engine.`,
        undefined,
        error,
      )
    }
    const code = 'code' in error ? String(error.code) : undefined
    if (code === undefined) return error
    this.renegotiate()
    return new Failure('ENGINE_UNAVAILABLE', unavailable(code, this.address), undefined, error)
  }

  close(): void {
    this.#closed.abort(new Failure('ENGINE_UNAVAILABLE', 'The agent is stopping.'))
    this.#agent.destroy()
  }

  async #negotiate(): Promise<EngineVersion> {
    const limit = this.#limit({ deadlineMs: negotiationMs })
    try {
      const response = await accepted(await this.#request('GET', '/version', {}, limit.signal, false))
      return chooseVersion(JSON.parse(await textOf(response)), this.address)
    } catch (error) {
      throw this.explain(limit.cause(error))
    } finally {
      limit.release()
    }
  }

  /** The engine may have been exchanged under a negotiated version: one refusal for that reason is answered by asking again. */
  async #versioned(method: string, path: string, options: CallOptions, signal: AbortSignal, pooled: boolean) {
    const send = async () => {
      const { prefix } = await this.version()
      signal.throwIfAborted()
      return accepted(await this.#request(method, prefix + path, options, signal, pooled))
    }
    try {
      return await send()
    } catch (error) {
      const again = error instanceof EngineError ? isVersionRefusal(error.said) : pooled && isStale(error, signal)
      if (!again) throw error
      this.renegotiate()
      return send()
    }
  }

  /** Only reads use kept connections: one that went stale must never make us wonder whether a change was done. */
  #request(method: string, path: string, options: CallOptions, signal: AbortSignal, pooled: boolean) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const request = http.request({ ...this.#head(method, path, options), signal, agent: pooled ? this.#agent : false })
    request.once('response', resolve)
    request.on('error', reject)
    request.end(payload(options.body))
    return promise
  }

  #upgrade(path: string, options: CallOptions, signal: AbortSignal): Promise<Duplex> {
    const { promise, resolve, reject } = Promise.withResolvers<Duplex>()
    const head = this.#head('POST', path, options)
    const headers = { ...head.headers, connection: 'Upgrade', upgrade: 'tcp' }
    const request = http.request({ ...head, headers, signal, agent: false })
    request.once('upgrade', (_response, socket, first) => {
      if (first.length) socket.unshift(first)
      resolve(socket)
    })
    request.once('response', response => {
      accepted(response).then(() => reject(new Error('The engine did not open the connection.')), reject)
    })
    request.on('error', reject)
    request.end(payload(options.body))
    return promise
  }

  #head(method: string, path: string, { query, body, headers }: CallOptions) {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    return { ...this.#target, method, path: path + queryText(query), headers: { host: 'engine', ...type, ...headers } }
  }

  #limit({ deadlineMs = defaultDeadlineMs, signal }: CallOptions): Limit {
    const sentence = `The container engine at ${this.address} did not answer within ${Math.ceil(deadlineMs / 1000)} s.`
    return new Limit(deadlineMs, () => new Failure('TIMEOUT', sentence), signal, this.#closed.signal)
  }
}

const defaultDeadlineMs = 30_000
const negotiationMs = 10_000

function target(address: EngineAddress): { socketPath: string } | { host: string; port: number } {
  if (address.kind === 'unix') return { socketPath: address.path }
  return { host: address.host, port: address.port }
}

function codeOf(status: number): 'NOT_FOUND' | 'CONFLICT' | 'UPSTREAM_FAILED' {
  if (status === 404) return 'NOT_FOUND'
  return status === 409 ? 'CONFLICT' : 'UPSTREAM_FAILED'
}

async function accepted(response: IncomingMessage): Promise<IncomingMessage> {
  const status = response.statusCode ?? 500
  if (status < 400) return response
  const text = await textOf(response)
  throw new EngineError(status, messageOf(text) || `status ${status}`)
}

function messageOf(text: string): string {
  try {
    const body: unknown = JSON.parse(text)
    if (body && typeof body === 'object' && 'message' in body) return String(body.message).trim()
  } catch {
    // Some refusals are plain text.
  }
  return text.trim().slice(0, 1000)
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const payload = (body: unknown): string | undefined => (body === undefined ? undefined : JSON.stringify(body))

function queryText(query: CallOptions['query']): string {
  const pairs = Object.entries(query ?? {}).flatMap(([key, value]) => {
    if (value === undefined) return []
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    return [`${key}=${encodeURIComponent(text)}`]
  })
  return pairs.length ? `?${pairs.join('&')}` : ''
}

/** A kept connection that the engine had closed meanwhile. */
function isStale(error: unknown, signal: AbortSignal): boolean {
  return (
    !signal.aborted &&
    error instanceof Error &&
    'code' in error &&
    (error.code === 'ECONNRESET' || error.code === 'EPIPE')
  )
}

function unavailable(code: string, address: string): string {
  if (code === 'ENOENT') {
    return `There is no container engine at ${address}: start Docker or Podman, or set engine.socket to its address.`
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return `The agent may not open ${address}: run it as root, or add its user to the group that owns the socket.`
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') {
    return `The container engine at ${address} closed the connection: it stopped or restarts; try again in a moment.`
  }
  return `The container engine at ${address} does not answer (${code || 'no connection'}): start it, or set engine.socket to its address.`
}
