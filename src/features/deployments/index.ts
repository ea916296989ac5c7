// Deployments, as other areas see them.

export { type DeploymentReader, deploymentReader } from './deployment.ts'
