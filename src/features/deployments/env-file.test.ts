import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { openCompose } from '../../adapters/compose/compose.ts'
import { envVars, withEnvVars } from './env-file.ts'

test('a variable that keeps its value keeps its line, and comments stay', () => {
  const text = '# first\nA = "one"   # why\n\nexport B=two\n  C=\'three\'\n'
  const kept = [
    { key: 'A', value: 'one' },
    { key: 'B', value: 'two' },
    { key: 'C', value: 'three' },
  ]
  assert.deepEqual(envVars(text), kept)
  assert.equal(withEnvVars(text, kept), text)
  assert.equal(
    withEnvVars(text, [
      { key: 'C', value: 'new' },
      { key: 'D', value: 'x y' },
    ]),
    "# first\n\nC=new\nD='x y'\n",
  )
  assert.equal(withEnvVars(text, []), '# first\n')
})

test('a quoted value may go over several lines', () => {
  const text = 'KEY="line one\nline two"\nNEXT=1\n'
  assert.deepEqual(envVars(text), [
    { key: 'KEY', value: 'line one\nline two' },
    { key: 'NEXT', value: '1' },
  ])
})

test('what is written is what Compose itself reads, whatever the value', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fairlead-env-'))
  const compose = openCompose({
    path: process.env.PATH ?? '',
    home: folder,
    dockerHost: process.env.DOCKER_HOST ?? 'unix:///nowhere',
  })
  const value = fc.string({ unit: fc.constantFrom(...'ab1 $#=\'"\\\n\t{}`;|&<>%!*~é'.split('')), maxLength: 12 })
  const cases = fc.sample(fc.array(value, { minLength: 30, maxLength: 30 }), { numRuns: 4 })
  try {
    for (const values of cases) {
      const wanted = values.map((value, index) => ({ key: `V${index}`, value }))
      const text = withEnvVars('# kept\n', wanted)
      assert.deepEqual(envVars(text), wanted)
      await writeFile(join(folder, '.env'), text)
      await writeFile(join(folder, 'compose.yaml'), 'services:\n  web:\n    image: x\n    env_file: .env\n')
      const { services } = await compose.model(folder)
      for (const { key, value } of wanted)
        assert.equal(
          services.web?.environment?.[key],
          value,
          `${JSON.stringify(value)} as ${text.split('\n').find(line => line.startsWith(`${key}=`))}`,
        )
    }
  } finally {
    await rm(folder, { recursive: true })
  }
})
