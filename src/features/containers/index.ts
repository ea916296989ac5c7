// Containers, as other areas see them.

export { type ContainerReader, containerReader } from './container.ts'
export * as containerOperations from './operations.ts'
