// A real agent with the probe feature, for tests that kill it: it starts, does one request, and dies at the point it is told.

import { join } from 'node:path'
import type { Ask } from '../../src/testing/agent.ts'
import { failing, probeAgent } from '../../src/testing/probe.ts'

/** What the program is given as its one argument, in JSON. */
export interface Orders {
  folder: string
  /** The point at which it kills itself, such as `b:half`; with `#2`, when it comes there for the second time. */
  dies?: string
  /** A point at which the step fails. */
  fails?: string
  line?: string
  ask?: Ask
}

const { folder, dies = '', fails, line, ask }: Orders = JSON.parse(process.argv[2] as string)
const [point = '', time = '1'] = dies.split('#')
let times = 0

function die(): void {
  if (++times < Number(time)) return
  process.kill(process.pid, 'SIGKILL')
  // The signal is on its way: nothing more may happen here.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

const at = { [point]: die, ...(fails === undefined ? {} : { [fails]: failing() }) }
const agent = await probeAgent({ folder, probeFolder: join(folder, 'probe'), at })
const answer = line === undefined ? undefined : await agent.request(line, ask)
process.stdout.write(`${JSON.stringify(answer ? { status: answer.statusCode, body: answer.json() } : {})}\n`)
// A job goes on after its answer.
while (answer?.statusCode === 201 && agent.door.isActive(answer.json().job_id)) await new Promise(setImmediate)
await agent.close()
