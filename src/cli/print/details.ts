// One record as names and values, what is inside it indented below.

import { present, type Schema } from '../schema.ts'
import { printableLog, type Screen } from '../screen.ts'
import { cellOf, painted } from './cell.ts'
import { type Item, tableLines } from './table.ts'

export interface DetailStyle {
  /** Leave out long texts and lists of records: after a change, what matters is that it was done. */
  brief?: boolean
  indent?: number
}

export function detailLines(screen: Screen, record: Item, schema: Schema, style: DetailStyle = {}): string[] {
  const { properties } = present(schema)
  const known = Object.keys(properties ?? {}).filter(name => name in record)
  const names = [...known, ...Object.keys(record).filter(name => !known.includes(name))]
  const entries = names.map(name => ({ name, value: record[name], schema: properties?.[name] ?? {} }))
  const shown = entries.filter(({ value }) => !style.brief || !isBulky(value))
  const width = Math.max(0, ...shown.filter(({ value }) => !isBulky(value)).map(({ name }) => name.length))
  return shown.flatMap(entry => entryLines(screen, entry, width, style))
}

interface Entry {
  name: string
  value: unknown
  schema: Schema
}

function entryLines(screen: Screen, { name, value, schema }: Entry, width: number, style: DetailStyle): string[] {
  const indent = ' '.repeat(style.indent ?? 0)
  const title = screen.paint('cyan', `${name.replaceAll('_', ' ')}:`)
  if (!isBulky(value)) {
    const text = cellOf(value, schema, name, { people: screen.people, full: true })
    return [
      `${indent}${title}${' '.repeat(width - name.length + 1)}${text === '' ? screen.paint('dim', '-') : painted(screen, name, text)}`,
    ]
  }
  const inner = { ...style, indent: (style.indent ?? 0) + 2 }
  return [indent + title, ...bulkLines(screen, value, schema, inner)]
}

function bulkLines(screen: Screen, value: unknown, schema: Schema, style: DetailStyle & { indent: number }): string[] {
  if (typeof value === 'string') {
    return value
      .replace(/\n$/, '')
      .split('\n')
      .map(line => ' '.repeat(style.indent) + printableLog(line))
  }
  if (!Array.isArray(value)) return detailLines(screen, value as Item, schema, style)
  return tableLines(screen, value as Item[], present(schema).items ?? {}, { indent: style.indent })
}

/** What needs lines of its own. */
function isBulky(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\n')
  if (Array.isArray(value)) return value.length > 0 && value.every(item => item !== null && typeof item === 'object')
  return value !== null && typeof value === 'object' && Object.keys(value).length > 0
}
