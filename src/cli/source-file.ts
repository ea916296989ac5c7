// Files named on the command line, with `-` for standard input.

import { readFile as readWhole } from 'node:fs/promises'
import { ClientError } from './failure.ts'

export async function readFile(file: string): Promise<string> {
  if (file === '-') return standardInput()
  try {
    return await readWhole(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new ClientError(code === 'ENOENT' ? `${file} does not exist.` : `${file} can't be read: ${message}`)
  }
}

async function standardInput(): Promise<string> {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const part of process.stdin) text += part
  return text
}
