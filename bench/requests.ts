// Requests per second against a bare Fastify route with the same payload, logger and headers.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type AgentProcess, agentFolder, startAgent } from './agent-process.ts'
import { type Figure, median, short } from './table.ts'
import { wrk } from './wrk.ts'

const SECONDS = 3

export async function requests(rounds: number): Promise<Figure[]> {
  const agent = await startAgent(await agentFolder())
  try {
    const headers = { authorization: `Bearer ${await agent.token('user')}` }
    return [
      await against(agent, '/api/health', {}, 0.8, rounds, 18_301),
      await against(agent, '/api/users/me', headers, 0.5, rounds, 18_302),
    ]
  } finally {
    await agent.stop()
  }
}

/** Both run all the while and are asked in turns, so that what else the machine does hits both. */
async function against(
  agent: AgentProcess,
  path: string,
  headers: Record<string, string>,
  atLeast: number,
  rounds: number,
  port: number,
): Promise<Figure> {
  const bare = await bareServer(agent, path, headers, port)
  try {
    const pairs: { ours: number; theirs: number }[] = []
    await wrk(agent.url + path, 2, headers)
    await wrk(bare.url + path, 2, headers)
    for (let round = 0; round < rounds; round++) {
      const theirs = await wrk(bare.url + path, SECONDS, headers)
      const ours = await wrk(agent.url + path, SECONDS, headers)
      console.error(`${path}: ${short(ours)} of ${short(theirs)} requests/s`)
      pairs.push({ ours, theirs })
    }
    const ours = median(pairs.map(pair => pair.ours))
    const theirs = median(pairs.map(pair => pair.theirs))
    return {
      what: `GET ${path} against a bare route`,
      value: median(pairs.map(pair => pair.ours / pair.theirs)),
      target: { atLeast },
      unit: '',
      measured: `${short(ours)} of ${short(theirs)} requests/s, median of ${rounds} rounds`,
    }
  } finally {
    await bare.stop()
  }
}

async function bareServer(agent: AgentProcess, path: string, headers: Record<string, string>, port: number) {
  const answer = await fetch(agent.url + path, { headers })
  const own = new Set(['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding'])
  const copied = [...answer.headers].filter(([name]) => !own.has(name))
  const script = fileURLToPath(new URL('bare-server.ts', import.meta.url))
  const child = spawn(process.execPath, [script, String(port), join(agent.folder, `bare-${port}.log`)], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  child.stdin.end(JSON.stringify({ path, headers: Object.fromEntries(copied), body: await answer.json() }))
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
