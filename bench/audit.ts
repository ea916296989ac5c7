// The audit log with a million events: a filtered page, and an export of everything beside other requests.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Database } from '../src/store/database.ts'
import { type AgentProcess, agentFolder, startAgent, watchResident } from './agent-process.ts'
import { type Figure, median, quantile, short } from './table.ts'

const FEW = 10_000
const MANY = 1_000_000
const MB = 1024 * 1024
const IDLE_MS = 6000

export async function audit(rounds: number): Promise<Figure[]> {
  const few = await startAgent(await folderWith(FEW))
  const many = await startAgent(await folderWith(MANY))
  try {
    const page = await pageFigure(few, many, rounds)
    await few.stop()
    return [page, ...(await exportFigures(many, rounds))]
  } finally {
    await many.stop()
  }
}

/** Half of the events have both: an actor of type user, and success. */
async function folderWith(events: number): Promise<string> {
  const folder = await agentFolder()
  const began = performance.now()
  const db = Database.open(join(folder, 'data'))
  db.transaction(() => {
    db.run(
      `INSERT INTO audit_events (time, actor_type, actor_id, actor_name, action, resource_type, resource_id, success,
          status_code, client_ip, user_agent, request_id, duration_ms, details)
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
        SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 1767225600 + n, 'unixepoch'), iif(n % 4 = 1, 'api_key', 'user'), n % 50,
          'somebody ' || (n % 50), iif(n % 3, 'deployment.update', 'deployment.start'), 'deployment', 'shop-' || (n % 100),
          n % 4 <> 3, iif(n % 4 <> 3, 200, 409), '10.0.0.' || (n % 200), 'curl/8.5.0', 'bench-' || n, n % 1000,
          '{"changes":[{"type":"container","id":"shop-web-1","action":"replace","reason":"config hash diverged"}]}'
        FROM numbers`,
      events,
    )
    db.run(
      `INSERT INTO audit_counts (day, action, actor_type, actor_name, events, failures)
        SELECT substr(time, 1, 10), action, actor_type, actor_name, count(*), sum(1 - success) FROM audit_events GROUP BY 1, 2, 3, 4`,
    )
  })
  db.close()
  console.error(`${events} audit events written in ${short((performance.now() - began) / 1000)} s`)
  return folder
}

async function pageFigure(few: AgentProcess, many: AgentProcess, rounds: number): Promise<Figure> {
  const ask = async (agent: AgentProcess) => {
    const headers = { authorization: `Bearer ${await agent.token()}` }
    return async () => {
      const began = performance.now()
      const answer = await fetch(`${agent.url}/api/audit/events?actor_type=user&success=true&limit=50`, { headers })
      const { data } = (await answer.json()) as { data: unknown[] }
      if (data.length !== 50) throw new Error('the page is not full')
      return performance.now() - began
    }
  }
  const [askFew, askMany] = [await ask(few), await ask(many)]
  const times: { few: number; many: number }[] = []
  for (let n = 0; n < 20 * rounds; n++) times.push({ few: await askFew(), many: await askMany() })
  const [short10k, long1m] = [median(times.map(time => time.few)), median(times.map(time => time.many))]
  return {
    what: 'a page of 1,000,000 audit events, two filters, half of them match',
    value: long1m / short10k,
    target: { atMost: 3 },
    unit: ' x',
    measured: `${short(long1m)} ms against ${short(short10k)} ms with 10,000`,
  }
}

/** Quiet times and exports in turns, so that what else the machine does hits both. */
async function exportFigures(agent: AgentProcess, rounds: number): Promise<Figure[]> {
  const pulse = startPulse(`${agent.url}/api/health`)
  await sleep(2000)
  const before = await agent.resident()
  const memory = watchResident(agent.pid)
  const runs: { idle: number; during: number; seconds: number; bytes: number }[] = []
  for (let round = 0; round < rounds; round++) {
    await pulse.latencies()
    await sleep(IDLE_MS)
    const idle = quantile(await pulse.latencies(), 0.99)
    const began = performance.now()
    const bytes = await exportAll(agent)
    const seconds = (performance.now() - began) / 1000
    const during = quantile(await pulse.latencies(), 0.99)
    console.error(`export: ${short(seconds)} s, p99 ${short(during)} ms against ${short(idle)} ms`)
    runs.push({ idle, during, seconds, bytes })
  }
  const most = memory.stop()
  await pulse.stop()
  const of = (name: keyof (typeof runs)[number]) => median(runs.map(run => run[name]))
  return [
    {
      what: 'memory for a CSV export of all of them',
      value: (most - before) / MB,
      target: { atMost: 64 },
      unit: ' MB',
      measured: `${short(before / MB)} to ${short(most / MB)} MB for ${short(of('bytes') / MB)} MB in ${short(of('seconds'))} s`,
    },
    {
      what: 'p99 of GET /api/health during it, against idle',
      value: of('during') / of('idle'),
      target: { atMost: 3 },
      unit: ' x',
      measured: `${short(of('during'))} ms against ${short(of('idle'))} ms, medians of ${rounds} rounds`,
    },
  ]
}

/** Reads it all and keeps nothing, as a person saving the file would. */
async function exportAll(agent: AgentProcess): Promise<number> {
  const headers = { authorization: `Bearer ${await agent.token()}`, 'content-type': 'application/json' }
  const asked = request(`${agent.url}/api/audit/export`, { method: 'POST', headers }).end('{"format":"csv"}')
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  if (answer.statusCode !== 200) throw new Error(`the export answered ${answer.statusCode}`)
  let bytes = 0
  for await (const chunk of answer) bytes += (chunk as Buffer).length
  return bytes
}

function startPulse(url: string) {
  const script = fileURLToPath(new URL('pulse.ts', import.meta.url))
  const child = spawn(process.execPath, [script, url], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async latencies(): Promise<number[]> {
      child.stdin.write('\n')
      return JSON.parse((await lines.next()).value as string)
    },
    async stop() {
      child.stdin.end()
      await once(child, 'exit')
    },
  }
}
