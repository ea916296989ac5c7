// The tables of users and of the deployments assigned to them.

import type { Level, Permission, Role } from '../../core/permission.ts'
import { table } from '../../store/table.ts'

export interface UserRow {
  id: number
  username: string
  email: string
  password_hash: string
  role: Role
  permissions: Permission[]
  is_active: boolean
  created_at: string
  last_login_at: string | null
}

export interface AssignmentRow {
  user_id: number
  deployment_name: string
  access_level: Level
}

export const users = table<UserRow>('users', {
  noun: 'user',
  key: ['id'],
  columns: [
    'id',
    'username',
    'email',
    'password_hash',
    'role',
    'permissions',
    'is_active',
    'created_at',
    'last_login_at',
  ],
  json: ['permissions'],
  boolean: ['is_active'],
  secret: ['password_hash'],
  volatile: ['last_login_at'],
  label: user => user.username,
})

export const assignments = table<AssignmentRow>('user_deployments', {
  noun: 'access',
  key: ['user_id', 'deployment_name'],
  columns: ['user_id', 'deployment_name', 'access_level'],
  label: access => `of user ${access.user_id} to ${access.deployment_name}`,
})
