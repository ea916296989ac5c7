// The agent itself, as the wiring sees it.

export { type HealthWatch, watchHealth } from './health.ts'
export * as systemOperations from './operations.ts'
export { type SystemParts, type SystemReader, systemReader } from './system.ts'
