// Who may do what: roles, permissions, levels on deployments, and the actor that carries them.

import { fail } from './failure.ts'

export const resources = [
  'deployments', 'containers', 'images', 'volumes', 'networks', 'templates', 'certificates', 'proxy', 'databases',
  'infrastructure', 'system', 'settings', 'security', 'backups', 'object_stores', 'plans', 'observability', 'dashboards',
  'notifications', 'scheduler', 'users', 'apikeys', 'traffic', 'audit', 'dns', 'plugins', 'registries', 'credentials',
] as const // biome-ignore format: a table of words
export const roles = ['admin', 'operator', 'viewer'] as const
export const levels = ['read', 'write', 'admin'] as const

export type Resource = (typeof resources)[number]
export type Permission = `${Resource}:${'read' | 'write'}`
export type Role = (typeof roles)[number]
export type Level = (typeof levels)[number]

/** What an operation asks of its caller: a permission, the role `admin`, any valid login, or nothing at all. */
export type Access = Permission | 'admin' | 'authenticated' | 'public'

export const permissions: readonly Permission[] = resources.flatMap(
  resource => [`${resource}:read`, `${resource}:write`] as const,
)

export interface Actor {
  type: 'user' | 'api_key' | 'system'
  id: number | null
  name: string
  role: Role
  permissions: ReadonlySet<Permission>
  /** The deployments he may see, with their levels; `all` is no restriction. */
  deployments: ReadonlyMap<string, Level> | 'all'
  /** False for a key that is bound to a list of deployments. */
  mayCreateDeployments: boolean
  /** The user behind it: himself, or the owner of the key; null for the system and keys of the configuration. */
  userId: number | null
}

/** A deployment an operation touches, and the level it needs there. */
export interface Scope {
  deployment: string
  level: Level
}

const operatorWrites: readonly Resource[] = [
  'deployments', 'containers', 'images', 'volumes', 'networks', 'templates', 'certificates', 'proxy', 'databases', 'backups',
  'object_stores', 'plans', 'dashboards', 'scheduler', 'dns', 'apikeys',
] // biome-ignore format: a table of words
const operatorNeverReads: readonly Resource[] = ['users', 'audit', 'settings', 'credentials']
const viewerReads: readonly Resource[] = [
  'deployments', 'containers', 'images', 'volumes', 'networks', 'templates', 'certificates', 'proxy', 'infrastructure', 'system',
  'backups', 'plans', 'observability', 'dashboards', 'scheduler', 'traffic', 'plugins', 'apikeys',
] // biome-ignore format: a table of words

const ofRole: Record<Role, ReadonlySet<Permission>> = {
  admin: new Set(permissions),
  operator: withReads([
    ...resources
      .filter(resource => !operatorNeverReads.includes(resource))
      .map((resource): Permission => `${resource}:read`),
    ...operatorWrites.map((resource): Permission => `${resource}:write`),
  ]),
  viewer: withReads(viewerReads.map((resource): Permission => `${resource}:read`)),
}

export const system: Actor = {
  type: 'system',
  id: null,
  name: 'system',
  role: 'admin',
  permissions: ofRole.admin,
  deployments: 'all',
  mayCreateDeployments: true,
  userId: null,
}

/** What a role and a list amount to: a list that is not empty replaces the role's. */
export function permissionsOf(role: Role, list: readonly Permission[]): ReadonlySet<Permission> {
  return role === 'admin' || list.length === 0 ? ofRole[role] : withReads(list)
}

export function mayUse(actor: Actor, access: Access): boolean {
  if (access === 'public' || access === 'authenticated') return true
  return access === 'admin' ? isAdministrator(actor) : actor.permissions.has(access)
}

/** A key with the role admin that is bound to some deployments is none: users and settings reach beyond them. */
export const isAdministrator = (actor: Actor): boolean => actor.role === 'admin' && actor.deployments === 'all'

export function requireAccess(actor: Actor, access: Access): void {
  if (mayUse(actor, access)) return
  const what = access === 'admin' ? 'the role admin on all deployments' : `the permission ${access}`
  fail('FORBIDDEN', `This needs ${what}, which ${actor.name} does not have. Ask an administrator for it.`)
}

export function levelOn(actor: Actor, deployment: string): Level | undefined {
  return actor.deployments === 'all' ? 'admin' : actor.deployments.get(deployment)
}

export const sees = (actor: Actor, deployment: string | null): boolean =>
  deployment === null || levelOn(actor, deployment) !== undefined

/** Somebody else's deployment does not exist for him; on one of his own the level decides. */
export function requireScope(actor: Actor, scopes: readonly Scope[]): void {
  for (const { deployment, level } of scopes) {
    const held = levelOn(actor, deployment)
    if (held === undefined) fail('NOT_FOUND', `There is no deployment "${deployment}".`)
    if (levels.indexOf(held) >= levels.indexOf(level)) continue
    fail('FORBIDDEN', `This needs level ${level} on deployment "${deployment}"; ${actor.name} has ${held}.`)
  }
}

/** Nobody grants what he does not have himself. */
export function requireCanGrant(
  actor: Actor,
  grant: { role: Role; permissions: readonly Permission[]; deployments?: readonly string[] },
): void {
  if (grant.role === 'admin' && grant.permissions.length > 0) {
    fail(
      'VALIDATION_FAILED',
      'The role admin has every permission; leave `permissions` empty or choose another role.',
      [{ path: 'permissions', message: 'must be empty for the role admin' }],
    )
  }
  if (grant.role === 'admin' && !isAdministrator(actor)) {
    fail('FORBIDDEN', 'Only an administrator of all deployments can grant the role admin.')
  }
  const missing = [...permissionsOf(grant.role, grant.permissions)].filter(
    permission => !actor.permissions.has(permission),
  )
  if (missing.length > 0) {
    fail('FORBIDDEN', `You cannot grant what you do not have yourself: ${missing.join(', ')}.`, { missing })
  }
  for (const deployment of grant.deployments ?? []) {
    if (!sees(actor, deployment)) fail('NOT_FOUND', `There is no deployment "${deployment}".`)
  }
}

/** The smaller of two actors' rights, as a key has them under its owner. */
export function lesser(owner: Actor, own: Actor): Actor {
  const both = new Set([...own.permissions].filter(permission => owner.permissions.has(permission)))
  return {
    ...own,
    role: roles.indexOf(own.role) >= roles.indexOf(owner.role) ? own.role : owner.role,
    permissions: both,
    mayCreateDeployments: own.deployments === 'all' && owner.mayCreateDeployments,
    deployments: lesserDeployments(owner.deployments, own.deployments),
  }
}

function lesserDeployments(owner: Actor['deployments'], own: Actor['deployments']): Actor['deployments'] {
  if (own === 'all') return owner
  if (owner === 'all') return own
  return new Map([...own.keys()].flatMap(name => (owner.has(name) ? [[name, owner.get(name) as Level] as const] : [])))
}

function withReads(list: readonly Permission[]): ReadonlySet<Permission> {
  return new Set(list.flatMap(permission => [permission, permission.replace(':write', ':read') as Permission]))
}
