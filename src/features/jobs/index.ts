// Jobs, as the wiring sees them.

export { cancelJob, type JobReader, jobReader } from './job-reader.ts'
export * as jobOperations from './operations.ts'
