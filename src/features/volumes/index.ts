// Volumes, as other areas see them.

export * as volumeOperations from './operations.ts'
export { type VolumeReader, volumeReader } from './volume.ts'
