// The list of operations as HTTP routes: routing, then authentication, then the door; answers and errors in one form.

import type { IncomingMessage, Server } from 'node:http'
import { Readable } from 'node:stream'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { Answer, Call, Door } from '../core/door.ts'
import { Failure, fail } from '../core/failure.ts'
import {
  type ApplyOperation,
  type Command,
  isMutation,
  mayBeJob,
  type Operation,
  type RawInput,
  Streamed,
} from '../core/operation.ts'
import { type Actor, system } from '../core/permission.ts'
import { renderFailure, toFailure } from './errors.ts'
import { allowOrigin, type CorsSettings, DOCS_POLICY, hardenedHeaders } from './headers.ts'
import { KnownPaths, pathOf } from './path.ts'
import { renderedOf } from './rendered.ts'
import { answerWebsockets, isFollow } from './websocket.ts'

export interface HttpSettings {
  maxBodyBytes: number
  trustProxy: boolean
  cors: () => CorsSettings
  tls?: { cert: string; key: string }
}

export interface HttpParts {
  door: Door
  operations: readonly Operation[]
  settings: HttpSettings
  log: FastifyBaseLogger
  /** The actor behind a token, with the rights he has now; a Failure for anybody else. */
  identify(token: string): Actor | Promise<Actor>
  /** With authentication off everybody is an administrator. */
  authEnabled(): boolean
}

/** What a request is found to be on its way, for its line in the log. */
interface Carrying {
  actor?: Actor
  call?: Call
}

/** What is in flight when the agent is stopped may take so long. */
const IN_FLIGHT_MS = 10_000
const NDJSON = /\bapplication\/x-ndjson\b/

/** Validation is the door's, and no route has a schema; without these Fastify loads compilers that nothing uses. */
const unused = (): never => fail('INTERNAL', 'A route has a schema of its own.')
const NO_COMPILERS = { buildValidator: unused, buildSerializer: unused }

export function httpServer(parts: HttpParts): FastifyInstance {
  const { door, operations, settings, log } = parts
  let count = 0
  const boot = Date.now().toString(36)
  // Any other request to upgrade (`h2c`, say) is answered as the plain request it also is.
  const upgrading = { shouldUpgradeCallback: (request: IncomingMessage) => isFollow(operations, request) }
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => `${boot}-${(count++).toString(36)}`,
    bodyLimit: settings.maxBodyBytes,
    schemaController: { compilersFactory: NO_COMPILERS },
    trustProxy: settings.trustProxy,
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: false },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    clientErrorHandler: (_error, socket) => {
      if (socket.writable) socket.end(malformed(harden))
      else socket.destroy()
    },
    frameworkErrors: (error, request, reply) =>
      renderFailure(toFailure(error), request, (reply as FastifyReply).headers(harden)),
    ...(settings.tls ? { https: { ...settings.tls, ...upgrading } } : { http: upgrading }),
  }) as unknown as FastifyInstance
  const harden = hardenedHeaders(settings.tls !== undefined)
  const hardenDocs = { ...harden, 'content-security-policy': DOCS_POLICY }

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
    if (text === '') return done(null, undefined)
    try {
      done(null, JSON.parse(text as string))
    } catch (error) {
      done(new Failure('INVALID_JSON', `The body is not valid JSON: ${jsonFault(error)}.`) as unknown as Error)
    }
  })
  app.decorateRequest('actor', undefined)
  app.decorateRequest('call', undefined)
  const known = new KnownPaths(operations)
  app.addHook('onRequest', (request, reply, next) => {
    const headers = request.url.startsWith('/api/docs') ? hardenDocs : harden
    reply.headers(headers).header('x-request-id', request.id)
    if (allowOrigin(settings.cors(), request, reply)) return
    // Before the body is looked at, whatever it is.
    if (request.is404 || hasEmptyParameter(request)) refuseRoute(known, request, reply)
    else next()
  })
  app.addHook('onResponse', (request, reply, next) => {
    const { actor, call } = request as Carrying
    const line = {
      reqId: request.id,
      method: request.method,
      path: call?.path ?? pathOf(request.url),
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 10) / 10,
      ip: request.ip,
      actor: actor?.name,
      deployment: call?.deployment,
    }
    if (reply.statusCode >= 500) log.warn(line, 'request')
    else log.info(line, 'request')
    next()
  })
  app.setErrorHandler((error, request, reply) => renderFailure(toFailure(error), request, reply))
  const authenticate = (request: FastifyRequest, _reply: FastifyReply, next: (error?: Error) => void) => {
    const found = actorOf(parts, request.headers.authorization)
    const enter = (actor: Actor) => {
      ;(request as Carrying).actor = actor
      next()
    }
    if (found instanceof Promise) found.then(enter, next)
    else enter(found)
  }
  for (const operation of operations) {
    const { method, path, also = [] } = operation.http
    const open = operation.permission === 'public' || operation.kind === 'follow'
    const handler = handlerOf(operation, door)
    const route = {
      method: [method, ...also],
      url: path,
      handler,
      ...(open ? {} : { onRequest: authenticate }),
      ...(isMutation(operation) ? { errorHandler: refusing(operation, door) } : {}),
    }
    if (!operation.http.upload) app.route(route)
    else
      void app.register(async raw => {
        raw.removeAllContentTypeParsers()
        raw.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
        raw.route({ ...route, bodyLimit: Number.MAX_SAFE_INTEGER })
      })
  }
  const endFollows = answerWebsockets(app.server as Server, parts, (path, socket) =>
    clientIp(settings.trustProxy, path, socket),
  )
  app.addHook('preClose', done => {
    endFollows()
    setTimeout(() => app.server.closeAllConnections(), IN_FLIGHT_MS).unref()
    done()
  })
  return app
}

/** Routing comes first, so this is asked only for what exists. */
export function actorOf(
  parts: Pick<HttpParts, 'identify' | 'authEnabled'>,
  header: string | undefined,
): Actor | Promise<Actor> {
  if (!parts.authEnabled()) return system
  const token = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
  return token === undefined ? fail('UNAUTHENTICATED', 'Authorization header required') : parts.identify(token)
}

/** The answer to what is not HTTP, or has headers beyond measure: there is no request, so it is written by hand. */
function malformed(headers: Record<string, string>): string {
  const body = JSON.stringify(
    new Failure('VALIDATION_FAILED', 'The request is not valid HTTP, or its headers are too long.').body(),
  )
  const all = {
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    connection: 'close',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return ['HTTP/1.1 400 Bad Request', ...lines, '', body].join('\r\n')
}

/** The router takes `/api/users/` for `/api/users/:id` with nothing in it. */
function hasEmptyParameter({ params }: FastifyRequest): boolean {
  for (const name in params as Record<string, string>) if ((params as Record<string, string>)[name] === '') return true
  return false
}

/** What no route takes: an unknown path, or a known one with another method. */
function refuseRoute(known: KnownPaths, request: FastifyRequest, reply: FastifyReply): void {
  const path = pathOf(request.url)
  const methods = known.methodsOf(path)
  if (methods === undefined) {
    const sentence = `There is nothing at ${path}. The operations are listed at /api/openapi.json.`
    renderFailure(new Failure('NOT_FOUND', sentence), request, reply)
    return
  }
  const allow = methods.join(', ')
  reply.header('allow', allow)
  const sentence = `${request.method} is not possible on ${path}; ${allow} is.`
  renderFailure(new Failure('METHOD_NOT_ALLOWED', sentence), request, reply)
}

function handlerOf(operation: Operation, door: Door) {
  if (operation.kind === 'follow') {
    return (request: FastifyRequest, reply: FastifyReply) => {
      reply.header('upgrade', 'websocket')
      renderFailure(
        new Failure('UPGRADE_REQUIRED', 'This path is a websocket: connect to it with ws:// or wss://.'),
        request,
        reply,
      )
      return reply
    }
  }
  if (operation.kind === 'download') {
    return async (request: FastifyRequest, reply: FastifyReply) => {
      const { mediaType, filename, chunks } = await door.download(operation, callOf(operation, request))
      if (filename) reply.header('content-disposition', `attachment; filename="${filename}"`)
      return reply
        .header('cache-control', 'no-store')
        .type(mediaType)
        .send(chunks instanceof Readable ? chunks : Readable.from(chunks, ONE_AT_A_TIME))
    }
  }
  if (operation.kind === 'query') {
    const cacheable = operation.http.method === 'GET' && operation.permission !== 'public'
    return (request: FastifyRequest, reply: FastifyReply) => {
      const answer = door.question(operation, callOf(operation, request))
      if (answer instanceof Promise) return answer.then(found => send(request, reply, found, cacheable))
      send(request, reply, answer, cacheable)
      return undefined
    }
  }
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const call = callOf(operation, request)
    const streams = isMutation(operation) && !call.plan && !call.respondAsync
    const lines = streams && NDJSON.test(request.headers.accept ?? '') ? new Lines(reply) : undefined
    if (lines) call.onEvent = event => lines.write(event)
    try {
      const answer = await door.answer(operation, call)
      if (lines) return lines.end(answer.status, answer.body)
      return send(request, reply, answer, false)
    } catch (thrown) {
      if (!lines?.open) throw thrown
      const failure = toFailure(thrown)
      return lines.end(failure.status, failure.body())
    }
  }
}

/** A change that is refused before the door sees it is on record as well, unless nobody is known to have asked for it. */
function refusing(operation: Command | ApplyOperation, door: Door) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const failure = toFailure(error)
    const { actor, call = plainCall(operation, request) } = request as Carrying
    if (actor || operation.permission === 'public') {
      door.refused(operation, call, failure, performance.now() - reply.elapsedTime)
    }
    renderFailure(failure, request, reply)
  }
}

function callOf(operation: Operation, request: FastifyRequest): Call {
  const query = request.query as Record<string, unknown>
  const call = plainCall(operation, request)
  ;(request as Carrying).call = call
  if (!isMutation(operation)) return call
  if (query.plan !== undefined) {
    if (query.plan !== 'true' && query.plan !== 'false') {
      fail('VALIDATION_FAILED', '`plan` must be true or false.', [{ path: 'plan', message: 'must be true or false' }])
    }
    call.plan = query.plan === 'true'
    const { plan: _, ...rest } = query
    call.raw.query = rest
  }
  const key = request.headers['idempotency-key']
  if (typeof key === 'string') call.idempotencyKey = key
  if (request.headers['if-match'] !== undefined) call.ifMatch = request.headers['if-match']
  call.respondAsync = mayBeJob(operation) && /\brespond-async\b/.test(String(request.headers.prefer ?? ''))
  if (operation.http.upload) call.upload = request.body as Readable
  return call
}

function plainCall(operation: Operation, request: FastifyRequest): Call {
  const query = request.query as Record<string, unknown>
  return {
    actor: (request as Carrying).actor ?? system,
    raw: {
      params: request.params as Record<string, string>,
      query,
      body: operation.http.upload ? undefined : request.body,
    } satisfies RawInput,
    origin: {
      requestId: request.id,
      clientIp: request.ip,
      userAgent: request.headers['user-agent']?.slice(0, 300) ?? null,
    },
    method: request.method === 'HEAD' ? 'GET' : request.method,
    path: pathOf(request.url),
  }
}

function send(request: FastifyRequest, reply: FastifyReply, answer: Answer, cacheable: boolean): FastifyReply {
  const { data } = answer.body as { data?: unknown }
  if (data instanceof Streamed)
    return reply
      .header('cache-control', 'no-store')
      .type('application/json; charset=utf-8')
      .send(Readable.from(jsonParts(data, answer.body), ONE_AT_A_TIME))
  const rendered = renderedOf(answer.body, answer.revision)
  reply.code(answer.status).type('application/json; charset=utf-8')
  if (!cacheable) return reply.header('cache-control', 'no-store').send(rendered.body)
  const { etag } = rendered
  reply.header('etag', etag).header('cache-control', 'private, no-cache')
  if (noneMatches(request.headers['if-none-match'], etag)) return reply.code(304).removeHeader('content-type').send()
  return reply.send(rendered.body)
}

function noneMatches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

const PART_LENGTH = 64 * 1024

/** A text is handed to the socket as it is: as buffers all of an export would wait in memory to be collected. */
const ONE_AT_A_TIME = { objectMode: true, highWaterMark: 1 }

/** A long list as one JSON text, some batches at a time; what fails before the first part is an ordinary error. */
async function* jsonParts(list: Streamed<unknown>, body: object): AsyncGenerator<string> {
  const { data: _, ...rest } = body as { data: unknown }
  let text = '{"data":['
  let comma = ''
  for await (const batch of list.batches) {
    if (batch.length === 0) continue
    text += comma + JSON.stringify(batch).slice(1, -1)
    comma = ','
    if (text.length < PART_LENGTH) continue
    yield text
    text = ''
  }
  yield `${text}],${JSON.stringify(rest).slice(1)}`
}

/** Newline-delimited JSON: begun with the first line, so that a refusal before it is an ordinary answer. */
class Lines {
  open = false
  readonly #reply: FastifyReply

  constructor(reply: FastifyReply) {
    this.#reply = reply
  }

  write(line: object): void {
    if (!this.open) this.#begin()
    this.#reply.raw.write(`${JSON.stringify(line)}\n`)
  }

  end(status: number, body: object): FastifyReply {
    this.write({ type: 'result', status, body })
    this.#reply.raw.end()
    return this.#reply
  }

  #begin(): void {
    this.open = true
    this.#reply.hijack()
    this.#reply.raw.writeHead(200, {
      ...this.#reply.getHeaders(),
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
    } as Record<string, string>)
  }
}

/** The parser's words without the text it quotes, which may hold a secret. */
function jsonFault(error: unknown): string {
  const position = /position (\d+)(?: \(line (\d+) column (\d+)\))?/.exec(String(error))
  return position?.[2]
    ? `line ${position[2]}, column ${position[3]}`
    : position
      ? `position ${position[1]}`
      : 'it ends too early'
}

function clientIp(trustProxy: boolean, request: IncomingMessage, remote: string | undefined): string | null {
  const forwarded = trustProxy
    ? String(request.headers['x-forwarded-for'] ?? '')
        .split(',')[0]
        ?.trim()
    : ''
  return forwarded || remote || null
}
