// Follow operations over websockets: the token as first message, backpressure with a drop notice, rights re-checked.

import type { IncomingMessage, Server } from 'node:http'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import type { Call } from '../core/door.ts'
import type { Code, Failure } from '../core/failure.ts'
import type { FollowOperation } from '../core/operation.ts'
import { type Actor, system } from '../core/permission.ts'
import { toFailure } from './errors.ts'
import { actorOf, type HttpParts } from './server.ts'

const TOKEN_LIMIT_MS = 10_000
/** More than this unsent, and lines are dropped until the reader has caught up. */
const BUFFER_LIMIT = 1 << 20
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
  const follows = parts.operations.filter(operation => operation.kind === 'follow')
  server.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url ?? '/', 'http://agent')
    const found = follows.flatMap(operation => {
      const params = pathMatch(operation.http.path, url.pathname)
      return params ? [{ operation, params }] : []
    })[0]
    if (!found) {
      socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      return
    }
    sockets.handleUpgrade(request, socket, head, websocket => {
      const call = {
        raw: { params: found.params, query: queryOf(url), body: undefined },
        origin: {
          requestId: crypto.randomUUID(),
          clientIp: ipOf(request, request.socket.remoteAddress),
          userAgent: request.headers['user-agent'] ?? null,
        },
        method: 'GET',
        path: url.pathname,
      }
      void serve(websocket, found.operation, call, request.headers.authorization, parts)
    })
  })
  return () => {
    for (const client of sockets.clients) {
      client.close(1001, 'the agent is being stopped')
      setTimeout(() => client.terminate(), GOODBYE_MS).unref()
    }
  }
}

async function serve(
  socket: WebSocket,
  operation: FollowOperation,
  anonymous: Omit<Call, 'actor'>,
  header: string | undefined,
  parts: HttpParts,
): Promise<void> {
  const gone = new AbortController()
  socket.on('close', () => gone.abort())
  socket.on('error', () => gone.abort())
  try {
    const token = parts.authEnabled() ? await tokenOf(socket, header) : undefined
    const actor = async (): Promise<Actor> => (token === undefined ? system : actorOf(parts, `Bearer ${token}`))
    const call: Call = { ...anonymous, actor: await actor() }
    const recheck = setInterval(() => void stillAllowed(socket, operation, call, actor, parts), RECHECK_MS)
    try {
      await pour(socket, await parts.door.follow(operation, call, gone.signal), gone.signal)
    } finally {
      clearInterval(recheck)
    }
  } catch (thrown) {
    refuse(socket, toFailure(thrown))
  }
}

/** Sends frames as fast as the reader takes them; what it can't take is counted and told. */
async function pour(socket: WebSocket, frames: AsyncIterable<object>, gone: AbortSignal): Promise<void> {
  let dropped = 0
  for await (const frame of frames) {
    if (gone.aborted) return
    if (socket.bufferedAmount > BUFFER_LIMIT) {
      dropped++
      continue
    }
    if (dropped > 0) socket.send(JSON.stringify({ type: 'dropped', count: dropped }))
    dropped = 0
    socket.send(JSON.stringify(frame))
  }
  if (gone.aborted) return
  if (dropped > 0) socket.send(JSON.stringify({ type: 'dropped', count: dropped }))
  socket.send(JSON.stringify({ type: 'end' }))
  socket.close(1000)
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
  socket.close(closeCodes[failure.code] ?? 1011, failure.message.slice(0, 100))
}

function pathMatch(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index] as string
    if (part.startsWith(':')) params[part.slice(1)] = decode(value)
    else if (part !== value) return undefined
  }
  return params
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function queryOf(url: URL): Record<string, unknown> {
  return Object.fromEntries(
    [...new Set(url.searchParams.keys())].map(key => {
      const all = url.searchParams.getAll(key)
      return [key, all.length > 1 ? all : all[0]]
    }),
  )
}
