// Plans, as the wiring sees them.

export * as planOperations from './operations.ts'
export { discard as planDiscardStep, type PlanReader, planReader } from './plan-reader.ts'
