// The agent itself, as the wiring sees it.

export * as systemOperations from './operations.ts'
export { type SystemParts, type SystemReader, systemReader } from './system.ts'
