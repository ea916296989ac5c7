// Users: the caller himself, everybody else for administrators, and the deployments assigned to them.

import { isDeepStrictEqual } from 'node:util'
import { revisionOf } from '../../core/canonical.ts'
import { fail } from '../../core/failure.ts'
import { command, query } from '../../core/operation.ts'
import { requireCanGrant } from '../../core/permission.ts'
import { deleteRecord, putRecord } from '../../core/record.ts'
import { Nothing, REDACTED, RecordId, Secret, Type } from '../../core/schema.ts'
import { momentOf } from '../../core/step.ts'
import { hashPassword, isPassword } from '../../lib/password.ts'
import { assignments, users } from './records.ts'
import {
  AccessLevel,
  Assignment,
  DeploymentName,
  Email,
  Me,
  Password,
  PermissionName,
  RoleName,
  requireAnotherAdmin,
  requireOwnWords,
  User,
  Username,
} from './user.ts'

const userResource = { type: 'user', id: ({ id }: { id: number }) => id }
const oneAtATime = () => ['users']

export const me = query('users.me', {
  summary: 'Show the caller',
  http: { method: 'GET', path: '/api/users/me' },
  permission: 'authenticated',
  input: Type.Object({}),
  output: Me,
  example: {},
  read: ({ users }) => users.me(),
})

export const updateMe = command('users.update_me', {
  summary: "Change the caller's profile",
  http: { method: 'PUT', path: '/api/users/me' },
  permission: 'authenticated',
  resource: { type: 'user', id: () => 'me' },
  locks: oneAtATime,
  input: Type.Object({ email: Type.Optional(Email) }),
  output: Me,
  example: { email: 'me@example.org' },
  fails: ['FORBIDDEN'],
  decide({ users: reader, actor }, { email }) {
    const before = reader.row(requireUser(actor))
    return email === undefined || email === before.email ? [] : [putRecord(users, before, { ...before, email })]
  },
  reply: ({ users }) => users.me(),
  message: 'Your profile was changed.',
})

export const changePassword = command('users.change_password', {
  summary: "Change the caller's password",
  http: { method: 'PUT', path: '/api/users/me/password' },
  permission: 'authenticated',
  resource: { type: 'user', id: () => 'me' },
  locks: oneAtATime,
  input: Type.Object({ current_password: Secret(Type.String({ maxLength: 1024 })), new_password: Password }),
  output: Nothing,
  example: { current_password: 'correct horse battery', new_password: 'another horse battery' },
  fails: ['FORBIDDEN'],
  async decide({ users: reader, actor, fresh }, { current_password, new_password }) {
    const before = reader.row(requireUser(actor))
    requireOwnWords('new_password', new_password)
    if (!(await isPassword(current_password, before.password_hash))) {
      fail('VALIDATION_FAILED', 'The current password is not right.', [
        { path: 'current_password', message: 'is not right' },
      ])
    }
    const password_hash = await hashPassword(new_password, fresh.bytes('salt', 16))
    return [putRecord(users, before, { ...before, password_hash }, { cause: 'new password' })]
  },
  message: 'Your password was changed.',
})

export const list = query('users.list', {
  summary: 'List users',
  http: { method: 'GET', path: '/api/users' },
  permission: 'admin',
  input: Type.Object({}),
  output: Type.Array(User),
  example: {},
  read: ({ users }) => users.list(),
})

export const get = query('users.get', {
  summary: 'Show a user',
  http: { method: 'GET', path: '/api/users/:id' },
  permission: 'admin',
  input: Type.Object({ id: RecordId }),
  output: User,
  example: { id: 1 },
  read: ({ users }, { id }) => users.detail(id),
  revision: ({ last_login_at: _, ...user }) => revisionOf(user),
})

export const create = command('users.create', {
  summary: 'Create a user',
  http: { method: 'POST', path: '/api/users', status: 201 },
  permission: 'admin',
  resource: { type: 'user', id: ({ username }, { user }) => (user as { id: number } | undefined)?.id ?? username },
  locks: oneAtATime,
  input: Type.Object({
    username: Username,
    password: Password,
    email: Type.Optional(Email),
    role: Type.Optional(RoleName),
    permissions: Type.Optional(
      Type.Array(PermissionName, { maxItems: 100, description: "Replaces the role's permissions when not empty" }),
    ),
  }),
  output: User,
  example: { username: 'carol', password: 'correct horse battery', email: 'carol@example.org', role: 'operator' },
  fails: ['ALREADY_EXISTS'],
  async decide({ users: reader, actor, fresh }, { username, password, email = '', role = 'viewer', permissions = [] }) {
    requireOwnWords('password', password)
    requireCanGrant(actor, { role, permissions })
    if (reader.byName(username)) fail('ALREADY_EXISTS', `There is a user "${username}" already. Choose another name.`)
    const password_hash = await hashPassword(password, fresh.bytes('salt', 16))
    const user = { username, email, password_hash, role, permissions, is_active: true, created_at: momentOf() }
    return [putRecord(users, null, user, { as: 'user' })]
  },
  reply: ({ users }, _input, results) => users.detail((results.user as { id: number }).id),
  message: 'The user was created.',
})

export const update = command('users.update', {
  summary: 'Change a user',
  http: { method: 'PUT', path: '/api/users/:id' },
  permission: 'admin',
  resource: userResource,
  locks: oneAtATime,
  input: Type.Object({
    id: RecordId,
    username: Type.Optional(Username),
    email: Type.Optional(Email),
    password: Type.Optional(Password),
    role: Type.Optional(RoleName),
    permissions: Type.Optional(Type.Array(PermissionName, { maxItems: 100 })),
    is_active: Type.Optional(Type.Boolean()),
  }),
  output: User,
  example: { id: 2, role: 'viewer' },
  fails: ['ALREADY_EXISTS'],
  async decide({ users: reader, actor, fresh }, { id, password, ...changes }) {
    const before = reader.row(id)
    const after = { ...before, ...changes }
    if (changes.role === 'admin' && changes.permissions === undefined) after.permissions = []
    if (changes.role !== undefined || changes.permissions !== undefined) requireCanGrant(actor, after)
    requireAnotherAdmin(before, after, reader.otherAdmins(id))
    const namesake = changes.username === undefined ? undefined : reader.byName(changes.username)
    if (namesake && namesake.id !== id)
      fail('ALREADY_EXISTS', `There is a user "${changes.username}" already. Choose another name.`)
    if (password !== undefined && password !== REDACTED)
      after.password_hash = await hashPassword(password, fresh.bytes('salt', 16))
    return isDeepStrictEqual(before, after) ? [] : [putRecord(users, before, after)]
  },
  reply: ({ users }, { id }) => users.detail(id),
  message: 'The user was changed.',
})

export const remove = command('users.delete', {
  summary: 'Delete a user, his keys and his access to deployments',
  http: { method: 'DELETE', path: '/api/users/:id' },
  permission: 'admin',
  resource: userResource,
  locks: oneAtATime,
  input: Type.Object({ id: RecordId }),
  output: Nothing,
  example: { id: 2 },
  decide({ users: reader, apikeys }, { id }) {
    const before = reader.row(id)
    requireAnotherAdmin(before, null, reader.otherAdmins(id))
    const access = reader.assigned(id).map(one => deleteRecord(assignments, one, { cause: 'its user goes' }))
    return [...access, ...apikeys.deletionOf(id), deleteRecord(users, before)]
  },
  message: 'The user was deleted.',
})

export const deployments = query('users.deployments', {
  summary: 'List the deployments assigned to a user: those that the caller administers',
  http: { method: 'GET', path: '/api/users/:id/deployments' },
  permission: 'deployments:read',
  input: Type.Object({ id: RecordId }),
  output: Type.Array(Assignment),
  example: { id: 2 },
  read: ({ users }, { id }) => users.accessOf(id),
})

export const assign = command('users.assign', {
  summary: 'Give a user access to a deployment',
  http: { method: 'POST', path: '/api/users/:id/deployments', status: 201 },
  permission: 'deployments:write',
  resource: userResource,
  locks: oneAtATime,
  input: Type.Object({ id: RecordId, deployment_name: DeploymentName, access_level: AccessLevel }),
  output: Assignment,
  example: { id: 2, deployment_name: 'blog', access_level: 'write' },
  scope: ({ deployment_name }) => [{ deployment: deployment_name, level: 'admin' }],
  fails: ['ALREADY_EXISTS'],
  async decide({ users: reader, deployments }, { id, deployment_name, access_level }) {
    reader.row(id)
    await deployments.requireKnown(deployment_name)
    if (reader.assignment(id, deployment_name)) {
      fail('ALREADY_EXISTS', `The user has access to "${deployment_name}" already. Change its level with PUT.`)
    }
    return [putRecord(assignments, null, { user_id: id, deployment_name, access_level })]
  },
  reply: (_ask, { deployment_name, access_level }) => ({ deployment_name, access_level }),
  message: 'Access was given.',
})

export const changeAccess = command('users.change_access', {
  summary: "Change a user's access level on a deployment",
  http: { method: 'PUT', path: '/api/users/:id/deployments/:name' },
  permission: 'deployments:write',
  resource: userResource,
  locks: oneAtATime,
  input: Type.Object({ id: RecordId, name: DeploymentName, access_level: AccessLevel }),
  output: Assignment,
  example: { id: 2, name: 'shop', access_level: 'read' },
  scope: ({ name }) => [{ deployment: name, level: 'admin' }],
  decide({ users: reader }, { id, name, access_level }) {
    reader.row(id)
    const before =
      reader.assignment(id, name) ?? fail('NOT_FOUND', `The user has no access to "${name}". Give it with POST.`)
    return access_level === before.access_level ? [] : [putRecord(assignments, before, { ...before, access_level })]
  },
  reply: (_ask, { name, access_level }) => ({ deployment_name: name, access_level }),
  message: 'The access level was changed.',
})

export const revokeAccess = command('users.revoke_access', {
  summary: "Take away a user's access to a deployment",
  http: { method: 'DELETE', path: '/api/users/:id/deployments/:name' },
  permission: 'deployments:write',
  resource: userResource,
  locks: oneAtATime,
  input: Type.Object({ id: RecordId, name: DeploymentName }),
  output: Nothing,
  example: { id: 2, name: 'shop' },
  scope: ({ name }) => [{ deployment: name, level: 'admin' }],
  decide({ users: reader }, { id, name }) {
    reader.row(id)
    return [
      deleteRecord(
        assignments,
        reader.assignment(id, name) ?? fail('NOT_FOUND', `The user has no access to "${name}".`),
      ),
    ]
  },
  message: 'Access was taken away.',
})

function requireUser(actor: { type: string; id: number | null; name: string }): number {
  if (actor.type === 'user' && actor.id !== null) return actor.id
  return fail('FORBIDDEN', `${actor.name} is not a user and has no profile. Log in with a username and password.`)
}
