// Old content or new content, never something between.

import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { isTemporaryName, temporaryName, writeAside } from './write-aside.ts'

const folder = mkdtempSync(join(tmpdir(), 'fairlead-aside-'))
after(() => rmSync(folder, { recursive: true }))

test('a file is replaced and gets exactly the mode that was asked for', async () => {
  const file = join(folder, 'a')
  writeFileSync(file, 'old')
  chmodSync(file, 0o644)
  await writeAside(file, 'new', { mode: 0o660 })
  assert.equal(readFileSync(file, 'utf8'), 'new')
  assert.equal(statSync(file).mode & 0o777, 0o660)
})

test('of many exclusive writers one wins and the others get EEXIST', async () => {
  const file = join(folder, 'b')
  const writers = Array.from({ length: 8 }, (_, n) => writeAside(file, `writer ${n}`, { mode: 0o600, exclusive: true }))
  const results = await Promise.allSettled(writers)
  const won = results.flatMap((result, n) => (result.status === 'fulfilled' ? [n] : []))
  const refused = results.flatMap(result => (result.status === 'rejected' ? [result.reason.code] : []))
  assert.equal(won.length, 1)
  assert.deepEqual(refused, Array(7).fill('EEXIST'))
  assert.equal(readFileSync(file, 'utf8'), `writer ${won[0]}`)
})

test('an error before the swap leaves the old content and nothing beside it', async () => {
  const file = join(folder, 'c')
  writeFileSync(file, 'old')
  const beforeSwap = () => Promise.reject(new Error('changed meanwhile'))
  await assert.rejects(writeAside(file, 'new', { mode: 0o600, beforeSwap }), /changed meanwhile/)
  assert.equal(readFileSync(file, 'utf8'), 'old')
  assert.deepEqual(readdirSync(folder).filter(isTemporaryName), [])
})

test('temporary names are recognised, and nothing else is', () => {
  assert.ok(isTemporaryName(temporaryName()))
  for (const name of ['.fairlead-tmp-', '.fairlead-tmp-x', `${temporaryName()}x`, `x${temporaryName()}`, '.env'])
    assert.ok(!isTemporaryName(name), name)
})
