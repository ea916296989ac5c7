// The table of registries.

import type { Database } from '../../store/database.ts'
import { table } from '../../store/table.ts'
import type { Use } from '../credentials/index.ts'

export interface RegistryRow {
  slug: string
  name: string
  url: string
  type: string
  insecure: boolean
  credential_id: string | null
}

export const registries = table<RegistryRow>('registries', {
  noun: 'registry',
  key: ['slug'],
  columns: ['slug', 'name', 'url', 'type', 'insecure', 'credential_id'],
  boolean: ['insecure'],
  label: registry => registry.slug,
})

export const registriesUsing =
  (db: Database) =>
  (credential: string): Use[] =>
    registries
      .all(db, 'WHERE credential_id = ? ORDER BY slug', credential)
      .map(({ slug }) => ({ type: 'registry', id: slug }))
