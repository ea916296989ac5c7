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
import { changeLines, isPlan, planLines } from './plan.ts'
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
  const parts = partsOf(command, body)
  for (const line of answerLines(screen, command, parts, style)) screen.print(line)
  if (!style.quiet && Array.isArray(parts.data)) noteMore(screen, parts.data.length, parts)
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
  total?: number | undefined
  offset?: number | undefined
}

/** Applying answers what the planned request answers, so a body without `data` is the answer itself. */
function partsOf({ bare, kind }: Command, body: unknown): Parts {
  if (!isObject(body)) return { data: body }
  if (kind === 'apply') {
    const { plan, data, message, ...rest } = body
    return {
      data: data ?? (Object.keys(rest).length > 0 ? rest : null),
      plan,
      ...(typeof message === 'string' ? { message } : {}),
    }
  }
  // With plan=true a bare operation answers a plan in an envelope.
  return bare && !isPlan(body.data) ? { data: body } : (body as unknown as Parts)
}

function answerLines(screen: Screen, command: Command, parts: Parts, style: AnswerStyle): string[] {
  const { data, message, plan } = parts
  if (isPlan(data)) return style.quiet ? [data.id] : planLines(screen, data, `${style.program} plans apply ${data.id}`)
  if (style.quiet) return isLog(present(command.output ?? {}).items ?? {}) ? logTexts(data) : quietLines(data, style)
  if (command.kind !== 'query' && message) screen.note(printable(message))
  const done = isPlan(plan) ? changeLines(screen, plan.changes) : []
  if (Array.isArray(data)) return [...done, ...listLines(screen, command, data, style)]
  if (isObject(data)) return [...done, ...recordLines(screen, command, data, style)]
  if (data === null || data === undefined) return done
  return [...done, cellOf(data, command.output ?? {}, '', { people: screen.people })]
}

const logTexts = (data: unknown): string[] => (data as LogEntry[]).map(entry => entry.line)

function quietLines(data: unknown, { identity }: AnswerStyle): string[] {
  const ids = (Array.isArray(data) ? data : [data]).map(item => identityOf(item, identity))
  return ids.filter(id => id !== undefined).map(id => printable(String(id)))
}

function identityOf(item: unknown, identity: string | undefined): unknown {
  if (!isObject(item)) return item ?? undefined
  return [identity, 'id', 'name', 'domain'].flatMap(name => (name && item[name] !== undefined ? [item[name]] : []))[0]
}

function listLines(screen: Screen, command: Command, items: unknown[], style: AnswerStyle): string[] {
  const schema = present(command.output ?? {}).items ?? {}
  if (items.length === 0) screen.note(`No ${nounOf(command)}.`)
  if (isLog(schema) && style.columns === undefined) return (items as LogEntry[]).map(item => logLine(screen, item))
  if (!items.every(isObject)) return items.map(item => cellOf(item, schema, '', { people: screen.people }))
  const chosen = style.columns === undefined ? {} : { chosen: chosenColumns(style.columns, schema, items) }
  return items.length === 0 ? [] : tableLines(screen, items, schema, { identity: style.identity, ...chosen })
}

function noteMore(screen: Screen, count: number, { total, offset = 0 }: Parts): void {
  if (total === undefined || total <= offset + count || count === 0) return
  screen.note(`${offset + 1} to ${offset + count} of ${total}; go on with --offset ${offset + count}`)
}

function recordLines(screen: Screen, command: Command, record: Item, style: AnswerStyle): string[] {
  const schema = command.output ?? {}
  if (style.columns !== undefined) {
    return chosenColumns(style.columns, schema, [record]).map(column => chosenText(screen, column, record))
  }
  const free = command.kind === 'query' && command.output && shapeOf(schema) === 'any'
  if (free) return [JSON.stringify(record, null, 2)]
  return detailLines(screen, record, schema, { brief: command.kind !== 'query' })
}

/** For a script a text is what it is, with all its lines. */
function chosenText(screen: Screen, { path, schema }: Column, record: Item): string {
  const value = valueAt(record, path)
  if (typeof value === 'string' && !screen.people) return value
  return cellOf(value, schema, path.at(-1) ?? '', { people: screen.people, full: true })
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
  return new UsageError(
    `There is no column ${name}.${meant ? ` Did you mean ${meant}?` : ''} Columns: ${known.join(', ')}`,
  )
}

/** What a list is a list of: its own name, or that of its area. */
function nounOf({ words }: Command): string {
  const last = words.at(-1) === 'list' ? words.at(-2) : words.at(-1)
  return (last ?? 'results').replaceAll('-', ' ')
}
