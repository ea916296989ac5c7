// Files named on the command line, with `-` for standard input.

import { readFileSync } from 'node:fs'
import { ClientError } from './failure.ts'

export function readFile(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (file === '-' && (code === 'EAGAIN' || code === 'EOF')) return ''
    throw new ClientError(code === 'ENOENT' ? `${file} does not exist.` : `${file} can't be read: ${message}`)
  }
}
