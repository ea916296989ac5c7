// The one way to touch a user's files.

export { placeOf } from './confined.ts'
export type {
  Expectation,
  FileContent,
  FileEntry,
  FileStat,
  Files,
  FilesReader,
  FileType,
  WriteOptions,
} from './files.ts'
export { openFiles, sha256 } from './open-files.ts'
