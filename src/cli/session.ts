// The way to the agent: which address, as whom, and a token that is renewed when it has run out.

import type { IncomingMessage } from 'node:http'
import { ClientError } from './failure.ts'
import type { Ask } from './http.ts'
import type { Profiles } from './profile.ts'
import type { Target } from './target.ts'

export class Session {
  readonly target: Target
  readonly #profiles: Profiles
  #token: Promise<string | undefined> | undefined

  constructor(target: Target, profiles: Profiles) {
    this.target = target
    this.#profiles = profiles
  }

  /** Asks with the token; when it is refused and a key is at hand, once more with a new one. */
  async ask(ask: Ask): Promise<IncomingMessage> {
    const answer = await this.#send(ask)
    if (answer.statusCode !== 401 || ask.open) return answer
    answer.resume()
    if (ask.once) throw this.#refused()
    await this.renew()
    const again = await this.#send(ask)
    if (again.statusCode === 401) throw this.#refused()
    return again
  }

  async token(): Promise<string | undefined> {
    this.#token ??= this.#firstToken()
    return this.#token
  }

  /** A new token in place of one that was refused. */
  async renew(): Promise<string> {
    if (this.target.apiKey === undefined) throw this.#refused()
    const renewed = this.#login(this.target.apiKey)
    this.#token = renewed
    return renewed
  }

  async #send(ask: Ask): Promise<IncomingMessage> {
    const { exchange } = await import('./http.ts')
    const token = ask.open ? undefined : await this.token()
    return exchange(this.target.url, {
      ...ask,
      headers: { ...ask.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) },
    })
  }

  async #firstToken(): Promise<string | undefined> {
    const { apiKey, kept } = this.target
    if (kept?.ca) await (await import('./http.ts')).trust(kept.ca)
    if (kept?.token && !isOver(kept.expires_at)) return kept.token
    return apiKey === undefined ? undefined : this.#login(apiKey)
  }

  async #login(apiKey: string): Promise<string> {
    const { token, expires_at } = await logIn(this.target.url, { api_key: apiKey }).catch(error => {
      throw error instanceof ClientError && error.cause === 'refused' ? this.#refused() : error
    })
    const { profile, kept } = this.target
    // A token that can't be kept costs the next run a login, no more.
    if (profile && kept) await this.#profiles.write(profile, { ...kept, token, expires_at }).catch(() => {})
    return token
  }

  #refused(): ClientError {
    const { url, profile, kept, apiKey } = this.target
    const where = profile === undefined || profile === 'default' ? '' : ` --profile ${profile}`
    if (apiKey !== undefined && profile === undefined) {
      return new ClientError(`${url} refuses the API key in FAIRLEAD_API_KEY: it is wrong, was revoked or has expired.`)
    }
    if (apiKey !== undefined) {
      return new ClientError(
        `${url} refuses the API key of profile ${profile}: it was revoked, deleted or has expired. Log in with another: fairlead login ${url}${where}`,
      )
    }
    if (!kept?.token) {
      return new ClientError(
        `${url} wants to know who you are. Log in with: fairlead login ${url}${where} (or set FAIRLEAD_API_KEY).`,
      )
    }
    const name = kept.username ? ` --username ${kept.username}` : ''
    return new ClientError(`Your login at ${url} has ended. Log in again: fairlead login ${url}${where}${name}`)
  }
}

export interface Granted {
  token: string
  expires_at: string
}

/** A token for a key, or for a name and password; a ClientError with cause `refused` when they are wrong. */
export async function logIn(url: string, credentials: object): Promise<Granted> {
  const { exchange, textOf } = await import('./http.ts')
  const body = JSON.stringify(credentials)
  const answer = await exchange(url, {
    method: 'POST',
    path: '/api/auth/login',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const text = await textOf(answer)
  if (answer.statusCode === 401) throw new ClientError(sentence(text), { cause: 'refused' })
  const granted = parsed(text) as Partial<Granted>
  if (answer.statusCode === 200 && granted.token && granted.expires_at) return granted as Granted
  throw new ClientError(sentence(text) || `${url} is not a Fairlead agent.`)
}

/** What the server says it is; it tells everybody. */
export async function serverVersion({ url, kept }: Target): Promise<string> {
  const { exchange, textOf, trust } = await import('./http.ts')
  try {
    if (kept?.ca) await trust(kept.ca)
    const answer = await exchange(url, { method: 'GET', path: '/api/health' })
    return (parsed(await textOf(answer)) as { version?: string }).version ?? 'unknown'
  } catch (error) {
    return `not known: ${(error as Error).message}`
  }
}

/** A minute early, so that it does not run out on the way. */
const isOver = (expiresAt: string | undefined): boolean =>
  expiresAt !== undefined && Date.parse(expiresAt) < Date.now() + 60_000

const sentence = (text: string): string => (parsed(text) as { error?: string }).error ?? ''

function parsed(text: string): object {
  try {
    return JSON.parse(text) as object
  } catch {
    return {}
  }
}
