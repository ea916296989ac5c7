// Logs in to a registry as an engine would, to see whether a name and password are right: basic or with a token.

import type { IncomingHttpHeaders } from 'node:http'
import https from 'node:https'
import { asFailure, Failure } from '../../core/failure.ts'
import { http } from '../../lib/node-http.ts'
import { apiBases, isLoopback, type RegistryAddress } from './address.ts'
import { guardedLookup, hostName, isForbidden } from './guard.ts'

export interface Login {
  address: RegistryAddress
  username: string
  password: string
  /** Certificates are not checked, and plain HTTP is tried. */
  insecure: boolean
  deadlineMs?: number
}

export type LoginOutcome = { success: true } | { success: false; error: string }

const DEADLINE_MS = 10_000
const LONGEST_ANSWER = 64 * 1024

/** Bounded in time and in what it reads; a refusal is an outcome, not an error. */
export async function registryLogin(login: Login): Promise<LoginOutcome> {
  const { address, insecure, deadlineMs = DEADLINE_MS } = login
  const signal = AbortSignal.timeout(deadlineMs)
  let error = ''
  for (const base of apiBases(address, insecure)) {
    try {
      return await loginAt(base, login, signal)
    } catch (thrown) {
      if (signal.aborted) return refused(`${address.host} did not answer within ${Math.ceil(deadlineMs / 1000)} s.`)
      error = words(address.host, thrown)
    }
  }
  return refused(error)
}

async function loginAt(base: string, login: Login, signal: AbortSignal): Promise<LoginOutcome> {
  const { address, username, password, insecure } = login
  const ping = `${base}/v2/`
  const first = await get(ping, {}, insecure, signal)
  if (first.status === 200)
    return refused(`${address.host} asks for no login, so the credential cannot be tested there.`)
  if (first.status !== 401) return refused(`${address.host} is not a registry: it answered ${first.status} to /v2/.`)
  const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const challenge = challengeOf(first.headers['www-authenticate'])
  const authorization =
    challenge.scheme === 'bearer' ? await token(base, challenge, username, basic, insecure, signal) : basic
  if (authorization === undefined) return refused(`${address.host} refused the username or password.`)
  const { status } = await get(ping, { authorization }, insecure, signal)
  if (status === 200) return { success: true }
  if (status === 401 || status === 403) return refused(`${address.host} refused the username or password.`)
  return refused(`${address.host} answered ${status} to the login.`)
}

interface Challenge {
  scheme: string
  realm?: string
  service?: string
  scope?: string
}

function challengeOf(header: string | undefined): Challenge {
  const [scheme = 'basic'] = (header ?? '').split(' ')
  const fields = [...(header ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value])
  return { ...Object.fromEntries(fields), scheme: scheme.toLowerCase() }
}

/** The header with the token that the registry's own server gives; undefined when it refuses. */
async function token(
  base: string,
  { realm = '', service, scope }: Challenge,
  username: string,
  basic: string,
  insecure: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!URL.canParse(realm)) throw new Failure('UPSTREAM_FAILED', 'The registry names no server for its tokens.')
  const url = new URL(realm)
  // The password goes there: never in the open, unless the registry itself is so.
  if (url.protocol !== 'https:' && !base.startsWith('http:') && !isLoopback(url.host)) {
    throw new Failure('UPSTREAM_FAILED', `The registry wants the password sent to ${url.host} without TLS.`)
  }
  url.searchParams.set('account', username)
  url.searchParams.set('client_id', 'fairlead')
  if (service !== undefined) url.searchParams.set('service', service)
  if (scope !== undefined) url.searchParams.set('scope', scope)
  const { status, body } = await get(url.href, { authorization: basic }, insecure, signal)
  if (status === 401 || status === 403) return undefined
  if (status !== 200) throw new Failure('UPSTREAM_FAILED', `${url.host} answered ${status} instead of a token.`)
  const given = JSON.parse(body) as { token?: string; access_token?: string }
  return `Bearer ${given.token ?? given.access_token}`
}

interface Got {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

/** Redirects are not followed: a password must not end up where nobody sent it. */
function get(url: string, headers: Record<string, string>, insecure: boolean, signal: AbortSignal): Promise<Got> {
  const { promise, resolve, reject } = Promise.withResolvers<Got>()
  const { protocol, hostname } = new URL(url)
  if (isForbidden(hostname))
    return Promise.reject(
      new Failure(
        'VALIDATION_FAILED',
        `${hostName(hostname)} is a link-local or metadata address: the agent does not fetch from there.`,
      ),
    )
  const options = { headers: { ...headers, 'user-agent': 'fairlead' }, signal, lookup: guardedLookup, agent: false }
  const request =
    protocol === 'https:' ? https.get(url, { ...options, rejectUnauthorized: !insecure }) : http.get(url, options)
  request.on('error', reject)
  request.once('response', response => {
    const chunks: Buffer[] = []
    let size = 0
    response.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > LONGEST_ANSWER)
        return response.destroy(
          new Failure('UPSTREAM_FAILED', 'The registry sent more than an answer to a login can be.'),
        )
      return chunks.push(chunk)
    })
    response.on('error', reject)
    response.on('end', () =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks).toString() }),
    )
  })
  return promise
}

const refused = (error: string): LoginOutcome => ({ success: false, error })

function words(host: string, thrown: unknown): string {
  if (thrown instanceof Failure) return thrown.message
  const { code = '', message } = thrown as NodeJS.ErrnoException
  if (code === 'ECONNREFUSED') return `Nothing listens at ${host}.`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `The name ${hostName(host)} is not known.`
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code))
    return `The certificate of ${host} is not trusted (${code}). Mark the registry as insecure to go on all the same.`
  if (thrown instanceof SyntaxError) return `${host} answered something that is no token.`
  return code
    ? `${host} could not be reached (${code}).`
    : asFailure(thrown).code === 'INTERNAL'
      ? `${host} could not be reached: ${message}`
      : message
}
