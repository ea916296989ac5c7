// One exchange with the agent over HTTP; what keeps it from happening is told in words a person can act on.

import type { IncomingMessage, RequestOptions } from 'node:http'
import type { Readable } from 'node:stream'
import { ClientError, Refusal } from './failure.ts'

export interface Ask {
  method: string
  /** From /api on, with its query. */
  path: string
  headers?: Record<string, string>
  /** A text, or a maker of a stream, which is called again when the request has to be repeated. */
  body?: string | (() => Readable)
  /** It can't be sent a second time. */
  once?: true
  /** Open to everybody: it goes without a token, and a 401 is an answer like any other. */
  open?: true
}

const CONNECT_LIMIT_MS = 10_000

export async function exchange(base: string, ask: Ask): Promise<IncomingMessage> {
  const url = new URL(base.replace(/\/$/, '') + ask.path)
  const { request } = moduleFor(url)
  const options: RequestOptions = { method: ask.method, headers: { 'user-agent': 'fairlead-client', ...ask.headers } }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sending = request(url, options, answer => {
    // A refusal comes before the file is through; the rest of it would wait for ever to be read.
    answer.on('end', () => sending.writableFinished || sending.destroy())
    resolve(answer)
  })
  sending.on('error', error => reject(unreachable(base, error)))
  sending.on('socket', socket => {
    if (!socket.connecting) return
    const late = () => sending.destroy(Object.assign(new Error('no answer within 10 seconds'), { code: 'ETIMEDOUT' }))
    const timer = setTimeout(late, CONNECT_LIMIT_MS)
    socket.once('connect', () => clearTimeout(timer))
    socket.once('close', () => clearTimeout(timer))
  })
  if (typeof ask.body === 'function')
    ask
      .body()
      .on('error', error => sending.destroy(error))
      .pipe(sending)
  else sending.end(ask.body)
  return requireAgent(base, await promise)
}

export async function textOf(answer: IncomingMessage): Promise<string> {
  answer.setEncoding('utf8')
  let text = ''
  try {
    for await (const part of answer) text += part
  } catch {
    throw new ClientError('The connection broke in the middle of the answer. Try again.')
  }
  return text
}

/** The whole answer, or the server's refusal. */
export async function doneText(answer: IncomingMessage): Promise<string> {
  const text = await textOf(answer)
  if (isRefusal(answer)) throw new Refusal(answer.statusCode ?? 0, text)
  return text
}

export const isRefusal = ({ statusCode = 0 }: IncomingMessage): boolean => statusCode >= 400

/** The lines of an answer as they come. */
export async function* linesOf(answer: IncomingMessage): AsyncGenerator<string> {
  answer.setEncoding('utf8')
  let rest = ''
  for await (const part of answer) {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

/** More certificates to trust, for everything this process connects to. */
export async function trust(pem: string): Promise<void> {
  const { getCACertificates, setDefaultCACertificates } = await import('node:tls')
  setDefaultCACertificates([...getCACertificates('default'), pem])
}

/**
 * A client is started for every command, so what it loads is felt. fetch would load all of undici, and so would an
 * `import` of node:http, because a module's namespace reads every export, the lazy WebSocket among them.
 */
function moduleFor({ protocol }: URL): Pick<typeof import('node:http'), 'request'> {
  return process.getBuiltinModule(protocol === 'https:' ? 'node:https' : 'node:http')
}

/** Something answers; a redirect or a page of another program is not the agent. */
function requireAgent(base: string, answer: IncomingMessage): IncomingMessage {
  const { statusCode = 0, headers } = answer
  const refuse = (sentence: string): never => {
    // Left unread it would keep the process waiting.
    answer.destroy()
    throw new ClientError(sentence)
  }
  if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) {
    refuse(`${base} sends to ${headers.location}. Log in with that address: fairlead login URL`)
  }
  if (statusCode >= 400 && !/json/.test(headers['content-type'] ?? '')) {
    refuse(`${base} answered with status ${statusCode} and no words of a Fairlead agent. Is the address right?`)
  }
  return answer
}

function unreachable(base: string, error: NodeJS.ErrnoException): ClientError {
  const { code = '', message } = error
  if (code in CERTIFICATE_FAULTS) {
    const what = CERTIFICATE_FAULTS[code]
    return new ClientError(
      `The certificate of ${base} is not trusted: ${what}. If it is yours, log in with --ca-file FILE (the certificate of its issuer, in PEM).`,
    )
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) {
    return new ClientError(`${base} does not speak HTTPS. Log in with its http:// address, or ask who runs it.`)
  }
  if (code.startsWith('HPE_')) return new ClientError(`${base} does not speak HTTP. Is it an https:// address?`)
  const reason = REASONS[code] ?? (message || code)
  return new ClientError(
    `${base} can't be reached: ${reason}. Check that the agent runs and that the address is right (fairlead profiles shows it).`,
  )
}

const CERTIFICATE_FAULTS: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'it is signed by itself',
  SELF_SIGNED_CERT_IN_CHAIN: 'its issuer is signed by itself',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its issuer is not known',
  UNABLE_TO_GET_ISSUER_CERT: 'its issuer is not known',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its issuer is not known',
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'it is made for another name',
  HOSTNAME_MISMATCH: 'it is made for another name',
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name could not be looked up',
  ETIMEDOUT: 'no answer within 10 seconds',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ECONNRESET: 'the connection was cut',
}
