// Who is calling: keys and passwords become tokens, tokens become actors with the rights they have at this moment.

import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import { Failure, fail } from '../../core/failure.ts'
import { type Actor, type Level, lesser, permissionsOf, system } from '../../core/permission.ts'
import { hashPassword, isPassword } from '../../lib/password.ts'
import type { Database } from '../../store/database.ts'
import type { Vault } from '../../store/vault.ts'
import { type ApiKeyRow, apiKeys, hashKey } from '../apikeys/index.ts'
import { assignments, type UserRow, users } from '../users/index.ts'

export interface AuthSettings {
  apiKeys: readonly string[]
  jwtSecret: string | undefined
  tokenTtl: number
}

interface Claims {
  sub: string
  typ: string
  exp: number
  expiresAt: string
}

const CACHED_TOKENS = 10_000
const LAST_USED_EVERY_MS = 2000

export class Identity {
  readonly #db: Database
  readonly #settings: () => AuthSettings
  readonly #keptSecret: string
  readonly #verified = new Map<string, Claims>()
  readonly #used = new Map<string, { table: 'users' | 'api_keys'; column: string; id: number; time: string }>()
  #configured: { keys: readonly string[]; actors: ReadonlyMap<string, Actor> } = { keys: [], actors: new Map() }
  readonly #flushing: NodeJS.Timeout
  #secret: { text: string; key: Uint8Array }

  constructor(db: Database, vault: Vault, settings: () => AuthSettings) {
    this.#db = db
    this.#settings = settings
    this.#keptSecret = keptSecret(db, vault)
    this.#secret = secretOf(settings().jwtSecret ?? this.#keptSecret)
    this.#flushing = setInterval(() => this.flush(), LAST_USED_EVERY_MS).unref()
  }

  async byApiKey(key: string): Promise<Actor> {
    return this.#byConfiguredKey(key) ?? this.#byMadeKey(key) ?? fail('UNAUTHENTICATED', 'Invalid API key')
  }

  async byPassword(username: string, password: string): Promise<Actor> {
    const [user] = users.all(this.#db, 'WHERE username = ?', username)
    // An unknown name costs the same as a wrong password, so that names cannot be guessed by the clock.
    const right = await isPassword(password, user?.password_hash ?? (await decoy()))
    if (!user?.is_active || !right) return fail('UNAUTHENTICATED', 'Invalid username or password')
    this.#mark('users', 'last_login_at', user.id)
    return userActor(this.#db, user)
  }

  async issue(actor: Actor, sub: string): Promise<{ token: string; expires_at: string }> {
    const expires = Math.floor(Date.now() / 1000) + this.#settings().tokenTtl
    const { SignJWT } = await import('jose/jwt/sign')
    const token = await new SignJWT({ typ: actor.type === 'user' ? 'user' : 'api_key' })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setSubject(sub)
      .setIssuedAt()
      .setExpirationTime(expires)
      .setJti(randomUUID())
      .sign(this.#currentSecret().key)
    return { token, expires_at: new Date(expires * 1000).toISOString() }
  }

  /** The actor behind a token. The signature is remembered until it expires, the rights never are. */
  identify(token: string): Actor | Promise<Actor> {
    const { text } = this.#currentSecret()
    const claims = this.#verified.get(token)
    return claims && text === this.#secret.text
      ? this.#actorOf(claims)
      : this.#verify(token).then(found => this.#actorOf(found))
  }

  /** When the token ends; the token was identified before. */
  expiryOf(actor: Actor): string | null {
    return (actor as Known).expiresAt ?? null
  }

  /** The same actor with the rights he has now. */
  refresh(actor: Actor): Actor {
    if (actor.type === 'user' && actor.id !== null) {
      const user = users.get(this.#db, { id: actor.id })
      return user ? userActor(this.#db, user) : actor
    }
    if (actor.type === 'api_key' && actor.id !== null) {
      const key = apiKeys.get(this.#db, { id: actor.id })
      return (key && keyActor(this.#db, key)) ?? actor
    }
    return actor
  }

  /** Last-used times are written together, so that a request costs no write. */
  flush(): void {
    if (this.#used.size === 0) return
    const marks = [...this.#used.values()]
    this.#used.clear()
    this.#db.transaction(() => {
      for (const { table, column, id, time } of marks)
        this.#db.run(`UPDATE ${table} SET ${column} = ? WHERE id = ?`, time, id)
    })
  }

  close(): void {
    clearInterval(this.#flushing)
    this.flush()
  }

  #byConfiguredKey(key: string): Actor | undefined {
    const given = digest(key)
    let found: string | undefined
    // Every key is compared, whichever matches: the time tells nothing.
    for (const known of this.#settings().apiKeys) if (timingSafeEqual(digest(known), given)) found = known
    return found === undefined ? undefined : configuredActor(found)
  }

  #byMadeKey(key: string): Actor | undefined {
    const [row] = apiKeys.all(this.#db, 'WHERE key_hash = ?', hashKey(key))
    return row && keyActor(this.#db, row)
  }

  async #verify(token: string): Promise<Claims> {
    try {
      const { jwtVerify } = await import('jose/jwt/verify')
      const { payload } = await jwtVerify(token, this.#currentSecret().key, {
        algorithms: ['HS256'],
        requiredClaims: ['sub', 'exp', 'iat', 'jti'],
      })
      const exp = Number(payload.exp)
      const expiresAt = new Date(exp * 1000).toISOString()
      const claims = { sub: String(payload.sub), typ: String(payload.typ), exp, expiresAt }
      if (this.#verified.size >= CACHED_TOKENS) this.#verified.delete(this.#verified.keys().next().value as string)
      this.#verified.set(token, claims)
      return claims
    } catch (cause) {
      throw new Failure('UNAUTHENTICATED', 'Invalid or expired token', undefined, cause)
    }
  }

  #actorOf({ sub, typ, exp, expiresAt }: Claims): Actor {
    const actor = exp * 1000 > Date.now() ? this.#lookUp(typ, sub) : undefined
    if (!actor) return fail('UNAUTHENTICATED', 'Invalid or expired token')
    return { ...actor, expiresAt } as Known
  }

  #lookUp(typ: string, sub: string): Actor | undefined {
    if (typ === 'user') return this.#db.remembered(`actor of user ${sub}`, () => this.#userOf(sub))
    if (typ !== 'api_key') return undefined
    const configured = this.#configuredActors().get(sub)
    if (configured) return configured
    const id = idOf(sub)
    const key = id === undefined ? undefined : apiKeys.get(this.#db, { id })
    const actor = key && keyActor(this.#db, key)
    if (key && actor) this.#mark('api_keys', 'last_used_at', key.id)
    return actor
  }

  /** By subject; made anew when the keys of the configuration are others. */
  #configuredActors(): ReadonlyMap<string, Actor> {
    const { apiKeys } = this.#settings()
    if (apiKeys !== this.#configured.keys) {
      const actors = new Map(apiKeys.map(key => [subjectOfConfigured(key), configuredActor(key)]))
      this.#configured = { keys: apiKeys, actors }
    }
    return this.#configured.actors
  }

  #userOf(sub: string): Actor | undefined {
    const id = idOf(sub)
    const user = id === undefined ? undefined : users.get(this.#db, { id })
    return user?.is_active ? userActor(this.#db, user) : undefined
  }

  #mark(table: 'users' | 'api_keys', column: string, id: number): void {
    this.#used.set(`${table}:${id}`, { table, column, id, time: new Date().toISOString() })
  }

  #currentSecret(): { text: string; key: Uint8Array } {
    const text = this.#settings().jwtSecret ?? this.#keptSecret
    if (text !== this.#secret.text) {
      this.#secret = secretOf(text)
      this.#verified.clear()
    }
    return this.#secret
  }
}

interface Known extends Actor {
  expiresAt?: string
}

/** What a token says of its bearer. */
export function subjectOf(actor: Actor): string {
  return (actor as Actor & { subject?: string }).subject ?? String(actor.id)
}

function userActor(db: Database, user: UserRow): Actor {
  return {
    type: 'user',
    id: user.id,
    name: user.username,
    role: user.role,
    permissions: permissionsOf(user.role, user.permissions),
    deployments: user.role === 'admin' ? 'all' : levelsOf(db, user.id),
    mayCreateDeployments: true,
    userId: user.id,
  }
}

/** A key acts with the smaller of its owner's rights and its own; a key without a living owner is no key. */
function keyActor(db: Database, key: ApiKeyRow): Actor | undefined {
  if (!key.is_active || (key.expires_at !== null && Date.parse(key.expires_at) <= Date.now())) return undefined
  const owner = key.user_id === null ? system : ownerActor(db, key.user_id)
  if (!owner) return undefined
  const bound = key.deployments.length > 0
  return lesser(owner, {
    type: 'api_key',
    id: key.id,
    name: key.name,
    role: key.role,
    permissions: permissionsOf(key.role, key.permissions),
    deployments: bound ? new Map(key.deployments.map((name): [string, Level] => [name, 'admin'])) : 'all',
    mayCreateDeployments: !bound,
    userId: key.user_id,
  })
}

function ownerActor(db: Database, id: number): Actor | undefined {
  const user = users.get(db, { id })
  return user?.is_active ? userActor(db, user) : undefined
}

function configuredActor(key: string): Actor {
  const subject = subjectOfConfigured(key)
  return Object.assign(
    { ...system, type: 'api_key' as const, name: `configured key ${subject.slice(7, 13)}` },
    { subject },
  )
}

const subjectOfConfigured = (key: string): string => `config:${hashKey(key).slice(0, 22)}`
const idOf = (sub: string): number | undefined => (/^[1-9]\d{0,15}$/.test(sub) ? Number(sub) : undefined)
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const secretOf = (text: string) => ({ text, key: new TextEncoder().encode(text) })

function levelsOf(db: Database, userId: number): ReadonlyMap<string, Level> {
  return new Map(assignments.all(db, 'WHERE user_id = ?', userId).map(one => [one.deployment_name, one.access_level]))
}

let madeDecoy: Promise<string> | undefined
function decoy(): Promise<string> {
  madeDecoy ??= hashPassword(randomBytes(16).toString('hex'), randomBytes(16))
  return madeDecoy
}

/** The signing secret the agent keeps, sealed, when the configuration names none. */
function keptSecret(db: Database, vault: Vault): string {
  const kept = db.get<{ value: string }>("SELECT value FROM meta WHERE key = 'jwt_secret'")
  if (kept) return vault.unseal<string>(kept.value)
  const made = randomBytes(48).toString('base64url')
  db.run("INSERT INTO meta (key, value) VALUES ('jwt_secret', ?)", vault.seal(made))
  return made
}
