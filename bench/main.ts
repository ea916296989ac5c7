// The benchmarks: each compares within one run, and all of it is printed as one table.

import { parseArgs } from 'node:util'
import { audit } from './audit.ts'
import { calls, deployments, thousand } from './deployments.ts'
import { idle } from './idle.ts'
import { lifecycle } from './lifecycle.ts'
import { logs } from './logs.ts'
import { requests } from './requests.ts'
import { start } from './start.ts'
import { type Figure, printTable } from './table.ts'

const all: Record<string, (rounds: number) => Promise<Figure[]>> = {
  requests,
  audit,
  start,
  deployments,
  calls,
  thousand,
  lifecycle,
  logs,
  idle,
}

const { values, positionals } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, help: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const names = positionals.length > 0 ? positionals : Object.keys(all)
const unknown = names.filter(name => !Object.hasOwn(all, name))

if (values.help || unknown.length > 0) {
  if (unknown.length > 0) console.error(`there is no benchmark ${unknown.join(', ')}`)
  console.error(`usage: npm run bench -- [--rounds N] [${Object.keys(all).join(' ')}]`)
  process.exitCode = values.help ? 0 : 1
} else {
  const figures: Figure[] = []
  for (const name of names) figures.push(...((await all[name]?.(Number(values.rounds))) ?? []))
  printTable(figures)
}
