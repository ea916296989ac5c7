// What an edit changes, and that it changes nothing else.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import { editYaml, redactYaml } from './yaml-edit.ts'

const TEXT = `# Written by hand
auth:
    enabled:   true      # never switch this off
    api_keys:
    - fl_first           # for CI
    # the console
    - 'fl_second'
    jwt_secret: "abc"


api: {port: 8090, host: 127.0.0.1}   # one line
log:
    level: info
    note: |
        two
        lines

# the end
`

/** The lines that an edit takes away and brings. */
function changes(path: string[], value: unknown, text = TEXT): string[] {
  const edited = editYaml(text, path, value)
  const [old, next] = [text.split('\n'), edited.split('\n')]
  let head = 0
  while (head < old.length && old[head] === next[head]) head++
  let tail = 0
  while (tail < Math.min(old.length, next.length) - head && old.at(-1 - tail) === next.at(-1 - tail)) tail++
  return [
    ...old.slice(head, old.length - tail).map(line => `-${line}`),
    ...next.slice(head, next.length - tail).map(line => `+${line}`),
  ]
}

test('a value is replaced in its place, with its spacing, comment and quotes', () => {
  assert.deepEqual(changes(['auth', 'enabled'], false), [
    '-    enabled:   true      # never switch this off',
    '+    enabled:   false      # never switch this off',
  ])
  assert.deepEqual(changes(['auth', 'jwt_secret'], 'x"y'), ['-    jwt_secret: "abc"', '+    jwt_secret: "x\\"y"'])
  assert.deepEqual(changes(['api', 'port'], 80), [
    '-api: {port: 8090, host: 127.0.0.1}   # one line',
    '+api: {port: 80, host: 127.0.0.1}   # one line',
  ])
})

test('the same value changes nothing', () => {
  assert.equal(editYaml(TEXT, ['log', 'level'], 'info'), TEXT)
  for (const path of [
    ['log', 'missing'],
    ['missing', 'deep'],
    ['log', 'level', 'deeper'],
  ])
    assert.equal(editYaml(TEXT, path, undefined), TEXT)
  assert.equal(editYaml('a: {}\n', ['a', 'b'], undefined), 'a: {}\n')
})

test('a new key goes to the end of its map, with its indent', () => {
  assert.deepEqual(changes(['log', 'format'], 'json'), ['+    format: json'])
  assert.deepEqual(changes(['auth', 'token_ttl'], 60), ['+    token_ttl: 60'])
  assert.deepEqual(changes(['api', 'enable_cors'], true), [
    '-api: {port: 8090, host: 127.0.0.1}   # one line',
    '+api: {port: 8090, host: 127.0.0.1, enable_cors: true}   # one line',
  ])
})

test('a new section comes last, after a blank line where sections have one', () => {
  const spaced = 'a:\n  b: 1\n\nc:\n  d: 1\n'
  assert.equal(editYaml(spaced, ['plans', 'ttl_seconds'], 5), `${spaced}\nplans:\n  ttl_seconds: 5\n`)
  assert.equal(editYaml('a: 1', ['plans', 'ttl_seconds'], 5), 'a: 1\nplans:\n  ttl_seconds: 5\n')
  assert.equal(editYaml('', ['a', 'b'], 1), 'a:\n  b: 1\n')
  assert.equal(editYaml('# only a comment', ['a'], 1), '# only a comment\na: 1\n')
})

test('an empty section is filled', () => {
  assert.equal(
    editYaml('api:   # later\nlog:\n  level: info\n', ['api', 'port'], 1),
    'api:   # later\n  port: 1\nlog:\n  level: info\n',
  )
  assert.equal(editYaml('api:\n  port:  # x\n', ['api', 'port'], 1), 'api:\n  port: 1  # x\n')
})

test('a removed key takes its line, and a section it was alone in', () => {
  assert.deepEqual(changes(['log', 'level'], undefined), ['-    level: info'])
  assert.equal(editYaml('a: 1\nb:\n  c:\n    d: 1\n# end\n', ['b', 'c', 'd'], undefined), 'a: 1\n# end\n')
  assert.equal(editYaml('a: 1\n', ['a'], undefined), '')
  assert.deepEqual(changes(['log', 'note'], undefined), ['-    note: |', '-        two', '-        lines'])
})

test('an item joins or leaves a list while the others keep their comments', () => {
  assert.deepEqual(changes(['auth', 'api_keys'], ['fl_first', 'fl_second', 'fl_third']), ['+    - fl_third'])
  assert.deepEqual(changes(['auth', 'api_keys'], ['fl_second']), ['-    - fl_first           # for CI'])
  assert.deepEqual(changes(['auth', 'api_keys'], ['fl_first', 'new']), ["-    - 'fl_second'", '+    - new'])
})

test('a list is replaced, emptied and begun', () => {
  assert.deepEqual(parse(editYaml(TEXT, ['auth', 'api_keys'], ['other'])).auth.api_keys, ['other'])
  assert.equal(editYaml('l: # why\n  - a\nm: 1\n', ['l'], []), 'l: [] # why\nm: 1\n')
  assert.equal(editYaml('l: [] # why\nm: 1\n', ['l'], ['a', 'b']), 'l: [a, b] # why\nm: 1\n')
  assert.equal(editYaml('l: x # why\nm: 1\n', ['l'], ['a', 'b']), 'l: # why\n  - a\n  - b\nm: 1\n')
})

test('lines end as the file ends its own', () => {
  assert.equal(editYaml('a:\r\n  b: 1\r\n', ['a', 'c'], 2), 'a:\r\n  b: 1\r\n  c: 2\r\n')
})

test('an unusual spot is edited too, and keeps comments and order', () => {
  assert.deepEqual(parse(editYaml('x: &a 1\ny: *a # c\n', ['y'], 2)), { x: 1, y: 2 })
  assert.equal(editYaml('{a: 1, # one\n b: 2}\n', ['a'], undefined).includes('b: 2'), true)
  assert.deepEqual(parse(editYaml('? a\n: b\n', ['a', 'c'], 1)), { a: { c: 1 } })
  assert.deepEqual(parse(editYaml('a: 1 # c\n', ['a', 'b', 'c'], [1])), { a: { b: { c: [1] } } })
})

test('a text that is not YAML is refused', () => {
  assert.throws(() => editYaml('a: [1', ['a'], 2))
})

test('whatever the text and the edit, the result means what was asked and keeps every comment', () => {
  const key = fc.constantFrom('a', 'b', 'c')
  const scalar = fc.oneof(
    fc.boolean(),
    fc.integer(),
    fc.string(),
    fc.constantFrom('', 'x: y', '# no', '- z', 'two\nlines', '{', 'null', '1'),
  )
  const leaf = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }))
  const map = fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, leaf, { minKeys: 1 })))
  const edit = fc.tuple(fc.array(key, { minLength: 1, maxLength: 2 }), fc.option(leaf, { nil: undefined }))
  const style = fc.record({
    indent: fc.constantFrom(2, 4),
    indentSeq: fc.boolean(),
    collectionStyle: fc.constantFrom('any', 'flow'),
  })
  fc.assert(
    fc.property(map, edit, style, (value, [path, next], { collectionStyle, ...options }) => {
      const body = stringify(value, { ...options, collectionStyle: collectionStyle as 'any' | 'flow' })
      const text = `# head\n${body === '{}\n' ? '' : body}# foot\n`
      const [first = '', second] = path
      if (second !== undefined && first in value && (typeof value[first] !== 'object' || Array.isArray(value[first])))
        return
      const edited = editYaml(text, path, next)
      assert.deepEqual(parse(edited) ?? {}, wanted(value, path, next))
      assert.ok(edited.includes('# head') && edited.includes('# foot'))
    }),
    { numRuns: 500 },
  )
})

function wanted(value: Record<string, unknown>, [first = '', second]: string[], next: unknown): unknown {
  const copy: Record<string, unknown> = structuredClone(value)
  if (second === undefined) {
    if (next === undefined) delete copy[first]
    else copy[first] = next
    return copy
  }
  const inner = (copy[first] ?? {}) as Record<string, unknown>
  if (next === undefined) delete inner[second]
  else inner[second] = next
  if (Object.keys(inner).length > 0) copy[first] = inner
  else delete copy[first]
  return copy
}

test('redaction replaces the values it is told to, and nothing else', () => {
  const hidden = redactYaml(TEXT, path => path[0] === 'auth' && path[1] !== 'enabled')
  assert.equal(
    hidden,
    TEXT.replace('fl_first', '"[redacted]"').replace("'fl_second'", '"[redacted]"').replace('"abc"', '"[redacted]"'),
  )
  assert.equal(
    redactYaml("a: ''\nb:\nc: |\n  canary\nd: 1\n", path => path[0] !== 'd'),
    'a: \'\'\nb:\nc: "[redacted]"\nd: 1\n',
  )
})

test('a hidden value is hidden in comments too, and a text that does not parse is hidden whole', () => {
  assert.equal(
    redactYaml('# was long-canary\na: long-canary\n', () => true),
    '# was [redacted]\na: "[redacted]"\n',
  )
  assert.doesNotMatch(
    redactYaml('a: "canary', () => true),
    /canary/,
  )
})
