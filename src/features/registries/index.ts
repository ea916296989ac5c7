// Registries, as other areas see them.

export * as registryOperations from './operations.ts'
export { registries, registriesUsing } from './records.ts'
export { type RegistryReader, registryReader } from './registry.ts'
