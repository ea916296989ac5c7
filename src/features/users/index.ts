// Users, as other areas see them.

export * as userOperations from './operations.ts'
export { type AssignmentRow, assignments, type UserRow, users } from './records.ts'
export { AccessLevel, DeploymentName, PermissionName, RoleName, type UserReader, userReader } from './user.ts'
