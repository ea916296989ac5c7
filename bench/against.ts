// One path of the agent against a bare Fastify route that sends the same: requests per second and latencies.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { AgentProcess } from './agent-process.ts'
import { median, short } from './table.ts'
import { type Load, wrk } from './wrk.ts'

let ports = 18_301

export interface Comparison {
  ours: Load
  theirs: Load
  /** The medians of the ratios of all rounds. */
  perSecond: number
  p99: number
}

export interface Against {
  rounds: number
  /** Of each round. For a p99 long enough not to tell of the first moment only, in which fifty connections are opened. */
  seconds: number
  /** The bare one sends bytes that are ready, or makes the JSON for each request. */
  bytes: boolean
}

/** Both run all the while and are asked in turns, so that what else the machine does hits both. */
export async function against(
  agent: AgentProcess,
  path: string,
  headers: Record<string, string>,
  { rounds, seconds, bytes }: Against,
): Promise<Comparison> {
  const bare = await bareServer(agent, path, headers, bytes)
  try {
    const pairs: { ours: Load; theirs: Load }[] = []
    await wrk(agent.url + path, 2, headers)
    await wrk(bare.url + path, 2, headers)
    for (let round = 0; round < rounds; round++) {
      const theirs = await wrk(bare.url + path, seconds, headers)
      const ours = await wrk(agent.url + path, seconds, headers)
      console.error(
        `${path}: ${short(ours.perSecond)} of ${short(theirs.perSecond)} requests/s, p99 ${short(ours.p99Ms)} ms against ${short(theirs.p99Ms)} ms`,
      )
      pairs.push({ ours, theirs })
    }
    const middle = (of: 'ours' | 'theirs', field: keyof Load) => median(pairs.map(pair => pair[of][field]))
    const all = (of: 'ours' | 'theirs'): Load => ({
      perSecond: middle(of, 'perSecond'),
      requests: middle(of, 'requests'),
      p99Ms: middle(of, 'p99Ms'),
    })
    return {
      ours: all('ours'),
      theirs: all('theirs'),
      perSecond: median(pairs.map(({ ours, theirs }) => ours.perSecond / theirs.perSecond)),
      p99: median(pairs.map(({ ours, theirs }) => ours.p99Ms / theirs.p99Ms)),
    }
  } finally {
    await bare.stop()
  }
}

async function bareServer(agent: AgentProcess, path: string, headers: Record<string, string>, bytes: boolean) {
  const port = ports++
  const answer = await fetch(agent.url + path, { headers })
  const own = new Set(['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding'])
  const copied = [...answer.headers].filter(([name]) => !own.has(name))
  const script = fileURLToPath(new URL('bare-server.ts', import.meta.url))
  const child = spawn(process.execPath, [script, String(port), join(agent.folder, `bare-${port}.log`)], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const body = bytes ? await answer.text() : await answer.json()
  child.stdin.end(JSON.stringify({ path, headers: Object.fromEntries(copied), body }))
  const url = `http://127.0.0.1:${port}`
  while (
    !(await fetch(url + path).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error('the bare server did not start')
    await sleep(10)
  }
  return {
    url,
    async stop() {
      child.kill()
      await once(child, 'exit')
    },
  }
}
