// The vault: nothing opens without its key, and a wrong or missing key refuses instead of starting anew.

import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { testAgent } from '../testing/agent.ts'
import { Database, StoreError } from './database.ts'
import { openVault, Vault } from './vault.ts'

let folder: string
let db: Database
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fairlead-vault-'))
  db = Database.open(folder)
})
afterEach(async () => {
  db.close()
  await rm(folder, { recursive: true, force: true })
})

const keyFile = () => join(folder, 'master.key')
const refusal = (words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof StoreError, String(error))
  assert.match(error.message, words)
  return true
}

test('what was sealed opens with the same key at the next start, and is not readable without it', () => {
  const secret = { password: 'canary', list: [1, null, 'ä'] }
  const sealed = openVault(folder, db).seal(secret)
  assert.doesNotMatch(Buffer.from(sealed.slice(3), 'base64').toString('latin1'), /canary/)
  assert.deepEqual(openVault(folder, db).unseal(sealed), secret)
  assert.throws(() => new Vault(Buffer.alloc(32, 1)).unseal(sealed))
})

test('the same value is sealed differently each time, and a changed byte is noticed', () => {
  const vault = openVault(folder, db)
  assert.notEqual(vault.seal('a'), vault.seal('a'))
  const bytes = Buffer.from(vault.seal('a long enough text').slice(3), 'base64')
  bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1
  assert.throws(() => vault.unseal(`v1:${bytes.toString('base64')}`))
})

test('a digest is the same for the same text, and depends on the key', () => {
  const vault = openVault(folder, db)
  assert.equal(vault.digest('a'), vault.digest('a'))
  assert.notEqual(vault.digest('a'), vault.digest('b'))
  assert.notEqual(vault.digest('a'), new Vault(Buffer.alloc(32, 1)).digest('a'))
})

test('the key is made once, for its owner only', () => {
  openVault(folder, db)
  const key = readFileSync(keyFile(), 'utf8')
  assert.equal(Buffer.from(key, 'base64').length, 32)
  assert.equal(statSync(keyFile()).mode & 0o777, 0o600)
  openVault(folder, db)
  assert.equal(readFileSync(keyFile(), 'utf8'), key)
})

test('a missing, another or a broken key refuses, and the right one put back opens again', () => {
  const sealed = openVault(folder, db).seal('kept')
  const key = readFileSync(keyFile())
  rmSync(keyFile())
  assert.throws(
    () => openVault(folder, db),
    refusal(/is missing, and the store holds values sealed under it\. Put the file back/),
  )
  writeFileSync(keyFile(), Buffer.alloc(32, 7).toString('base64'))
  assert.throws(() => openVault(folder, db), refusal(/is not the one this store was sealed with/))
  writeFileSync(keyFile(), 'short')
  assert.throws(() => openVault(folder, db), refusal(/is not 32 bytes/))
  writeFileSync(keyFile(), key)
  assert.equal(openVault(folder, db).unseal(sealed), 'kept')
})

test('an agent whose key was lost does not start, and starts again when it is back', async () => {
  const agent = await testAgent({ empty: true })
  await agent.stop('keep')
  const file = join(agent.folder, 'data', 'master.key')
  const key = readFileSync(file)
  rmSync(file)
  await assert.rejects(testAgent({ folder: agent.folder }), refusal(/is missing/))
  writeFileSync(file, key)
  const again = await testAgent({ folder: agent.folder })
  assert.equal((await again.request('GET /api/users')).statusCode, 200)
  await again.stop()
})
