// Starting a deployment of three services through the agent, against `docker compose up -d` by hand in the same folder.

import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type AgentProcess, agentFolder, startAgent } from './agent-process.ts'
import { type Figure, median, short } from './table.ts'

const run = promisify(execFile)

const NAME = 'fairlead-bench-start'
const SERVICES = ['web', 'worker', 'store']
const FEWEST_PAIRS = 7
/** After a change the engine still tidies up; neither side shall pay for it. */
const QUIET_MS = 500

export async function lifecycle(rounds: number): Promise<Figure[]> {
  const agent = await startAgent(await agentFolder())
  const folder = join(agent.folder, 'deployments', NAME)
  try {
    await writeDeployment(folder)
    const ask = await asker(agent)
    const pairs = Math.max(FEWEST_PAIRS, rounds)
    const sides = { ours: () => ask('POST', '/start'), theirs: () => compose(folder, 'up', '-d') }
    const toStopped = () => compose(folder, 'stop').then(() => seen(ask, 'exited'))
    const toNothing = () => compose(folder, 'down').then(() => seen(ask, 'missing'))
    // The first of each is for warming up.
    for (const side of [sides.ours, sides.theirs]) {
      await toNothing()
      await side()
    }
    return [
      await against('from stopped', pairs, toStopped, sides),
      await against('from nothing', pairs, toNothing, sides),
    ]
  } finally {
    await compose(folder, 'down').catch(() => {})
    await agent.stop()
  }
}

interface Sides {
  ours(): Promise<unknown>
  theirs(): Promise<unknown>
}

/** In turns, and each of both as often first, so that what else the machine does hits both. */
async function against(from: string, pairs: number, prepare: () => Promise<void>, sides: Sides): Promise<Figure> {
  const times: { ours: number; theirs: number }[] = []
  for (let pair = 0; pair < pairs; pair++) {
    const time = { ours: 0, theirs: 0 }
    for (const side of pair % 2 === 0 ? (['ours', 'theirs'] as const) : (['theirs', 'ours'] as const)) {
      await prepare()
      const began = performance.now()
      await sides[side]()
      time[side] = performance.now() - began
    }
    console.error(`start ${from}: ${short(time.ours)} ms against ${short(time.theirs)} ms by hand`)
    times.push(time)
  }
  const ours = median(times.map(time => time.ours))
  const theirs = median(times.map(time => time.theirs))
  return {
    what: `POST start of 3 services ${from}, against docker compose up -d`,
    value: ours / theirs,
    target: { atMost: 1.15 },
    unit: ' x',
    measured: `${short(ours)} ms against ${short(theirs)} ms, medians of ${pairs}`,
  }
}

async function writeDeployment(folder: string): Promise<void> {
  const service = (name: string) =>
    `  ${name}:\n    image: fairlead-test/busybox:1\n    command: sleep 3600\n    stop_signal: SIGKILL\n`
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'compose.yaml'), `services:\n${SERVICES.map(service).join('')}`)
}

type Ask = (method: 'GET' | 'POST', path: string) => Promise<Detail>
interface Detail {
  status: string
  services: { status: string }[]
}

async function asker(agent: AgentProcess): Promise<Ask> {
  const headers = { authorization: `Bearer ${await agent.token()}` }
  return async (method, path) => {
    const answer = await fetch(`${agent.url}/api/deployments/${NAME}${path}`, { method, headers })
    const { data, error } = (await answer.json()) as { data?: Detail; error?: string }
    return data ?? Promise.reject(new Error(`${method} ${path}: ${error}`))
  }
}

/** Resolves when the agent has seen all services in this state, and the engine is quiet again. */
async function seen(ask: Ask, status: string): Promise<void> {
  while (!(await ask('GET', '')).services.every(one => one.status === status)) await sleep(20)
  await sleep(QUIET_MS)
}

const compose = (folder: string, ...args: string[]) => run('docker', ['compose', ...args], { cwd: folder })
