// A list as a table: the columns that say most, as many as fit.

import { present, type Schema, shapeOf } from '../schema.ts'
import { type Screen, shortened, widthOf } from '../screen.ts'
import { cellOf, painted } from './cell.ts'

export interface Column {
  /** The place of the value in an item, from the top. */
  path: string[]
  schema: Schema
}

export interface TableStyle {
  /** Chosen by hand: shown as they are, whatever the window. */
  chosen?: Column[]
  /** The field by which an item is addressed; it is never cut. */
  identity?: string | undefined
  indent?: number
}

export function tableLines(screen: Screen, items: readonly Item[], schema: Schema, style: TableStyle = {}): string[] {
  const columns = (style.chosen ?? shortColumns(schema, items)).map(column => filled(column, items, screen.people))
  const width = screen.columns - (style.indent ?? 0)
  const shown = style.chosen
    ? columns
    : screen.people
      ? fitted(columns, width, style.identity)
      : columns.filter(isPlain)
  const head = shown.map(column => screen.paint('bold', padded(column.title, column)))
  const rows = items.map((_, row) =>
    shown.map(column => {
      const text = shortened(column.cells[row] ?? '', column.width)
      return painted(screen, column.path.at(-1) ?? '', text, padded(text, column))
    }),
  )
  return [head, ...rows].map(cells => (' '.repeat(style.indent ?? 0) + cells.join(GAP)).trimEnd())
}

export type Item = Record<string, unknown>

/** A column for every field of an item, in the order of its schema. */
export function columnsOf(schema: Schema, items: readonly Item[]): Column[] {
  const { properties } = present(schema)
  const names = Object.keys(properties ?? items[0] ?? {})
  return names.map(name => ({ path: [name], schema: properties?.[name] ?? {} }))
}

export const valueAt = (item: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null | undefined)?.[name], item)

/** What may hold anything has no place in a line. */
function shortColumns(schema: Schema, items: readonly Item[]): Column[] {
  const columns = columnsOf(schema, items)
  if (!present(schema).properties) return columns
  return columns.filter(column => !['any', 'map'].includes(shapeOf(column.schema)))
}

interface Filled extends Column {
  title: string
  cells: string[]
  width: number
  right: boolean
}

const GAP = '  '
const LEAST = 14
const LONG = 48

function filled(column: Column, items: readonly Item[], people: boolean): Filled {
  const name = column.path.at(-1) as string
  const cells = items.map(item => cellOf(valueAt(item, column.path), column.schema, name, { people }))
  const title = column.path.join('.').replaceAll('_', ' ').toUpperCase()
  const width = Math.max(title.length, ...cells.map(widthOf))
  return { ...column, title, cells, width, right: shapeOf(column.schema) === 'number' && name !== 'id' }
}

/** First what is empty or too long goes, then the widest is cut, then the last go. */
function fitted(columns: Filled[], width: number, identity: string | undefined): Filled[] {
  const keep = (column: Filled) => column.path[0] === identity || column === columns[0]
  let shown = columns.filter(column => keep(column) || column.cells.some(cell => cell !== ''))
  for (const dispensable of [isLong, isNested]) {
    for (const column of shown.filter(dispensable).toReversed()) {
      if (total(shown) > width && !keep(column)) shown = shown.filter(one => one !== column)
    }
  }
  shown = shown.map(column => (keep(column) ? column : { ...column, width: Math.min(column.width, LONG) }))
  while (total(shown) > width) {
    const excess = total(shown) - width
    const widest = shown
      .filter(column => column.width > LEAST && !keptWhole(column, identity))
      .sort((a, b) => b.width - a.width)[0]
    if (widest && widest.width - excess >= LEAST) {
      shown = shown.map(column => (column === widest ? { ...column, width: column.width - excess } : column))
    } else {
      const last = shown.findLast(column => column.path[0] !== identity && column !== shown[0])
      if (!last) break
      shown = shown.filter(column => column !== last)
    }
  }
  return shown
}

const keptWhole = (column: Filled, identity: string | undefined): boolean => column.path[0] === identity || column.right
const total = (columns: Filled[]): number => columns.reduce((sum, { width }) => sum + width + GAP.length, -GAP.length)
const isLong = ({ width }: Filled): boolean => width > LONG
const isNested = ({ schema }: Filled): boolean => !['text', 'number', 'flag'].includes(shapeOf(schema))

/** In a pipe nothing is cut, but lists of objects are for `--json`. */
const isPlain = (column: Filled): boolean => !(isLong(column) && isNested(column))

function padded(text: string, { width, right }: Filled): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)))
  return right ? space + text : text + space
}
