// The operations on deployments, by what they are about.

export * from './definition.ts'
export * from './lifecycle.ts'
export * from './observation.ts'
