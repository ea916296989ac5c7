// Deployments, as other areas see them.

export { type DeploymentReader, deploymentReader } from './deployment.ts'
export { DeploymentFolders } from './folders.ts'
export { DeploymentLogs } from './logs.ts'
export * as deploymentOperations from './operations/index.ts'
export { ContainerStats } from './stats.ts'
export { downSteps, upSteps } from './steps.ts'
