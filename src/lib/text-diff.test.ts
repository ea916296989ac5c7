// Diffs as a plan shows them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyPatch } from 'diff'
import fc from 'fast-check'
import { envFileDiff, hideEnvValues, textDiff } from './text-diff.ts'

test('a changed line is shown with its neighbours', () => {
  const before = 'services:\n  web:\n    image: nginx:1.26\n    ports:\n      - 80:80\n'
  assert.equal(
    textDiff('compose.yml', before, before.replace('1.26', '1.27')),
    [
      '--- a/compose.yml',
      '+++ b/compose.yml',
      '@@ -1,5 +1,5 @@',
      ' services:',
      '   web:',
      '-    image: nginx:1.26',
      '+    image: nginx:1.27',
      '     ports:',
      '       - 80:80',
      '',
    ].join('\n'),
  )
})

test('a new file and a removed one name /dev/null', () => {
  assert.equal(textDiff('a', undefined, 'x\ny\n'), '--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+x\n+y\n')
  assert.equal(
    textDiff('a', 'x', undefined),
    '--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n',
  )
})

test('equal texts have no diff', () => {
  assert.equal(textDiff('a', 'x\n', 'x\n'), '')
  assert.equal(envFileDiff('a', undefined, undefined), '')
})

test('two long texts without a common line are shown as replaced, in time', () => {
  const text = (word: string) => Array.from({ length: 20_000 }, (_, line) => `${word} ${line}\n`).join('')
  const lines = textDiff('a', text('old'), text('new')).split('\n')
  assert.equal(lines[2], '@@ -1,20000 +1,20000 @@')
  assert.equal(lines.filter(line => line.startsWith('-old')).length, 20_000)
  assert.equal(lines.filter(line => line.startsWith('+new')).length, 20_000)
})

test('applied to the old text, the diff gives the new one', () => {
  const line = fc.constantFrom('a', 'b', '', '- x', '+ y', '@@', '\\', 'ä: "ö"')
  const text = fc
    .tuple(fc.array(line, { maxLength: 12 }), fc.boolean())
    .map(([lines, end]) => lines.join('\n') + (end ? '\n' : ''))
  fc.assert(
    fc.property(text, text, (before, after) => {
      assert.equal(applyPatch(before, textDiff('f', before, after)), after)
    }),
  )
})

test('an env diff shows which keys changed and no value', () => {
  const before = '# database\nDB_HOST=db\nDB_PASSWORD=old-canary\nEMPTY=\n'
  const after = '# database\nDB_HOST=db\nDB_PASSWORD=new-canary\nEMPTY=\nexport TOKEN="third-canary"\n'
  assert.equal(
    envFileDiff('.env', before, after),
    [
      '--- a/.env',
      '+++ b/.env',
      '@@ -1,4 +1,5 @@',
      ' # database',
      ' DB_HOST=[redacted]',
      '-DB_PASSWORD=[redacted]',
      '+DB_PASSWORD=[redacted]',
      ' EMPTY=',
      '+export TOKEN=[redacted]',
      '',
    ].join('\n'),
  )
})

test('values over several lines, switched off ones and loose text stay hidden', () => {
  const text = [
    'KEY="-----BEGIN',
    '# canary',
    'canary=',
    '"',
    "SINGLE='canary",
    "canary'",
    '#OLD=canary',
    '# OLDER: canary',
    'YAML: canary',
    'canary',
    '# note: see the manual',
    'NEXT=canary',
  ].join('\n')
  assert.deepEqual(hideEnvValues(text), [
    'KEY=[redacted]',
    '[redacted]',
    '[redacted]',
    '[redacted]',
    'SINGLE=[redacted]',
    '[redacted]',
    '#OLD=[redacted]',
    '# OLDER:[redacted]',
    'YAML:[redacted]',
    '[redacted]',
    '# note: see the manual',
    'NEXT=[redacted]',
  ])
})
