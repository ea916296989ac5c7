// What a user is, what can be asked about users, and the rules that every change of one keeps.

import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { type Actor, levelOn, levels, type Permission, permissions, roles } from '../../core/permission.ts'
import { Nullable, REDACTED, RecordId, Secret, Time, Type, Words } from '../../core/schema.ts'
import type { Database } from '../../store/database.ts'
import { type AssignmentRow, assignments, type UserRow, users } from './records.ts'

export const Username = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
  'x-hint': 'must start with a letter or digit and hold only letters, digits, dot, dash and underscore (at most 63)',
})
export const Email = Type.String({
  maxLength: 254,
  pattern: '^$|^[^@\\s]+@[^@\\s]+$',
  'x-hint': 'must be an e-mail address or empty',
})
export const Password = Secret(
  Type.String({ minLength: 10, maxLength: 1024, 'x-hint': 'must have 10 to 1024 characters' }),
)
export const RoleName = Words(roles)
export const PermissionName = Words(permissions)
export const AccessLevel = Words(levels)
/** The one spelling of a deployment's name in every input. */
export const DeploymentName = Type.String({
  pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
  'x-hint': 'must be 1 to 63 of a-z, 0-9, _ and -, and start with a letter or digit',
})

export const Assignment = Type.Object({ deployment_name: Type.String(), access_level: AccessLevel })

export const User = Type.Object({
  id: RecordId,
  username: Type.String(),
  email: Type.String(),
  role: RoleName,
  permissions: Type.Array(PermissionName),
  is_active: Type.Boolean(),
  created_at: Time(),
  last_login_at: Nullable(Time()),
  deployments: Type.Array(Assignment),
})

export const Me = Type.Object({
  type: Words(['user', 'api_key', 'system']),
  id: Nullable(Type.Integer()),
  username: Type.String(),
  email: Type.String(),
  role: RoleName,
  permissions: Type.Array(PermissionName),
  deployments: Type.Array(Assignment),
})

declare module '../../core/operation.ts' {
  interface Readers {
    users: UserReader
  }
}

export type UserReader = ReturnType<typeof userReader>

export function userReader(db: Database, { actor }: Viewer) {
  const assigned = (id: number) => assignments.all(db, 'WHERE user_id = ? ORDER BY deployment_name', id)
  const row = (id: number): UserRow => users.get(db, { id }) ?? notFound('user', id)
  return {
    row,
    assigned,
    assignment: (id: number, deployment: string): AssignmentRow | undefined =>
      assignments.get(db, { user_id: id, deployment_name: deployment }),
    byName: (username: string): UserRow | undefined => users.all(db, 'WHERE username = ?', username)[0],
    detail: (id: number) => shown(row(id), assigned(id)),
    list: () => users.all(db, 'ORDER BY id').map(user => shown(user, assigned(user.id))),
    me: () => meOf(db, actor),
    /** The access of a user to the deployments that the caller administers. */
    accessOf(id: number) {
      row(id)
      return assigned(id)
        .filter(one => levelOn(actor, one.deployment_name) === 'admin')
        .map(shownAccess)
    },
    otherAdmins: (id: number): number => users.all(db, "WHERE role = 'admin' AND is_active = 1 AND id <> ?", id).length,
    ofDeployment: (deployment: string) =>
      db.all<{ user_id: number; username: string; access_level: (typeof levels)[number] }>(
        `SELECT user_id, username, access_level FROM user_deployments JOIN users ON users.id = user_id
          WHERE deployment_name = ? ORDER BY username`,
        deployment,
      ),
  }
}

/** What is shown in place of a password is no password: there is none yet that it could stand for. */
export function requireOwnWords(field: string, password: string): void {
  if (password !== REDACTED) return
  fail('VALIDATION_FAILED', `\`${field}\` must be a password, not what is shown in place of one.`, [
    { path: field, message: 'must be a password' },
  ])
}

export function requireAnotherAdmin(user: UserRow, after: Partial<UserRow> | null, otherAdmins: number): void {
  const wasAdmin = user.role === 'admin' && user.is_active
  const stays = after !== null && after.role === 'admin' && after.is_active === true
  if (!wasAdmin || stays || otherAdmins > 0) return
  fail('CONFLICT', `"${user.username}" is the last active administrator. Make another one first.`)
}

function shown(user: UserRow, deployments: AssignmentRow[]) {
  const { password_hash: _, ...rest } = user
  return { ...rest, deployments: deployments.map(shownAccess) }
}

const shownAccess = ({ deployment_name, access_level }: AssignmentRow) => ({ deployment_name, access_level })

function meOf(db: Database, actor: Actor) {
  const { type, id } = actor
  const email = type === 'user' && id !== null ? db.remembered(`email of user ${id}`, () => emailOf(db, id)) : ''
  const list = actor.deployments === 'all' ? [] : [...actor.deployments]
  return {
    type: actor.type,
    id: actor.id,
    username: actor.name,
    email,
    role: actor.role,
    permissions: sortedPermissions(actor.permissions),
    deployments: list.map(([deployment_name, access_level]) => ({ deployment_name, access_level })),
  }
}

const emailOf = (db: Database, id: number): string => users.get(db, { id })?.email ?? ''

const sortedBySet = new WeakMap<ReadonlySet<Permission>, Permission[]>()

function sortedPermissions(set: ReadonlySet<Permission>): Permission[] {
  const known = sortedBySet.get(set)
  if (known) return known
  const sorted = [...set].sort()
  sortedBySet.set(set, sorted)
  return sorted
}
