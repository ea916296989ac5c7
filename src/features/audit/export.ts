// An export of audit events as text: a short one here, a long one in a thread of its own, beside the other requests.

import { on } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Actor } from '../../core/permission.ts'
import { csvLine } from '../../lib/csv.ts'
import { type AuditReader, columns, type ExportedEvent, type Filter } from './events.ts'

export interface Export {
  format: 'csv' | 'json'
  filter: Filter
  limit?: number | undefined
}

/** What the thread is given. */
export interface ThreadTask extends Export {
  folder: string
  actor: Actor
}

/** To start a thread takes as long as to write about so many events. */
const FEW = 10_000

export function exported(audit: AuditReader, asked: Export): AsyncGenerator<string> {
  const events = audit.all(asked.filter, asked.limit)
  if (Math.min(audit.spanOf(asked.filter), asked.limit ?? FEW + 1) <= FEW) return exportText(asked.format, events)
  return fromThread({ ...asked, folder: audit.folder, actor: audit.actor })
}

export const exportText = (format: Export['format'], events: AsyncIterable<ExportedEvent[]>): AsyncGenerator<string> =>
  format === 'csv' ? csvOf(events) : jsonOf(events)

/** The thread is ahead by a few texts, and by no more: a reader that stops reading stops it. */
async function* fromThread(task: ThreadTask): AsyncGenerator<string> {
  const thread = new Worker(new URL('./export-thread.ts', import.meta.url), {
    workerData: task,
    resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 64 },
  })
  try {
    for await (const [text] of on(thread, 'message') as AsyncIterable<[string | null]>) {
      if (text === null) return
      yield text
      thread.postMessage('more')
    }
  } finally {
    await thread.terminate()
  }
}

const SUCCESS = columns.indexOf('success')
const DETAILS = columns.indexOf('details')

async function* csvOf(pages: AsyncIterable<ExportedEvent[]>): AsyncGenerator<string> {
  yield csvLine(columns)
  for await (const page of pages) yield page.map(csvRow).join('')
}

const csvRow = (event: ExportedEvent): string => csvLine(event.with(SUCCESS, event[SUCCESS] === 1))

async function* jsonOf(pages: AsyncIterable<ExportedEvent[]>): AsyncGenerator<string> {
  yield '['
  let first = true
  for await (const page of pages) {
    yield (first ? '\n' : ',\n') + page.map(jsonRow).join(',\n')
    first = false
  }
  yield '\n]\n'
}

function jsonRow(event: ExportedEvent): string {
  const fields = event.map(
    (value, n) => `"${columns[n]}":${n === DETAILS ? value : JSON.stringify(n === SUCCESS ? value === 1 : value)}`,
  )
  return `{${fields.join(',')}}`
}
