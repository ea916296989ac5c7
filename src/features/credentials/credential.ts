// What a credential is in answers, who may use one, and what can be asked about them. What they hold is never shown.

import type { RegistryAuth } from '../../adapters/container-engine/images.ts'
import type { Login, LoginOutcome, RegistryAddress } from '../../adapters/registry/index.ts'
import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { type Actor, levelOn, sees } from '../../core/permission.ts'
import { putRecord } from '../../core/record.ts'
import { REDACTED, Time, Type, Words } from '../../core/schema.ts'
import { momentOf, type Step } from '../../core/step.ts'
import type { Database } from '../../store/database.ts'
import type { Table } from '../../store/table.ts'
import { type CredentialRow, credentials, credentialTypes } from './records.ts'

export const CredentialId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  'x-hint': 'must be the id of a credential',
})
export const CredentialType = Words(credentialTypes)

export const Credential = Type.Object({
  id: Type.String(),
  name: Type.String(),
  type: CredentialType,
  credentials: Type.Record(Type.String(), Type.String(), {
    description: 'The names of its fields; the values are never shown',
  }),
  shared_with: Type.Array(Type.String({ description: 'A deployment whose users may use it' })),
  created_at: Time(),
  updated_at: Time(),
  used_by: Type.Array(Type.Object({ type: Type.String(), id: Type.String() })),
})

/** Something that refers to a credential. */
export interface Use {
  type: string
  id: string
}

declare module '../../core/operation.ts' {
  interface Readers {
    credentials: CredentialReader
  }
}

export interface CredentialParts {
  db: Database
  /** With its values open. */
  table: Table<CredentialRow>
  /** Each area that refers to credentials tells which of its records do. */
  usedBy: readonly ((id: string) => Use[])[]
  login(login: Login): Promise<LoginOutcome>
}

export type CredentialReader = ReturnType<typeof credentialReader>

export function credentialReader({ db, table, usedBy, login }: CredentialParts, { actor }: Viewer) {
  const row = (id: string): CredentialRow => table.get(db, { id }) ?? notFound('credential', id)
  const usesOf = (id: string): Use[] => usedBy.flatMap(find => find(id))
  const shown = (credential: CredentialRow) => ({
    ...credential,
    credentials: Object.fromEntries(Object.keys(credential.credentials).map(name => [name, REDACTED])),
    shared_with: credential.shared_with.filter(name => sees(actor, name)),
    used_by: usesOf(credential.id),
  })

  return {
    row,
    usesOf,
    detail: (id: string) => shown(row(id)),
    list: () => table.all(db, 'ORDER BY name').map(shown),
    byName: (name: string): CredentialRow | undefined => table.all(db, 'WHERE name = ?', name)[0],
    ofType: (type: CredentialRow['type']): CredentialRow[] => table.all(db, 'WHERE type = ? ORDER BY name', type),

    /** For who may use it; for everybody else it does not exist. */
    usable(id: string, deployment?: string): CredentialRow {
      const found = table.get(db, { id })
      return found && mayUse(actor, found, deployment) ? found : notFound('credential', id)
    },

    mayUse: (credential: CredentialRow, deployment?: string): boolean => mayUse(actor, credential, deployment),

    /** Really logs in, at each of these. */
    async test(credential: CredentialRow, places: readonly { address: RegistryAddress; insecure: boolean }[]) {
      const { username = '', password = '' } = credential.credentials
      const startedAt = performance.now()
      const tested = await Promise.all(
        places.map(async ({ address, insecure }) => {
          const outcome = await login({ address, insecure, username, password })
          return { registry: address.host, success: outcome.success, error: outcome.success ? null : outcome.error }
        }),
      )
      const failed = tested.filter(one => !one.success)
      return {
        success: failed.length === 0,
        error: failed.length === 0 ? null : failed.map(one => one.error).join(' '),
        latency_ms: Math.round(performance.now() - startedAt),
        tested,
      }
    },

    /** The steps that take it away from a deployment that goes: a later one of the same name must not inherit it. */
    withoutDeployment: (name: string): Step[] =>
      table
        .all(db, 'ORDER BY id')
        .filter(one => one.shared_with.includes(name))
        .map(before => {
          const shared_with = before.shared_with.filter(one => one !== name)
          return putRecord(
            credentials,
            before,
            { ...before, shared_with, updated_at: momentOf() },
            { cause: 'the deployment goes' },
          )
        }),
  }
}

/** Who may read credentials, or who was given it: through the deployment in question, or one that he may change. */
function mayUse(actor: Actor, { shared_with }: CredentialRow, deployment: string | undefined): boolean {
  if (actor.permissions.has('credentials:read')) return true
  if (deployment !== undefined) return shared_with.includes(deployment)
  return shared_with.some(name => {
    const level = levelOn(actor, name)
    return level === 'write' || level === 'admin'
  })
}

/** Opens a credential for one pull; for the wiring only. */
export function registryAuthOf(db: Database, table: Table<CredentialRow>) {
  return (id: string): RegistryAuth => {
    const found = table.get(db, { id }) ?? notFound('credential', id)
    const { username = '', password = '' } = found.credentials
    return { username, password }
  }
}

/** What a kind of credential cannot do without. */
export function requireComplete(type: CredentialRow['type'], values: Readonly<Record<string, string>>): void {
  const needed = type === 'registry' ? ['username', 'password'] : []
  const missing = needed.filter(name => !values[name])
  const details = missing.map(name => ({ path: `credentials.${name}`, message: 'is required' }))
  if (missing.length > 0)
    fail('VALIDATION_FAILED', `A credential of type ${type} needs ${missing.join(' and ')}.`, details)
  if (Object.keys(values).length > 0) return
  fail('VALIDATION_FAILED', '`credentials` must have at least one field.', [
    { path: 'credentials', message: 'must not be empty' },
  ])
}

/** The stored values with the given ones in their place: `[redacted]` keeps, null takes away. */
export function merged(
  stored: Readonly<Record<string, string>>,
  given: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const result: Record<string, string> = { ...stored }
  for (const [name, value] of Object.entries(given)) {
    if (value === null) delete result[name]
    else if (value !== REDACTED) result[name] = value
    else if (!Object.hasOwn(stored, name)) {
      fail('VALIDATION_FAILED', `There is no stored value of "${name}" to keep: send the value itself.`, [
        { path: `credentials.${name}`, message: 'is not stored' },
      ])
    }
  }
  return result
}
