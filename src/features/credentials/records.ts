// The table of credentials: what they hold is sealed at rest and open only in memory.

import type { Database } from '../../store/database.ts'
import { type Table, table } from '../../store/table.ts'
import type { Vault } from '../../store/vault.ts'

export const credentialTypes = ['registry', 'database', 's3', 'smtp', 'dns', 'acme', 'generic'] as const

export interface CredentialRow {
  id: string
  name: string
  type: (typeof credentialTypes)[number]
  credentials: Record<string, string>
  /** Deployments whose users may use it without being able to read credentials. */
  shared_with: string[]
  created_at: string
  updated_at: string
}

/** The shape, for making steps; `sealedCredentials` reads and writes. */
export const credentials = table<CredentialRow>('credentials', {
  noun: 'credential',
  key: ['id'],
  columns: ['id', 'name', 'type', 'credentials', 'shared_with', 'created_at', 'updated_at'],
  json: ['shared_with'],
  secret: ['credentials'],
  label: credential => credential.name,
})

type Stored = Omit<CredentialRow, 'credentials'> & { credentials: string }

/** The same table with its values sealed on the way in, and opened on the way out. */
export function sealedCredentials(vault: Vault): Table<CredentialRow> {
  const stored = credentials as unknown as Table<Stored>
  const open = (row: Stored): CredentialRow => ({ ...row, credentials: vault.unseal(row.credentials) })
  const close = ({ credentials: values, ...rest }: Partial<CredentialRow>): Partial<Stored> =>
    values === undefined ? rest : { ...rest, credentials: vault.seal(values) }
  const maybe = (row: Stored | undefined) => (row ? open(row) : undefined)
  return {
    ...credentials,
    decode: row => maybe(stored.decode(row)),
    get: (db: Database, key) => maybe(stored.get(db, close(key))),
    all: (db, where, ...values) => stored.all(db, where, ...values).map(open),
    put: (db, record) => stored.put(db, close(record)),
    remove: (db, key) => stored.remove(db, close(key)),
  }
}
