// Websockets that follow something: every frame is printed as it comes, until the end or Ctrl-C.

import { ClientError } from './failure.ts'
import { type LogEntry, logLine } from './print/log.ts'
import { printable, type Screen } from './screen.ts'
import type { Session } from './session.ts'

interface Frame {
  type: string
  error?: string
  count?: number
}

const TOKEN_REFUSED = 4401

/** `path` from /api on, with its query. */
export async function follow(session: Session, path: string, screen: Screen, json: boolean): Promise<void> {
  process.once('SIGINT', () => process.exit(130))
  const url = session.target.url.replace(/^http/, 'ws') + path
  const print = (frame: Frame, text: string) => (json ? screen.print(text) : printFrame(screen, frame))
  const first = await pour(url, await session.token(), print)
  const last = first.code === TOKEN_REFUSED ? await pour(url, await session.renew(), print) : first
  if (last.code !== END) throw new ClientError(last.reason || `The connection to ${session.target.url} was lost.`)
}

const END = 1000

/** Until the socket closes: its code, and the words for it. */
async function pour(
  url: string,
  token: string | undefined,
  print: (frame: Frame, text: string) => void,
): Promise<{ code: number; reason: string }> {
  const { promise, resolve } = Promise.withResolvers<{ code: number; reason: string }>()
  const socket = new WebSocket(url)
  let refused = ''
  socket.onopen = () => socket.send(token ?? '')
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(String(data)) as Frame
    if (frame.type === 'error') refused = frame.error ?? ''
    else print(frame, String(data))
  }
  socket.onclose = ({ code, reason }) => resolve({ code, reason: refused || reason })
  return promise
}

function printFrame(screen: Screen, frame: Frame): void {
  if (frame.type === 'log') screen.print(logLine(screen, frame as unknown as LogEntry))
  else if (frame.type === 'dropped') screen.note(`(${frame.count} lines were dropped: the reader was too slow)`)
  else if (frame.type !== 'end') screen.print(printable(JSON.stringify(frame)))
}
