// An answer of the agent as people, or their scripts with --quiet, want to see it.

import { nearMiss } from '../../lib/near-miss.ts'
import type { Command } from '../document.ts'
import { UsageError } from '../failure.ts'
import { present, type Schema, shapeOf } from '../schema.ts'
import { printable, type Screen } from '../screen.ts'
import { isObject } from '../value.ts'
import { cellOf } from './cell.ts'
import { detailLines } from './details.ts'
import { isLog, type LogEntry, logLine } from './log.ts'
import { changeLines, isPlan, type Plan, planLines } from './plan.ts'
import { type Column, columnsOf, type Item, tableLines, valueAt } from './table.ts'

export interface AnswerStyle {
  quiet: boolean
  /** As given with --columns. */
  columns?: string | undefined
  /** The field by which an item of this area is addressed. */
  identity?: string | undefined
  /** `fairlead`, with the profile when one was named. */
  program: string
}

export function printAnswer(screen: Screen, command: Command, body: unknown, style: AnswerStyle): void {
  const { data, message, plan, total, offset } = partsOf(command, body)
  if (isPlan(data)) return printPlan(screen, data, style)
  if (style.quiet) return printQuietly(screen, data, style)
  if (isPlan(plan)) for (const line of changeLines(screen, plan.changes)) screen.print(line)
  if (command.kind !== 'query' && message) screen.note(printable(message))
  if (Array.isArray(data)) return printList(screen, command, data, { ...style, total, offset: offset ?? 0 })
  if (isObject(data)) return printRecord(screen, command, data, style)
  if (data !== null && data !== undefined) screen.print(cellOf(data, command.output ?? {}, '', { people: screen.people }))
}

/** A job that was started, where the answer is one. */
export function startedJob(body: unknown): { id: string; message: string } | undefined {
  if (!isObject(body) || typeof body.job_id !== 'string') return undefined
  return { id: body.job_id, message: String(body.message ?? '') }
}

interface Parts {
  data: unknown
  message?: string
  plan?: unknown
  total?: number
  offset?: number
}

/** Applying answers what the planned request answers, so a body without `data` is the answer itself. */
function partsOf({ bare, kind }: Command, body: unknown): Parts {
  if (!isObject(body)) return { data: body }
  if (kind === 'apply') {
    const { plan, data, message, ...rest } = body
    return { data: data ?? (Object.keys(rest).length > 0 ? rest : null), plan, ...(typeof message === 'string' ? { message } : {}) }
  }
  // With plan=true a bare operation answers a plan in an envelope.
  return bare && !isPlan(body.data) ? { data: body } : (body as unknown as Parts)
}

function printPlan(screen: Screen, plan: Plan, { quiet, program }: AnswerStyle): void {
  if (quiet) return screen.print(plan.id)
  for (const line of planLines(screen, plan, `${program} plans apply ${plan.id}`)) screen.print(line)
}

function printQuietly(screen: Screen, data: unknown, { identity }: AnswerStyle): void {
  for (const item of Array.isArray(data) ? data : [data]) {
    const id = identityOf(item, identity)
    if (id !== undefined) screen.print(printable(String(id)))
  }
}

function identityOf(item: unknown, identity: string | undefined): unknown {
  if (!isObject(item)) return item ?? undefined
  return [identity, 'id', 'name', 'domain'].flatMap(name => (name && item[name] !== undefined ? [item[name]] : []))[0]
}

function printList(screen: Screen, command: Command, items: unknown[], style: AnswerStyle & Pick<Parts, 'total' | 'offset'>): void {
  const schema = present(command.output ?? {}).items ?? {}
  if (items.length === 0) return screen.note(`No ${nounOf(command)}.`)
  if (isLog(schema) && style.columns === undefined) {
    for (const item of items as LogEntry[]) screen.print(logLine(screen, item))
  } else if (items.every(isObject)) {
    const chosen = style.columns === undefined ? {} : { chosen: chosenColumns(style.columns, schema, items) }
    for (const line of tableLines(screen, items, schema, { identity: style.identity, ...chosen })) screen.print(line)
  } else for (const item of items) screen.print(cellOf(item, schema, '', { people: screen.people }))
  noteMore(screen, items.length, style)
}

function noteMore(screen: Screen, count: number, { total, offset = 0 }: Pick<Parts, 'total' | 'offset'>): void {
  if (total === undefined || total <= offset + count) return
  screen.note(`${offset + 1} to ${offset + count} of ${total}; go on with --offset ${offset + count}`)
}

function printRecord(screen: Screen, command: Command, record: Item, style: AnswerStyle): void {
  const schema = command.output ?? {}
  if (style.columns !== undefined) {
    for (const column of chosenColumns(style.columns, schema, [record])) {
      screen.print(cellOf(valueAt(record, column.path), column.schema, column.path.at(-1) ?? '', { people: screen.people, full: true }))
    }
    return
  }
  if (command.kind === 'query' && command.output && shapeOf(schema) === 'any') return screen.print(JSON.stringify(record, null, 2))
  for (const line of detailLines(screen, record, schema, { brief: command.kind !== 'query' })) screen.print(line)
}

function chosenColumns(text: string, schema: Schema, items: readonly Item[]): Column[] {
  return text.split(',').map(word => {
    const path = word.trim().replaceAll('-', '_').split('.')
    let [place, found]: [Schema, boolean] = [schema, true]
    for (const name of path) {
      const known = columnsOf(place, place === schema ? items : []).map(column => column.path[0] as string)
      found = found && (known.length === 0 || known.includes(name))
      if (!found) throw unknownColumn(name, known)
      place = present(place).properties?.[name] ?? {}
    }
    return { path, schema: place }
  })
}

function unknownColumn(name: string, known: string[]): UsageError {
  const meant = nearMiss(name, known)
  return new UsageError(`There is no column ${name}.${meant ? ` Did you mean ${meant}?` : ''} Columns: ${known.join(', ')}`)
}

/** What a list is a list of: its own name, or that of its area. */
function nounOf({ words }: Command): string {
  const last = words.at(-1) === 'list' ? words.at(-2) : words.at(-1)
  return (last ?? 'results').replaceAll('-', ' ')
}
