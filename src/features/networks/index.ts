// Networks, as other areas see them.

export { EngineName, Labels, type NetworkReader, networkReader, requireOwnLabels } from './network.ts'
export * as networkOperations from './operations.ts'
