// A real agent whose whole folder lies on a tiny disk of its own, which it fills and frees when it is told on its input.

import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { probeAgent } from '../../src/testing/probe.ts'

const [disk = '', probeFolder = ''] = process.argv.slice(2)
const filler = join(disk, 'filler')

/** Until not one more page fits. */
function fill(): void {
  const file = openSync(filler, 'a')
  for (const size of [256 * 1024, 4096]) {
    try {
      while (writeSync(file, Buffer.alloc(size)) === size);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
  closeSync(file)
}

const tell = (what: object) => void process.stdout.write(`${JSON.stringify(what)}\n`)

process.env.TMPDIR = disk
const at = { 'full:half': fill, 'job:undone': () => tell({ undone: 'job' }) }
const agent = await probeAgent({ empty: true, probeFolder, at })
const address = await agent.app.listen({ port: 0, host: '127.0.0.1' })
tell({ address, token: await agent.tokenOf('key') })

for await (const word of createInterface({ input: process.stdin })) {
  if (word === 'fill') fill()
  if (word === 'free') rmSync(filler, { force: true })
  if (word === 'stop') break
  tell({ config: readFileSync(join(agent.folder, 'config.yml'), 'utf8') })
}
await agent.close()
process.exit(0)
