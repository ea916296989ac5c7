// Credentials: names and passwords for registries, databases and others; kept sealed, used by what refers to them.

import { isDeepStrictEqual } from 'node:util'
import { fail } from '../../core/failure.ts'
import { type Ask, command, query } from '../../core/operation.ts'
import { sees } from '../../core/permission.ts'
import { deleteRecord, putRecord } from '../../core/record.ts'
import { Nothing, Nullable, Secret, Type } from '../../core/schema.ts'
import { momentOf } from '../../core/step.ts'
import { DeploymentName } from '../users/index.ts'
import { Credential, CredentialId, CredentialType, merged, requireComplete } from './credential.ts'
import { credentials } from './records.ts'

const Name = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000-\\u001f]+$',
  'x-hint': 'must have 1 to 100 characters on one line',
})
const FieldName = Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$' })
const Value = Secret(Type.String({ maxLength: 65_536, pattern: '^[^\\u0000]*$' }))
const SharedWith = Type.Array(DeploymentName, {
  maxItems: 1000,
  description: 'Deployments whose users may use it without being able to read it',
})
const fieldsHint = 'For a registry `username` and `password`, and `server` when no registry refers to it'

const resource = { type: 'credential', id: ({ id }: { id: string }) => id }
const oneAtATime = () => ['credentials']
/** A credential of the standard test world. */
const example = { id: 'test-credential' }

export const list = query('credentials.list', {
  summary: 'List credentials',
  http: { method: 'GET', path: '/api/credentials' },
  permission: 'credentials:read',
  input: Type.Object({}),
  output: Type.Array(Credential),
  example: {},
  read: ({ credentials }) => credentials.list(),
})

export const get = query('credentials.get', {
  summary: 'Show a credential, but for its values',
  http: { method: 'GET', path: '/api/credentials/:id' },
  permission: 'credentials:read',
  input: Type.Object({ id: CredentialId }),
  output: Credential,
  example,
  read: ({ credentials }, { id }) => credentials.detail(id),
})

export const create = command('credentials.create', {
  summary: 'Create a credential',
  http: { method: 'POST', path: '/api/credentials', status: 201 },
  permission: 'credentials:write',
  resource: { type: 'credential', id: ({ name }) => name },
  locks: oneAtATime,
  input: Type.Object({
    name: Name,
    type: CredentialType,
    credentials: Type.Record(FieldName, Value, {
      additionalProperties: false,
      maxProperties: 50,
      description: fieldsHint,
    }),
    shared_with: Type.Optional(SharedWith),
  }),
  output: Credential,
  example: {
    name: 'team registry',
    type: 'registry',
    credentials: { username: 'deployer', password: 'correct horse battery' },
  },
  fails: ['ALREADY_EXISTS', 'NOT_FOUND'],
  async decide(ask, { name, type, credentials: given, shared_with = [] }) {
    const values = merged({}, given)
    requireComplete(type, values)
    requireNewName(ask, name)
    await requireDeployments(ask, shared_with)
    const record = {
      id: ask.fresh.id('credential'),
      name,
      type,
      credentials: values,
      shared_with: [...new Set(shared_with)],
    }
    return [putRecord(credentials, null, { ...record, created_at: momentOf(), updated_at: momentOf() })]
  },
  reply: ({ credentials, fresh }) => credentials.detail(fresh.id('credential')),
  message: 'The credential was created.',
})

export const update = command('credentials.update', {
  summary: 'Change a credential',
  http: { method: 'PUT', path: '/api/credentials/:id' },
  permission: 'credentials:write',
  resource,
  locks: oneAtATime,
  input: Type.Object({
    id: CredentialId,
    name: Type.Optional(Name),
    type: Type.Optional(CredentialType),
    credentials: Type.Optional(
      Type.Record(FieldName, Nullable(Value), {
        additionalProperties: false,
        maxProperties: 50,
        description: 'A field left out, or sent as `[redacted]`, stays; null takes it away',
      }),
    ),
    shared_with: Type.Optional(SharedWith),
  }),
  output: Credential,
  example: { ...example, name: 'another name' },
  fails: ['ALREADY_EXISTS', 'IN_USE'],
  async decide(ask, { id, credentials: given, ...changes }) {
    const before = ask.credentials.row(id)
    const after = { ...before, ...changes, credentials: merged(before.credentials, given ?? {}) }
    if (changes.shared_with) after.shared_with = withHidden(ask, before.shared_with, changes.shared_with)
    requireComplete(after.type, after.credentials)
    if (after.type !== before.type) requireUnused(ask, id, 'cannot become another type')
    if (after.name.toLowerCase() !== before.name.toLowerCase()) requireNewName(ask, after.name)
    await requireDeployments(
      ask,
      after.shared_with.filter(name => !before.shared_with.includes(name)),
    )
    if (isDeepStrictEqual(after, before)) return []
    return [putRecord(credentials, before, { ...after, updated_at: momentOf() })]
  },
  reply: ({ credentials }, { id }) => credentials.detail(id),
  message: 'The credential was changed.',
})

export const remove = command('credentials.delete', {
  summary: 'Delete a credential that nothing uses',
  http: { method: 'DELETE', path: '/api/credentials/:id' },
  permission: 'credentials:write',
  resource,
  locks: oneAtATime,
  input: Type.Object({ id: CredentialId }),
  output: Nothing,
  example: { id: 'test-spare-credential' },
  fails: ['IN_USE'],
  decide(ask, { id }) {
    const before = ask.credentials.row(id)
    requireUnused(ask, id, 'cannot be deleted')
    return [deleteRecord(credentials, before)]
  },
  message: 'The credential was deleted.',
})

export const test = query('credentials.test', {
  summary: 'Test a credential by logging in with it',
  description: 'A refused login is an answer with `success: false`.',
  http: { method: 'POST', path: '/api/credentials/:id/test' },
  permission: 'credentials:read',
  input: Type.Object({ id: CredentialId }),
  output: Type.Object({
    success: Type.Boolean(),
    error: Nullable(Type.String()),
    latency_ms: Type.Integer(),
    tested: Type.Array(
      Type.Object({ registry: Type.String(), success: Type.Boolean(), error: Nullable(Type.String()) }),
    ),
  }),
  example,
  async read({ credentials, registries }, { id }) {
    const credential = credentials.row(id)
    if (credential.type !== 'registry') {
      fail(
        'VALIDATION_FAILED',
        `A credential of type ${credential.type} cannot be tested by itself: it is tested where it is used.`,
      )
    }
    const places = registries.placesOf(credential)
    if (places.length === 0) {
      fail(
        'VALIDATION_FAILED',
        'It is not known where to log in: refer to it from a registry, or add the field `server`.',
      )
    }
    return credentials.test(credential, places)
  },
})

function requireNewName({ credentials }: Ask, name: string): void {
  if (credentials.byName(name)) fail('ALREADY_EXISTS', `There is a credential "${name}" already. Choose another name.`)
}

async function requireDeployments({ deployments }: Ask, names: readonly string[]): Promise<void> {
  for (const name of names) await deployments.requireKnown(name)
}

function requireUnused({ credentials }: Ask, id: string, what: string): void {
  const uses = credentials.usesOf(id)
  if (uses.length === 0) return
  const list = uses.map(use => `${use.type} ${use.id}`).join(', ')
  fail('IN_USE', `The credential ${what}: it is used by ${list}. Change that first.`, uses)
}

/** Who does not see a deployment cannot take the credential away from it either. */
function withHidden({ actor }: Ask, before: readonly string[], wanted: readonly string[]): string[] {
  return [...new Set([...wanted, ...before.filter(name => !sees(actor, name))])]
}
