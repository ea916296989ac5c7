// What a compose file from anybody but an administrator may do: an allow-list, applied in two passes.

export type { PolicyFolder } from './inside.ts'
export { type ModelContext, refuseModel } from './model-pass.ts'
export { type Owners, ownersOf } from './owners.ts'
export { type RawFiles, type RawRead, refuseRawOutside } from './raw-pass.ts'
export type { Refusal } from './refusal.ts'
export { writtenBy } from './written.ts'
