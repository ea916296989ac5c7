// The pages that are made from the code are up to date, and links between pages lead somewhere.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { configurationReference } from '../src/config.ts'

test('the reference of the configuration is what the catalogue says (npm run docs writes it)', async () => {
  assert.equal(await readFile('docs/reference/configuration.md', 'utf8'), configurationReference())
})

test('every link between pages leads to a file', async () => {
  const pages = [
    'README.md',
    'ARCHITECTURE.md',
    'CHANGELOG.md',
    ...(await readdir('docs', { recursive: true })).map(name => join('docs', name)),
  ]
  const broken: string[] = []
  for (const page of pages.filter(name => name.endsWith('.md'))) {
    for (const [, target = ''] of (await readFile(page, 'utf8')).matchAll(/\]\(([^)#\s]+)\)/g)) {
      if (!/^https?:/.test(target) && !existsSync(join(dirname(page), target))) broken.push(`${page} → ${target}`)
    }
  }
  assert.deepEqual(broken, [])
})
