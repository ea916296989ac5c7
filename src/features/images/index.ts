// Images, as other areas see them.

export { type ImageReader, imageReader } from './image.ts'
export * as imageOperations from './operations.ts'
