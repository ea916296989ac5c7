// Writes to the agent's own store: one generic pair of steps for all areas, performed together in one transaction.

import { isDeepStrictEqual } from 'node:util'
import type { Database } from '../store/database.ts'
import type { Table } from '../store/table.ts'
import { fail } from './failure.ts'
import { REDACTED } from './schema.ts'
import { type Change, type Step, stepKind } from './step.ts'

interface PutData {
  area: string
  before: object | null
  after: object
}

interface DeleteData {
  area: string
  before: object
}

/** A table of any area, with its type forgotten. */
export type AnyTable = Table<Record<string, unknown>>

/** Makes a new record, or another version of one. A new record without its key gets one when it is written. */
export function putRecord<T extends object>(
  table: Table<T>,
  before: T | null | undefined,
  after: Partial<T>,
  options: { cause?: string; as?: string } = {},
): Step<{ id: number }> {
  const stable = before ? withoutVolatile(table, before) : null
  return {
    kind: 'record.put',
    data: { area: table.name, before: stable, after: withoutVolatile(table, after) },
    ...options,
  }
}

export function deleteRecord<T extends object>(table: Table<T>, before: T, options: { cause?: string } = {}): Step {
  return { kind: 'record.delete', data: { area: table.name, before: withoutVolatile(table, before) }, ...options }
}

export const isRecordStep = (step: Step): boolean => step.kind === 'record.put' || step.kind === 'record.delete'

/** The two kinds over the tables of all areas; `perform` runs inside the runner's transaction. */
export function recordKinds(tables: readonly AnyTable[], db: Database) {
  const byName = new Map(tables.map(table => [table.name, table]))
  const tableOf = (area: string) => byName.get(area) ?? unknownArea(area)
  return [
    stepKind<PutData, undefined, { id: number }>('record.put', {
      describe: ({ area, before, after }) => changeOf(tableOf(area), before as Fields | null, after as Fields),
      perform(_world, { area, before, after }) {
        const table = tableOf(area)
        const assigned = table.key.some(column => (after as Record<string, unknown>)[column] === undefined)
        if (!assigned) requireUnchanged(table, db, after, before)
        return { id: table.put(db, after as Record<string, unknown>) }
      },
      end: 'harmless',
    }),
    stepKind<DeleteData>('record.delete', {
      describe: ({ area, before }) => changeOf(tableOf(area), before as Fields, null),
      perform(_world, { area, before }) {
        const table = tableOf(area)
        requireUnchanged(table, db, before, before)
        table.remove(db, before as Record<string, unknown>)
      },
      end: 'harmless',
    }),
  ]
}

function requireUnchanged(table: AnyTable, db: Database, key: object, before: object | null): void {
  const present = table.get(db, key as Record<string, unknown>)
  const stable = present ? withoutVolatile(table, present) : null
  if (isDeepStrictEqual(stable && { ...stable }, before && { ...before })) return
  fail('CONFLICT', `The ${table.noun} was changed by somebody else meanwhile. Read it again and repeat the change.`)
}

function changeOf(table: AnyTable, before: Fields | null, after: Fields | null): Change {
  const action = !before ? 'create' : after ? 'update' : 'delete'
  // Compared in clear and shown hidden: another password is a change although both look alike.
  const changed = (one: Fields, other: Fields | null) => (action === 'update' ? onlyChanged(one, other ?? {}) : one)
  const old = before && changed(before, after)
  const next = after && changed(after, before)
  const sensitive = (table.secret ?? []).some(column => !isDeepStrictEqual(before?.[column], after?.[column]))
  return {
    type: 'record',
    id: `${table.noun} ${table.label((before ?? after) as Fields)}`,
    action,
    ...(old ? { before: hidden(table, old) } : {}),
    ...(next ? { after: hidden(table, next) } : {}),
    ...(sensitive ? { sensitive: true } : {}),
  }
}

type Fields = Record<string, unknown>

function hidden(table: AnyTable, record: Fields): Fields {
  const shown = (column: string, value: unknown) => (table.secret?.includes(column) && value ? REDACTED : value)
  return Object.fromEntries(Object.entries(record).map(([column, value]) => [column, shown(column, value)]))
}

function onlyChanged(record: Fields, other: Fields): Fields {
  return Object.fromEntries(
    Object.entries(record).filter(([column, value]) => !isDeepStrictEqual(value, other[column])),
  )
}

function withoutVolatile<T extends object, R extends Partial<T>>(table: Table<T>, record: R): Partial<R> {
  const kept = Object.entries(record).filter(
    ([column]) => !(table.volatile as readonly string[] | undefined)?.includes(column),
  )
  return Object.fromEntries(kept) as Partial<R>
}

function unknownArea(area: string): never {
  throw new Error(`No table is called ${area}`)
}
