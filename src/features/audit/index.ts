// The audit log, as the wiring sees it.

export { cleanup as auditCleanupStep, removeBefore } from './cleanup.ts'
export { type AuditReader, auditReader } from './events.ts'
export * as auditOperations from './operations.ts'
