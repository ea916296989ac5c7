// The table of API keys: only a hash of each key is kept.

import type { Permission, Role } from '../../core/permission.ts'
import { table } from '../../store/table.ts'

export interface ApiKeyRow {
  id: number
  user_id: number | null
  name: string
  description: string
  key_hash: string
  key_prefix: string
  role: Role
  permissions: Permission[]
  deployments: string[]
  is_active: boolean
  expires_at: string | null
  last_used_at: string | null
  created_at: string
}

export const apiKeys = table<ApiKeyRow>('api_keys', {
  noun: 'API key',
  key: ['id'],
  columns: [
    'id',
    'user_id',
    'name',
    'description',
    'key_hash',
    'key_prefix',
    'role',
    'permissions',
    'deployments',
    'is_active',
    'expires_at',
    'last_used_at',
    'created_at',
  ],
  json: ['permissions', 'deployments'],
  boolean: ['is_active'],
  secret: ['key_hash', 'key_prefix'],
  volatile: ['last_used_at'],
  label: key => key.name,
})
