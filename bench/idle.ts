// What the agent costs while nothing happens and two hundred containers run: memory, and its own and the engine's CPU.

import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { startAgent } from './agent-process.ts'
import { fleet, untilListed } from './fleet.ts'
import { type Figure, median, short } from './table.ts'

const MB = 1024 * 1024
const MINUTE_MS = 60_000
const TICKS_PER_SECOND = 100

/** Three minutes with the agent and three without, in turns. */
export async function idle(): Promise<Figure[]> {
  const folder = await fleet()
  const pids = await enginePids()
  const without: number[] = []
  const engine: number[] = []
  const own: number[] = []
  const memory: number[] = []
  for (let round = 0; round < 3; round++) {
    await sleep(5000)
    without.push(await cpuShare(pids))
    const agent = await startAgent(folder)
    await untilListed(agent, 100)
    await sleep(10_000)
    const [theirs, ours] = await Promise.all([cpuShare(pids), cpuShare([agent.pid])])
    engine.push(theirs)
    own.push(ours)
    memory.push(await agent.resident())
    console.error(
      `idle: agent ${short(ours)} %, engine ${short(theirs)} % against ${short(without.at(-1) ?? 0)} % without it`,
    )
    await agent.stop('keep')
  }
  const resident = median(memory) / MB
  return [
    {
      what: 'resident memory when idle, 200 containers',
      value: resident,
      target: { atMost: 125 },
      unit: ' MB',
      measured: `${short(resident)} MB, median of 3`,
    },
    {
      what: 'CPU when idle, 200 containers',
      value: median(own),
      target: { atMost: 0.5 },
      unit: ' %',
      measured: 'of one core over a minute, median of 3',
    },
    {
      what: 'CPU of the engine because of it',
      value: Math.max(0, median(engine) - median(without)),
      target: { atMost: 0.5 },
      unit: ' %',
      measured: `${short(median(engine))} % of one core against ${short(median(without))} %, 3 x 60 s in turns`,
    },
  ]
}

/** dockerd and its containerd; the world has no others. */
async function enginePids(): Promise<number[]> {
  const all = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
  const found: number[] = []
  for (const pid of all) {
    const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')
    if (/^(dockerd|containerd)\n$/.test(name)) found.push(Number(pid))
  }
  return found
}

/** In per cent of one core, over a minute. */
async function cpuShare(pids: readonly number[]): Promise<number> {
  const used = async () => {
    const all = await Promise.all(pids.map(pid => readFile(`/proc/${pid}/stat`, 'utf8')))
    return all.map(ticksOf).reduce((sum, ticks) => sum + ticks, 0)
  }
  const before = await used()
  await sleep(MINUTE_MS)
  return (((await used()) - before) / TICKS_PER_SECOND / (MINUTE_MS / 1000)) * 100
}

/** utime and stime, behind the name, which may hold anything. */
function ticksOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}
