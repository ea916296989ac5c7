// The agent's own memory: one SQLite file, opened by one process at a time, migrated with a copy made first.

import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { type Migration, migrations } from './migrations.ts'

export type Value = SQLInputValue
export type Row = Record<string, Value>

/** The store cannot be used as it is; the sentence says why and what to do. */
export class StoreError extends Error {}

export class Database {
  readonly #db: DatabaseSync
  readonly folder: string
  readonly #owner: DatabaseSync | undefined
  readonly #statements = new Map<string, StatementSync>()
  readonly #arrayStatements = new Map<string, StatementSync>()
  readonly #remembered = new Map<string, unknown>()
  #depth = 0
  #fault: string | null = null

  private constructor(folder: string, db: DatabaseSync, owner: DatabaseSync | undefined) {
    this.folder = folder
    this.#db = db
    this.#owner = owner
  }

  static open(folder: string, steps: readonly Migration[] = migrations): Database {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const owner = takeOwnership(folder)
    let db: DatabaseSync | undefined
    try {
      db = new DatabaseSync(join(folder, 'fairlead.db'))
      const database = new Database(folder, db, owner)
      database.#refuseNewer(folder, steps.length)
      // What was wiped shall be gone from the file too, hence secure_delete.
      db.exec(
        'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000; PRAGMA secure_delete = ON',
      )
      database.#checkAfterUncleanStop(folder)
      // A migration may rebuild a table that others refer to, hence foreign keys only after it.
      db.exec('PRAGMA foreign_keys = OFF')
      database.#migrate(folder, steps)
      db.exec('PRAGMA foreign_keys = ON; PRAGMA application_id = 1718972012')
      database.run("INSERT INTO meta (key, value) VALUES ('clean', '0') ON CONFLICT (key) DO UPDATE SET value = '0'")
      return database
    } catch (error) {
      db?.close()
      owner.close()
      throw explained(error, folder)
    }
  }

  /** To read what the owner of the folder has committed, from another thread than his. */
  static reader(folder: string): Database {
    const db = new DatabaseSync(join(folder, 'fairlead.db'), { readOnly: true })
    db.exec('PRAGMA busy_timeout = 5000')
    return new Database(folder, db, undefined)
  }

  get<T>(sql: string, ...values: Value[]): T | undefined {
    return this.#statement(sql).get(...values) as T | undefined
  }

  all<T>(sql: string, ...values: Value[]): T[] {
    return this.#statement(sql).all(...values) as T[]
  }

  /** The rows as arrays of their columns, which costs less where there are many. */
  arrays(sql: string, ...values: Value[]): Value[][] {
    const known = this.#arrayStatements.get(sql)
    const statement = known ?? this.#db.prepare(sql)
    if (!known) {
      statement.setReturnArrays(true)
      this.#arrayStatements.set(sql, statement)
    }
    return statement.all(...values) as unknown as Value[][]
  }

  /**
   * What this read gave, until anything is written: there is no other writer, so it is what reading again would give.
   * Who gets it leaves it as it is.
   */
  remembered<T>(key: string, read: () => T): T {
    const known = this.#remembered.get(key)
    if (known !== undefined) return known as T
    const found = read()
    if (this.#remembered.size >= MOST_REMEMBERED) this.#remembered.clear()
    this.#remembered.set(key, found)
    return found
  }

  run(sql: string, ...values: Value[]): { changes: number; id: number } {
    return this.#writing(() => {
      const { changes, lastInsertRowid } = this.#statement(sql).run(...values)
      return { changes: Number(changes), id: Number(lastInsertRowid) }
    })
  }

  /** Why the last write could not be made, when it was the disk's fault; null when it was made. */
  get fault(): string | null {
    return this.#fault
  }

  /** A write that changes nothing, to see whether writing is possible again. */
  probe(): void {
    try {
      this.run("UPDATE meta SET value = '0' WHERE key = 'clean'")
    } catch {
      // The fault says it.
    }
  }

  /** All of it or nothing of it. Inside another transaction it is part of that one. */
  transaction<T>(work: () => T): T {
    if (this.#depth > 0) return work()
    this.#depth++
    try {
      this.#writing(() => this.#db.exec('BEGIN IMMEDIATE'))
      const result = work()
      this.#writing(() => this.#db.exec('COMMIT'))
      this.#fault = null
      return result
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      this.#remembered.clear()
      throw error
    } finally {
      this.#depth--
    }
  }

  #writing<T>(write: () => T): T {
    this.#remembered.clear()
    try {
      const result = write()
      if (this.#depth === 0) this.#fault = null
      return result
    } catch (error) {
      const { errcode = 0, errstr = '' } = error as { errcode?: number; errstr?: string }
      if (DISK_FAULTS.has(errcode % 256)) this.#fault = errstr
      throw error
    }
  }

  close(): void {
    try {
      this.run("UPDATE meta SET value = '1' WHERE key = 'clean'")
    } catch {
      // Then the next start looks the file over.
    }
    this.#statements.clear()
    this.#arrayStatements.clear()
    this.#db.close()
    this.#owner?.close()
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const made = this.#db.prepare(sql)
    this.#statements.set(sql, made)
    return made
  }

  get #version(): number {
    return (this.#db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version
  }

  #checkAfterUncleanStop(folder: string): void {
    if (this.#version === 0) return
    const clean = this.#db.prepare("SELECT value FROM meta WHERE key = 'clean'").get() as { value: string } | undefined
    if (clean?.value === '1') return
    this.#require('quick_check', folder)
  }

  #require(check: 'quick_check' | 'integrity_check', folder: string): void {
    const [first] = this.#db.prepare(`PRAGMA ${check}`).all() as Record<string, string>[]
    if (first?.[check] !== 'ok') throw damaged(folder, String(first?.[check]))
  }

  #refuseNewer(folder: string, newest: number): void {
    const version = this.#version
    if (version <= newest) return
    throw new StoreError(
      `The database in ${folder} has schema ${version}, but this version of Fairlead knows only up to ${newest}. Start the newer version, or restore the copy made before its migration.`,
    )
  }

  #migrate(folder: string, steps: readonly Migration[]): void {
    const newest = steps.length
    const version = this.#version
    if (version === newest) return
    if (version > 0) {
      this.#require('integrity_check', folder)
      const copy = join(folder, `fairlead-schema-${version}.db`)
      if (existsSync(copy)) rmSync(copy)
      this.#db.prepare('VACUUM INTO ?').run(copy)
    }
    this.transaction(() => {
      for (const step of steps.slice(version)) this.#db.exec(step)
      this.#db.exec(`PRAGMA user_version = ${newest}`)
    })
  }
}

const MOST_REMEMBERED = 10_000

/** What SQLite calls READONLY, IOERR, CORRUPT, FULL, CANTOPEN and NOTADB. */
const DISK_FAULTS: ReadonlySet<number> = new Set([8, 10, 11, 13, 14, 26])

const [CORRUPT, NOTADB] = [11, 26]

/** What SQLite says of a file it cannot use, in words for who started the agent. */
function explained(error: unknown, folder: string): unknown {
  const { errcode = 0, errstr = '' } = error as { errcode?: number; errstr?: string }
  const fault = errcode % 256
  if (fault === CORRUPT || fault === NOTADB) return damaged(folder, errstr)
  if (!DISK_FAULTS.has(fault)) return error
  return new StoreError(
    `The database in ${folder} cannot be written (${errstr}). Make room or mend the disk, and start again.`,
  )
}

const damaged = (folder: string, fault: string) =>
  new StoreError(
    `The database in ${folder} is damaged (${fault}). Put back a copy of fairlead.db, or move the file away: deployments are found again from their folders.`,
  )

/** An exclusive lock that the system drops when the process dies, whatever it dies of. */
function takeOwnership(folder: string): DatabaseSync {
  const owner = new DatabaseSync(join(folder, 'owner.lock'))
  try {
    owner.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return owner
  } catch (error) {
    owner.close()
    if (!/locked/.test(String(error))) throw error
    throw new StoreError(`Another agent runs on ${folder}. Stop it first, or give this one a data_path of its own.`)
  }
}
