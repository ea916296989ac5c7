// Files to and from the agent, as streams: a download appears under its name only when it is whole.

import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { rename, unlink } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { temporaryName } from '../lib/write-aside.ts'
import { ClientError } from './failure.ts'
import { type Ask, doneText, isRefusal } from './http.ts'
import { sizeText } from './print/cell.ts'
import { Progress } from './progress.ts'
import type { Screen } from './screen.ts'
import type { Session } from './session.ts'

export async function download(session: Session, ask: Ask, output: string | undefined, screen: Screen): Promise<void> {
  const answer = await session.ask(ask)
  if (isRefusal(answer)) await doneText(answer)
  if (output !== undefined && output !== '-') return save(answer, output, screen)
  if (screen.people && !/text|json|xml|yaml/.test(answer.headers['content-type'] ?? '')) {
    answer.destroy()
    throw new ClientError('This is not text for a terminal. Write it to a file with --output FILE.')
  }
  await pipeline(answer, process.stdout, { end: false })
}

/** An answer as it is, however long: nothing of it is gathered here. */
export async function passOn(session: Session, ask: Ask): Promise<void> {
  const answer = await session.ask(ask)
  if (isRefusal(answer)) await doneText(answer)
  await pipeline(answer, process.stdout, { end: false })
  process.stdout.write('\n')
}

/** The request with a file as its body; the session may repeat it unless it comes from standard input. */
export function withFile(ask: Ask, file: string): Ask {
  const headers = { ...ask.headers, 'content-type': 'application/octet-stream' }
  if (file === '-') return { ...ask, headers, body: () => process.stdin, once: true }
  return { ...ask, headers: { ...headers, 'content-length': String(sizeOf(file)) }, body: () => createReadStream(file) }
}

async function save(answer: IncomingMessage, output: string, screen: Screen): Promise<void> {
  const file = isFolder(output) ? join(output, nameOf(answer)) : output
  const aside = join(dirname(file), temporaryName())
  const progress = screen.live ? new Progress(process.stderr, basename(file)) : undefined
  const size = Number(answer.headers['content-length'] ?? 0)
  let received = 0
  answer.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (size > 0) progress?.at(received / size, `${basename(file)} ${sizeText(received)}`)
  })
  try {
    await pipeline(answer, createWriteStream(aside))
    await rename(aside, file)
  } catch (error) {
    await unlink(aside).catch(() => {})
    throw new ClientError(`${file} could not be written: ${(error as Error).message}`)
  } finally {
    progress?.end()
  }
  screen.note(`${file}: ${sizeText(received)}`)
}

/** The server's name for it, never a path. */
function nameOf(answer: IncomingMessage): string {
  const [, name] = /filename="([^"]+)"/.exec(answer.headers['content-disposition'] ?? '') ?? []
  return basename(name ?? '') || 'download'
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

function sizeOf(file: string): number {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat?.isFile()) return stat.size
  throw new ClientError(`${file} ${stat ? 'is not a file' : 'does not exist'}.`)
}
