// What an API key is, and what a caller can ask about keys: his own, or all for an administrator.

import { createHash } from 'node:crypto'
import { notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import type { Actor } from '../../core/permission.ts'
import { deleteRecord } from '../../core/record.ts'
import { Nullable, RecordId, Time, Type } from '../../core/schema.ts'
import type { Step } from '../../core/step.ts'
import type { Database } from '../../store/database.ts'
import { PermissionName, RoleName, users } from '../users/index.ts'
import { type ApiKeyRow, apiKeys } from './records.ts'

export const ApiKey = Type.Object({
  id: RecordId,
  name: Type.String(),
  description: Type.String(),
  key_prefix: Type.String(),
  role: RoleName,
  permissions: Type.Array(PermissionName),
  deployments: Type.Array(Type.String()),
  is_active: Type.Boolean(),
  expires_at: Nullable(Time()),
  last_used_at: Nullable(Time()),
  created_at: Time(),
  owner: Type.String({ description: 'The user it belongs to, or `system`' }),
})

declare module '../../core/operation.ts' {
  interface Readers {
    apikeys: ApiKeyReader
  }
}

export type ApiKeyReader = ReturnType<typeof apiKeyReader>

export function apiKeyReader(db: Database, { actor }: Viewer) {
  const row = (id: number): ApiKeyRow => {
    const found = apiKeys.get(db, { id })
    return found && isOwn(actor, found) ? found : notFound('API key', id)
  }
  return {
    row,
    detail: (id: number) => shown(db, row(id)),
    list: () =>
      apiKeys
        .all(db, 'ORDER BY id')
        .filter(key => isOwn(actor, key))
        .map(key => shown(db, key)),
    /** The steps that take all keys of a user away with him. */
    deletionOf: (userId: number): Step[] =>
      apiKeys
        .all(db, 'WHERE user_id = ? ORDER BY id', userId)
        .map(key => deleteRecord(apiKeys, key, { cause: 'its owner goes' })),
  }
}

/** Keys are long and random: a plain hash keeps them as safe as a slow one would, and can be looked up. */
export const hashKey = (key: string): string => createHash('sha256').update(key).digest('base64url')

function isOwn(actor: Actor, key: ApiKeyRow): boolean {
  if (actor.role === 'admin' && actor.deployments === 'all') return true
  return actor.type === 'api_key' && actor.userId === null
    ? key.id === actor.id
    : actor.userId !== null && key.user_id === actor.userId
}

function shown(db: Database, { key_hash: _, user_id, ...key }: ApiKeyRow) {
  const owner = user_id === null ? 'system' : (users.get(db, { id: user_id })?.username ?? 'system')
  return { ...key, owner }
}
