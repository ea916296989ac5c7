// Follow operations over websockets: the token as first message, backpressure with a drop notice, rights re-checked.

import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import type { Call } from '../core/door.ts'
import type { Code, Failure } from '../core/failure.ts'
import type { FollowOperation, Operation } from '../core/operation.ts'
import { type Actor, system } from '../core/permission.ts'
import { toFailure } from './errors.ts'
import { pathMatch, pathOf } from './path.ts'
import { actorOf, type HttpParts } from './server.ts'

const TOKEN_LIMIT_MS = 10_000
/** With this much unsent the source waits. */
const BUFFER_LIMIT = 1 << 20
/** It waits no longer than this: then frames are dropped until the reader has taken all that was sent. */
const PATIENCE_MS = 500
const RECHECK_MS = 1000
/** How long a reader may take to agree to the end. */
const GOODBYE_MS = 500

const closeCodes: Partial<Record<Code, number>> = {
  VALIDATION_FAILED: 4400,
  UNAUTHENTICATED: 4401,
  FORBIDDEN: 4403,
  NOT_FOUND: 4404,
  ENGINE_UNAVAILABLE: 4503,
  SERVICE_UNAVAILABLE: 4503,
}

/** Returns the way to end all of them. */
export function answerWebsockets(
  server: Server,
  parts: HttpParts,
  ipOf: (request: IncomingMessage, remote: string | undefined) => string | null,
): () => void {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024 })
  server.on('upgrade', (request, socket, head) => {
    const found = followAt(parts.operations, request)
    if (!found) return void socket.destroy()
    const url = request.url ?? ''
    sockets.handleUpgrade(request, socket, head, websocket => {
      const call = {
        raw: {
          params: found.params,
          query: queryOf(new URLSearchParams(url.slice(pathOf(url).length))),
          body: undefined,
        },
        origin: {
          requestId: crypto.randomUUID(),
          clientIp: ipOf(request, request.socket.remoteAddress),
          userAgent: request.headers['user-agent'] ?? null,
        },
        method: 'GET',
        path: pathOf(url),
      }
      void serve(new Outlet(websocket, socket), found.operation, call, request.headers.authorization, parts)
    })
  })
  return () => {
    for (const client of sockets.clients) {
      client.close(1001, 'the agent is being stopped')
      setTimeout(() => client.terminate(), GOODBYE_MS).unref()
    }
  }
}

/** Whether a request asks for a websocket where there is one. */
export function isFollow(operations: readonly Operation[], request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === 'websocket' && followAt(operations, request) !== undefined
}

function followAt(operations: readonly Operation[], { url = '' }: IncomingMessage) {
  for (const operation of operations) {
    const params = operation.kind === 'follow' ? pathMatch(operation.http.path, pathOf(url)) : undefined
    if (operation.kind === 'follow' && params) return { operation, params }
  }
  return undefined
}

async function serve(
  outlet: Outlet,
  operation: FollowOperation,
  anonymous: Omit<Call, 'actor'>,
  header: string | undefined,
  parts: HttpParts,
): Promise<void> {
  const { socket } = outlet
  const gone = new AbortController()
  socket.on('close', () => gone.abort())
  socket.on('error', () => gone.abort())
  try {
    const token = parts.authEnabled() ? await tokenOf(socket, header) : undefined
    const actor = async (): Promise<Actor> => (token === undefined ? system : actorOf(parts, `Bearer ${token}`))
    const call: Call = { ...anonymous, actor: await actor() }
    const recheck = setInterval(() => void stillAllowed(socket, operation, call, actor, parts), RECHECK_MS)
    try {
      await pour(outlet, await parts.door.follow(operation, call, gone.signal), gone.signal)
    } finally {
      clearInterval(recheck)
    }
  } catch (thrown) {
    refuse(socket, toFailure(thrown))
  }
}

/** Sends frames as fast as the reader takes them; what it can't take in time is counted and told. */
async function pour(outlet: Outlet, frames: AsyncIterable<object>, gone: AbortSignal): Promise<void> {
  let dropped = 0
  const tellDropped = () => {
    if (dropped > 0) outlet.send({ type: 'dropped', count: dropped })
    dropped = 0
  }
  for await (const frame of frames) {
    if (gone.aborted) return
    if (outlet.isBehind) {
      dropped++
      continue
    }
    tellDropped()
    const taken = outlet.send(frame)
    if (taken) await taken
  }
  if (gone.aborted) return
  tellDropped()
  outlet.send({ type: 'end' })
  outlet.socket.close(1000)
}

/** Where frames go out to one reader. */
class Outlet {
  readonly socket: WebSocket
  readonly #connection: Duplex
  /** The reader has not taken yet what filled the buffer. */
  isBehind = false

  constructor(socket: WebSocket, connection: Duplex) {
    this.socket = socket
    this.#connection = connection
  }

  /** A promise when the buffer is full: it is kept when the reader has taken everything, or had long enough. */
  send(frame: object): Promise<void> | undefined {
    this.#gather()
    const text = JSON.stringify(frame)
    if (this.socket.bufferedAmount < BUFFER_LIMIT) {
      this.socket.send(text)
      return undefined
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, PATIENCE_MS)
    this.isBehind = true
    this.socket.send(text, () => {
      this.isBehind = false
      clearTimeout(timer)
      resolve()
    })
    return promise
  }

  /** All frames that are there at once leave in one write: a write for each would cost more than all else. */
  #gather(): void {
    if (this.#connection.writableCorked > 0) return
    this.#connection.cork()
    process.nextTick(() => this.#connection.uncork())
  }
}

async function stillAllowed(
  socket: WebSocket,
  operation: FollowOperation,
  call: Call,
  actor: () => Promise<Actor>,
  parts: HttpParts,
): Promise<void> {
  try {
    if (!parts.door.admits(operation, { ...call, actor: await actor() })) socket.close(4403, 'no longer allowed')
  } catch {
    socket.close(4401, 'Invalid or expired token')
  }
}

/** A header will do; otherwise the first message is the token, bare or as `{"type":"auth","token":…}`. */
async function tokenOf(socket: WebSocket, header: string | undefined): Promise<string> {
  const fromHeader = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
  if (fromHeader) return fromHeader
  const { promise, resolve } = Promise.withResolvers<string>()
  const timer = setTimeout(() => socket.close(4401, 'the token came too late'), TOKEN_LIMIT_MS)
  socket.once('message', (data: RawData) => resolve(String(data)))
  socket.once('close', () => clearTimeout(timer))
  const text = (await promise).trim()
  clearTimeout(timer)
  if (!text.startsWith('{')) return text
  try {
    const { token } = JSON.parse(text) as { token?: unknown }
    return typeof token === 'string' ? token : ''
  } catch {
    return ''
  }
}

function refuse(socket: WebSocket, failure: Failure): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: 'error', error: failure.message }))
  // A close frame holds at most 123 bytes of reason.
  socket.close(closeCodes[failure.code] ?? 1011, Buffer.from(failure.message).toString('utf8', 0, 100))
}

function queryOf(search: URLSearchParams): Record<string, unknown> {
  return Object.fromEntries(
    [...new Set(search.keys())].map(key => {
      const all = search.getAll(key)
      return [key, all.length > 1 ? all : all[0]]
    }),
  )
}
