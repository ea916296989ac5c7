// Tables: a record becomes a row and comes back the same.

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { Database } from './database.ts'
import { table } from './table.ts'

interface Thing {
  id: number
  place: string
  tags: string[]
  open: boolean
  note: string | null
}

const things = table<Thing>('things', {
  noun: 'thing',
  key: ['id'],
  columns: ['id', 'place', 'tags', 'open', 'note'],
  json: ['tags'],
  boolean: ['open'],
  label: thing => thing.place,
})
const pairs = table<{ a: number; b: string }>('pairs', {
  noun: 'pair',
  key: ['a', 'b'],
  columns: ['a', 'b'],
  label: ({ b }) => b,
})

let folder: string
let db: Database
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fairlead-table-'))
  db = Database.open(folder)
  db.run(`CREATE TABLE things (id INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, tags TEXT NOT NULL,
    open INTEGER NOT NULL, note TEXT) STRICT`)
  db.run('CREATE TABLE pairs (a INTEGER NOT NULL, b TEXT NOT NULL, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID')
})
after(async () => {
  db.close()
  await rm(folder, { recursive: true })
})
beforeEach(() => {
  db.run('DELETE FROM things')
})

const thing = { place: "O'Hara; DROP TABLE things --", tags: ['a', 'ä'], open: true, note: null }

test('a record comes back as it was put, with the key it was given', () => {
  const id = things.put(db, thing)
  assert.deepEqual(things.get(db, { id }), { id, ...thing })
  assert.deepEqual(things.all(db, 'WHERE place = ?', thing.place), [{ id, ...thing }])
})

test('putting it again changes what is given and leaves the rest', () => {
  const id = things.put(db, thing)
  things.put(db, { ...thing, id, open: false, tags: [] })
  assert.deepEqual(things.get(db, { id }), { id, ...thing, open: false, tags: [] })
  assert.equal(things.all(db).length, 1)
})

test('a removed record is gone, and removing it again does nothing', () => {
  const id = things.put(db, thing)
  things.remove(db, { id })
  things.remove(db, { id })
  assert.equal(things.get(db, { id }), undefined)
})

test('a record that is nothing but its key is put once', () => {
  for (const b of ['x', 'y', 'x']) pairs.put(db, { a: 1, b })
  assert.equal(pairs.all(db).length, 2)
  pairs.remove(db, { a: 1, b: 'x' })
  assert.deepEqual(pairs.get(db, { a: 1, b: 'x' }), undefined)
  assert.deepEqual({ ...pairs.get(db, { a: 1, b: 'y' }) }, { a: 1, b: 'y' })
})
