// Authentication, as the wiring sees it.

export { type AuthSettings, Identity } from './identity.ts'
export * as authOperations from './operations.ts'
export { type AuthReader, authReader } from './session.ts'
