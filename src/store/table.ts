// A table of records: how a record becomes a row and back, and the four statements every area needs.

import type { Database, Row, Value } from './database.ts'

export interface TableShape<T> {
  /** What a person calls one record: "user", "API key". */
  noun: string
  key: readonly (keyof T & string)[]
  columns: readonly (keyof T & string)[]
  json?: readonly (keyof T & string)[]
  boolean?: readonly (keyof T & string)[]
  /** Never shown: hashes and sealed values. */
  secret?: readonly (keyof T & string)[]
  /** Moves by itself (last used, last login): not part of a change, not compared. */
  volatile?: readonly (keyof T & string)[]
  /** The name of a record in a plan. */
  label(record: T): string
}

export interface Table<T> extends TableShape<T> {
  readonly name: string
  decode(row: Row | undefined): T | undefined
  get(db: Database, key: Partial<T>): T | undefined
  all(db: Database, where?: string, ...values: Value[]): T[]
  put(db: Database, record: Partial<T>): number
  remove(db: Database, key: Partial<T>): void
}

export function table<T extends object>(name: string, shape: TableShape<T>): Table<T> {
  const { key, columns, json = [], boolean = [] } = shape
  const byKey = key.map(column => `${column} = ?`).join(' AND ')
  const keyValues = (record: Partial<T>) => key.map(column => encode(column, record[column]))

  const encode = (column: keyof T & string, value: unknown): Value => {
    if (json.includes(column)) return JSON.stringify(value)
    if (boolean.includes(column)) return value ? 1 : 0
    return (value ?? null) as Value
  }
  const decode = (row: Row | undefined): T | undefined => {
    if (!row) return undefined
    const record: Record<string, unknown> = { ...row }
    for (const column of json) record[column] = JSON.parse(row[column] as string)
    for (const column of boolean) record[column] = row[column] === 1
    return record as T
  }

  return {
    name,
    ...shape,
    decode,
    get: (db, record) => decode(db.get<Row>(`SELECT * FROM ${name} WHERE ${byKey}`, ...keyValues(record))),
    all: (db, where = '', ...values) =>
      db.all<Row>(`SELECT * FROM ${name} ${where}`, ...values).map(row => decode(row) as T),
    put(db, record) {
      const given = columns.filter(column => record[column] !== undefined)
      const values = given.map(column => encode(column, record[column]))
      const updates = given.filter(column => !key.includes(column)).map(column => `${column} = excluded.${column}`)
      const onConflict = updates.length > 0 ? `DO UPDATE SET ${updates.join(', ')}` : 'DO NOTHING'
      const marks = given.map(() => '?').join(', ')
      const sql = `INSERT INTO ${name} (${given.join(', ')}) VALUES (${marks}) ON CONFLICT (${key.join(', ')}) ${onConflict}`
      return db.run(sql, ...values).id
    },
    remove: (db, record) => void db.run(`DELETE FROM ${name} WHERE ${byKey}`, ...keyValues(record)),
  }
}
