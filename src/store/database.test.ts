// The store: whole or refused, with a copy before each migration, and one owner at a time.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, test } from 'node:test'
import { Database, StoreError } from './database.ts'
import { migrations } from './migrations.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fairlead-store-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const file = () => join(folder, 'fairlead.db')
const first =
  'CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT; CREATE TABLE things (name TEXT PRIMARY KEY) STRICT'
const second = 'ALTER TABLE things ADD COLUMN size INTEGER'
const refusal = (words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof StoreError, String(error))
  assert.match(error.message, words)
  assert.ok(error.message.includes(folder), 'it says where')
  return true
}

/** As a process leaves it that was killed: the files of an open store. */
function killed(db: Database): void {
  const names = readdirSync(folder).filter(name => name.startsWith('fairlead.db'))
  for (const name of names) copyFileSync(join(folder, name), join(folder, `kept-${name}`))
  db.close()
  for (const name of names) copyFileSync(join(folder, `kept-${name}`), join(folder, name))
}

test('a new store has the newest schema, and what was written is there at the next start', () => {
  const db = Database.open(folder)
  db.run("INSERT INTO meta (key, value) VALUES ('a', 'b')")
  db.close()
  const again = Database.open(folder)
  assert.equal(again.get<{ value: string }>("SELECT value FROM meta WHERE key = 'a'")?.value, 'b')
  assert.equal(again.get<{ user_version: number }>('PRAGMA user_version')?.user_version, migrations.length)
  again.close()
})

test('a transaction is done whole or not at all, also inside another one', () => {
  const db = Database.open(folder, [first])
  const add = (name: string) => db.run('INSERT INTO things (name) VALUES (?)', name)
  assert.throws(() =>
    db.transaction(() => {
      add('a')
      db.transaction(() => add('b'))
      throw new Error('no')
    }),
  )
  assert.deepEqual(db.all('SELECT name FROM things'), [])
  db.transaction(() => add('c'))
  assert.equal(db.all('SELECT name FROM things').length, 1)
  db.close()
})

test('a migration makes a copy first, and the copy is whole', () => {
  const old = Database.open(folder, [first])
  old.run("INSERT INTO things (name) VALUES ('kept')")
  old.close()
  const db = Database.open(folder, [first, second])
  assert.deepEqual({ ...db.get<object>('SELECT * FROM things') }, { name: 'kept', size: null })
  db.close()
  const copy = new DatabaseSync(join(folder, 'fairlead-schema-1.db'), { readOnly: true })
  assert.equal((copy.prepare('PRAGMA user_version').get() as { user_version: number }).user_version, 1)
  assert.equal((copy.prepare('PRAGMA integrity_check').get() as { integrity_check: string }).integrity_check, 'ok')
  assert.deepEqual({ ...copy.prepare('SELECT * FROM things').get() }, { name: 'kept' })
  copy.close()
})

test('a migration that fails leaves the old store, and the old version of the agent starts on it', () => {
  Database.open(folder, [first]).close()
  assert.throws(() => Database.open(folder, [first, `${second}; CREATE TABLE things (x)`]), /already exists/)
  const db = Database.open(folder, [first])
  assert.deepEqual(
    db.all<{ name: string }>('PRAGMA table_info(things)').map(({ name }) => name),
    ['name'],
  )
  db.close()
})

test('a migration may rebuild a table without losing what refers to it', () => {
  const parents = `${first}; CREATE TABLE parts (thing TEXT NOT NULL REFERENCES things (name) ON DELETE CASCADE) STRICT`
  const old = Database.open(folder, [parents])
  old.run("INSERT INTO things (name) VALUES ('one')")
  old.run("INSERT INTO parts (thing) VALUES ('one')")
  old.close()
  const rebuild = `CREATE TABLE things_new (name TEXT PRIMARY KEY, size INTEGER) STRICT; INSERT INTO things_new (name) SELECT name FROM things;
    DROP TABLE things; ALTER TABLE things_new RENAME TO things`
  const db = Database.open(folder, [parents, rebuild])
  assert.equal(db.all('SELECT * FROM parts').length, 1)
  db.run('DELETE FROM things')
  assert.equal(db.all('SELECT * FROM parts').length, 0, 'references hold again')
  db.close()
})

test('a newer schema is refused, and nothing is changed', () => {
  Database.open(folder, [first, second]).close()
  const before = readFileSync(file())
  assert.throws(
    () => Database.open(folder, [first]),
    refusal(/has schema 2, but .* only up to 1\. Start the newer version/),
  )
  assert.deepEqual(readFileSync(file()), before)
  assert.ok(!existsSync(join(folder, 'fairlead-schema-2.db')))
  Database.open(folder, [first, second]).close()
})

test('a newer schema that this version cannot even read is refused in the same words', () => {
  const foreign = new DatabaseSync(file())
  foreign.exec('CREATE TABLE other (x); PRAGMA user_version = 9')
  foreign.close()
  assert.throws(() => Database.open(folder, [first]), refusal(/has schema 9/))
})

test('after an unclean stop a damaged file is refused in clear words', () => {
  const db = Database.open(folder, [first])
  db.transaction(() => {
    for (let index = 0; index < 5000; index++)
      db.run('INSERT INTO things (name) VALUES (?)', `${index} ${'x'.repeat(50)}`)
  })
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  killed(db)
  const bytes = readFileSync(file())
  bytes.fill(0xff, 4096 * 5, 4096 * 40)
  writeFileSync(file(), bytes)
  assert.throws(() => Database.open(folder, [first]), refusal(/is damaged .* Put back a copy/))
  assert.deepEqual(readFileSync(file()), bytes, 'it is left for whoever mends it')
})

test('a file that is no database, or a part of one, is refused in clear words', () => {
  Database.open(folder, [first]).close()
  const whole = readFileSync(file())
  for (const content of [Buffer.alloc(8192, 'not a database '), whole.subarray(0, whole.length - 4096)]) {
    writeFileSync(file(), content)
    assert.throws(
      () => {
        const db = Database.open(folder, [first])
        db.close()
      },
      refusal(/is damaged/),
    )
  }
})

test('after an unclean stop a whole file is opened, with what was committed', () => {
  const db = Database.open(folder, [first])
  db.run("INSERT INTO things (name) VALUES ('committed')")
  killed(db)
  const again = Database.open(folder, [first])
  assert.equal(again.all('SELECT * FROM things').length, 1)
  again.close()
})

test('a second agent on the same folder is refused, in this process and in another', async () => {
  const db = Database.open(folder, [first])
  assert.throws(() => Database.open(folder, [first]), refusal(/Another agent runs on/))
  const script = `import { Database } from ${JSON.stringify(new URL('./database.ts', import.meta.url).href)}
    try { Database.open(process.argv[1]); console.log('opened') } catch (error) { console.log(error.message) }`
  const other = async () => {
    const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', script, folder])
    const [text] = await Promise.all([child.stdout.toArray(), once(child, 'close')])
    return Buffer.concat(text as Buffer[]).toString()
  }
  assert.match(await other(), /Another agent runs on/)
  db.run("INSERT INTO things (name) VALUES ('still mine')")
  db.close()
  assert.match(await other(), /opened/)
})

test('what is refused lets go of the folder', () => {
  Database.open(folder, [first, second]).close()
  assert.throws(() => Database.open(folder, [first]), StoreError)
  Database.open(folder, [first, second]).close()
})

test('what was removed is gone from the file', () => {
  const db = Database.open(folder, [first])
  const canary = `canary-${'x'.repeat(6000)}`
  db.run("INSERT INTO things (name) VALUES ('a'), (?)", canary)
  db.run('DELETE FROM things WHERE name = ?', canary)
  db.close()
  assert.ok(!readFileSync(file(), 'latin1').includes('canary-xxx'))
})

test('what is remembered is what reading again would give', () => {
  const db = Database.open(folder, [first])
  const count = () => db.remembered('count', () => db.get<{ n: number }>('SELECT count(*) AS n FROM things')?.n)
  let reads = 0
  const read = () => db.remembered('reads', () => ++reads)
  assert.equal(count(), 0)
  assert.deepEqual([read(), read()], [1, 1])
  db.run("INSERT INTO things VALUES ('a')")
  assert.equal(count(), 1)
  assert.equal(read(), 2)
  const within: unknown[] = []
  assert.throws(() =>
    db.transaction(() => {
      db.run("INSERT INTO things VALUES ('b')")
      within.push(count())
      throw new Error('not this time')
    }),
  )
  assert.deepEqual(within, [2])
  assert.equal(count(), 1)
  db.close()
})

test('rows come as arrays where that is asked, and as objects elsewhere', () => {
  const db = Database.open(folder, [first])
  db.run("INSERT INTO things VALUES ('a')")
  const sql = 'SELECT name, 1 AS one FROM things'
  assert.deepEqual(db.arrays(sql), [['a', 1]])
  assert.deepEqual({ ...db.get<object>(sql) }, { name: 'a', one: 1 })
  assert.deepEqual(db.arrays(sql), [['a', 1]])
  db.close()
})

test('a write that the disk refuses is a fault until one is made', () => {
  const db = Database.open(folder, [first])
  assert.equal(db.fault, null)
  db.get('PRAGMA query_only = ON')
  assert.throws(() => db.transaction(() => db.run("INSERT INTO things VALUES ('a')")))
  assert.match(db.fault ?? '', /readonly/)
  db.probe()
  assert.match(db.fault ?? '', /readonly/)
  db.get('PRAGMA query_only = OFF')
  db.probe()
  assert.equal(db.fault, null)
  db.run("INSERT INTO things VALUES ('a')")
  assert.throws(() => db.run("INSERT INTO things VALUES ('a')"), /UNIQUE/)
  assert.equal(db.fault, null)
  db.close()
})
