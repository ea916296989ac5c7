// One request of a command and its answer, with a line of progress where somebody watches.

import type { IncomingMessage } from 'node:http'
import { type Arguments, has, textOf } from './arguments.ts'
import type { Command } from './document.ts'
import { ClientError, Refusal } from './failure.ts'
import { isMutation } from './flags.ts'
import { type Ask, doneText, linesOf } from './http.ts'
import type { Input } from './input.ts'
import { Progress, type WorkEvent } from './progress.ts'
import type { Screen } from './screen.ts'
import type { Session } from './session.ts'

export interface Answered {
  text: string
  etag: string | undefined
}

export function askOf(command: Command, input: Input, args: Arguments): Ask {
  const ifMatch = textOf(args, 'if-match')
  const key = textOf(args, 'idempotency-key')
  const body = Object.keys(input.body).length > 0 ? JSON.stringify(input.body) : undefined
  return {
    method: command.method,
    path: pathOf(command.path, input, has(args, 'plan')),
    headers: {
      ...(body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
      ...(ifMatch === undefined ? {} : { 'if-match': quoted(ifMatch) }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(has(args, 'async') ? { prefer: 'respond-async' } : {}),
    },
    ...(body === undefined ? {} : { body }),
    ...(command.permission === 'public' ? { open: true as const } : {}),
  }
}

export function pathOf(path: string, input: Input, plan = false): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(input.path[name] ?? ''))
  const query = new URLSearchParams(
    Object.entries(input.query).map(([name, value]): [string, string] => [name, queryText(value)]),
  )
  if (plan) query.set('plan', 'true')
  return query.size > 0 ? `${filled}?${query}` : filled
}

/** The answer's text, or the server's refusal. Work that takes long is watched on a terminal. */
export async function answerOf(
  session: Session,
  command: Command,
  ask: Ask,
  screen: Screen,
  watch: boolean,
): Promise<Answered> {
  if (!isMutation(command)) return plainAnswer(session, ask)
  const forget = onInterrupt(() => screen.note(goesOn(command)))
  const progress = watch ? new Progress(process.stderr, command.summary) : undefined
  try {
    return await (progress ? watchedAnswer(session, ask, progress) : plainAnswer(session, ask))
  } finally {
    progress?.end()
    forget()
  }
}

/** Says something last when somebody presses Ctrl-C. */
export function onInterrupt(say: () => void): () => void {
  const stop = () => {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
    say()
    process.exit(130)
  }
  process.once('SIGINT', stop)
  return () => void process.off('SIGINT', stop)
}

async function plainAnswer(session: Session, ask: Ask): Promise<Answered> {
  return wholeOf(await session.ask(ask))
}

async function wholeOf(answer: IncomingMessage): Promise<Answered> {
  return { text: await doneText(answer), etag: answer.headers.etag }
}

/** Steps come line by line; work without steps answers as usual. */
async function watchedAnswer(session: Session, ask: Ask, progress: Progress): Promise<Answered> {
  const answer = await session.ask({
    ...ask,
    headers: { ...ask.headers, accept: 'application/x-ndjson, application/json' },
  })
  if (!answer.headers['content-type']?.includes('ndjson')) return wholeOf(answer)
  try {
    for await (const line of linesOf(answer)) {
      const event = JSON.parse(line) as WorkEvent | { type: 'result'; status: number; body: unknown }
      if (event.type !== 'result') progress.event(event)
      else if (event.status >= 400) throw new Refusal(event.status, JSON.stringify(event.body))
      else return { text: JSON.stringify(event.body), etag: undefined }
    }
  } catch (error) {
    if (error instanceof Refusal) throw error
  }
  throw new ClientError(
    'The connection broke before the end. The work goes on on the server; its audit log tells how it ended: fairlead audit events',
  )
}

function goesOn({ words }: Command): string {
  return [
    `${words.join(' ')} goes on on the server; its audit log tells how it ended: fairlead audit events`,
    'With --async it is a job, which can be watched (fairlead jobs wait) and cancelled (fairlead jobs cancel).',
  ].join('\n')
}

const quoted = (etag: string): string => (/^(W\/)?"|^\*$/.test(etag) ? etag : `"${etag}"`)

function queryText(value: unknown): string {
  if (Array.isArray(value)) return value.map(queryText).join(',')
  return value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value)
}
