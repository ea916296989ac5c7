// Deployments, as other areas see them.

export { type Belonging, belongings, belongingTo, type Reference } from './belonging.ts'
export { DeploymentFolders } from './folders.ts'
export { DeploymentLogs, LogLineSchema, logFields } from './logs.ts'
export { modelMemory } from './model-memory.ts'
export * as deploymentOperations from './operations/index.ts'
export { Overview } from './overview.ts'
export { type DeploymentReader, deploymentReader } from './reader.ts'
export { trusted } from './records.ts'
export { ContainerStats } from './stats.ts'
export { downSteps, upSteps } from './steps.ts'
