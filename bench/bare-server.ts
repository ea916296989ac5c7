// The bare route the agent is compared with: Fastify, the same bytes, headers and log line, and nothing else.
// node bench/bare-server.ts PORT LOG-FILE, with the answer to copy as JSON on standard input.

import { json } from 'node:stream/consumers'
import Fastify, { LogController } from 'fastify'
import { openLog } from '../src/log.ts'

const [port, file] = process.argv.slice(2)
/** A body that is a text is sent as it is; any other is made into JSON for each request. */
const answer = (await json(process.stdin)) as { path: string; headers: Record<string, string>; body: object | string }
const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body
const { 'content-type': type = '', 'x-request-id': _, ...headers } = answer.headers

const log = openLog({ level: 'info', format: 'auto', file: file as string, stdout: 1 })
let count = 0
const app = Fastify({
  loggerInstance: log.logger,
  logController: new LogController({ disableRequestLogging: true }),
  genReqId: () => `bare-${(count++).toString(36)}`,
})
app.addHook('onResponse', (request, reply, next) => {
  const { id, method, url, ip } = request
  const ms = Math.round(reply.elapsedTime * 10) / 10
  log.logger.info({ reqId: id, method, path: url, status: reply.statusCode, ms, ip }, 'request')
  next()
})
app.get(answer.path, (request, reply) => {
  reply.headers(headers).header('x-request-id', request.id).type(type).send(body)
})
await app.listen({ host: '127.0.0.1', port: Number(port) })
