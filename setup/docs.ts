// Writes the pages that are made from the code: `npm run docs`.

import { mkdirSync, writeFileSync } from 'node:fs'
import { configurationReference } from '../src/config.ts'

mkdirSync('docs/reference', { recursive: true })
writeFileSync('docs/reference/configuration.md', configurationReference())
