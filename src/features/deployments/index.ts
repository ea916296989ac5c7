// Deployments, as other areas see them.

export { type DeploymentReader, deploymentReader } from './deployment.ts'
export { DeploymentFolders } from './folders.ts'
export * as deploymentOperations from './operations.ts'
export { downSteps, upSteps } from './steps.ts'
