// API keys: made once, shown once, revoked or deleted; they never have more rights than their maker.

import { revisionOf } from '../../core/canonical.ts'
import { fail } from '../../core/failure.ts'
import { command, query } from '../../core/operation.ts'
import { type Actor, requireCanGrant } from '../../core/permission.ts'
import { deleteRecord, putRecord } from '../../core/record.ts'
import { Nothing, RecordId, Secret, Time, Type } from '../../core/schema.ts'
import { momentOf } from '../../core/step.ts'
import { DeploymentName, PermissionName, RoleName } from '../users/index.ts'
import { ApiKey, hashKey } from './key.ts'
import { apiKeys } from './records.ts'

const keyResource = { type: 'api_key', id: ({ id }: { id: number }) => id }

export const list = query('apikeys.list', {
  summary: 'List API keys: your own, or all for an administrator',
  http: { method: 'GET', path: '/api/apikeys' },
  permission: 'apikeys:read',
  input: Type.Object({}),
  output: Type.Array(ApiKey),
  example: {},
  read: ({ apikeys }) => apikeys.list(),
})

export const get = query('apikeys.get', {
  summary: 'Show an API key',
  http: { method: 'GET', path: '/api/apikeys/:id' },
  permission: 'apikeys:read',
  input: Type.Object({ id: RecordId }),
  output: ApiKey,
  example: { id: 1 },
  read: ({ apikeys }, { id }) => apikeys.detail(id),
  revision: ({ last_used_at: _, ...key }) => revisionOf(key),
})

export const create = command('apikeys.create', {
  summary: 'Create an API key; the key is shown only in this answer',
  http: { method: 'POST', path: '/api/apikeys', status: 201, bare: true },
  permission: 'apikeys:write',
  personal: true,
  resource: { type: 'api_key', id: ({ name }, { key }) => (key as { id: number } | undefined)?.id ?? name },
  locks: () => ['apikeys'],
  input: Type.Object({
    name: Type.String({ minLength: 1, maxLength: 100 }),
    description: Type.Optional(Type.String({ maxLength: 1000 })),
    role: Type.Optional(RoleName),
    permissions: Type.Optional(Type.Array(PermissionName, { maxItems: 100 })),
    deployments: Type.Optional(
      Type.Array(DeploymentName, { maxItems: 1000, description: "None means all of the owner's" }),
    ),
    expires_in: Type.Optional(Type.Integer({ minimum: 1, maximum: 315_360_000, description: 'Seconds from now' })),
  }),
  output: Type.Object({ id: RecordId, key: Secret(Type.String()), name: Type.String(), created_at: Time() }),
  example: { name: 'ci', description: 'deploys from the pipeline', role: 'viewer', expires_in: 86_400 },
  fails: ['NOT_FOUND'],
  decide(
    { actor, fresh },
    { name, description = '', role = 'viewer', permissions = [], deployments = [], expires_in },
  ) {
    requireCanGrant(actor, { role, permissions, deployments })
    requireNoWider(actor, deployments)
    const key = keyFrom(fresh)
    const record = {
      user_id: actor.userId,
      name,
      description,
      key_hash: hashKey(key),
      key_prefix: key.slice(0, 10),
      role,
      permissions,
      deployments,
      is_active: true,
      expires_at: expires_in === undefined ? null : momentOf(expires_in),
      created_at: momentOf(),
    }
    return [putRecord(apiKeys, null, record, { as: 'key' })]
  },
  reply({ apikeys, fresh }, { name }, results) {
    const { id, created_at } = apikeys.row((results.key as { id: number }).id)
    return { id, key: keyFrom(fresh), name, created_at }
  },
})

export const revoke = command('apikeys.revoke', {
  summary: 'Deactivate an API key without deleting it',
  http: { method: 'POST', path: '/api/apikeys/:id/revoke' },
  permission: 'apikeys:write',
  personal: true,
  resource: keyResource,
  locks: () => ['apikeys'],
  input: Type.Object({ id: RecordId }),
  output: ApiKey,
  example: { id: 1 },
  decide({ apikeys }, { id }) {
    const before = apikeys.row(id)
    return before.is_active ? [putRecord(apiKeys, before, { ...before, is_active: false })] : []
  },
  reply: ({ apikeys }, { id }) => apikeys.detail(id),
  message: 'The key was revoked; it is refused from now on.',
})

export const remove = command('apikeys.delete', {
  summary: 'Delete an API key',
  http: { method: 'DELETE', path: '/api/apikeys/:id' },
  permission: 'apikeys:write',
  personal: true,
  resource: keyResource,
  locks: () => ['apikeys'],
  input: Type.Object({ id: RecordId }),
  output: Nothing,
  example: { id: 1 },
  decide: ({ apikeys }, { id }) => [deleteRecord(apiKeys, apikeys.row(id))],
  message: 'The key was deleted.',
})

const keyFrom = (fresh: { text(name: string, length: number): string }): string => `fl_${fresh.text('key', 40)}`

/** A key with no list has all of its owner's deployments, which may be more than the key that makes it. */
function requireNoWider(actor: Actor, deployments: readonly string[]): void {
  if (deployments.length > 0 || actor.mayCreateDeployments) return
  fail('FORBIDDEN', 'Your key is bound to some deployments: name in `deployments` which of them the new key may use.')
}
