// The list of deployments while containers change all the time, and how soon a change from outside is seen.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { engineProxy } from '../src/testing/engine-proxy.ts'
import { against } from './against.ts'
import { type AgentProcess, startAgent } from './agent-process.ts'
import { addFolders, churn, engine, fleet, nameOf, untilListed } from './fleet.ts'
import { type Figure, median, quantile, short } from './table.ts'
import { wrk } from './wrk.ts'

const run = promisify(execFile)
const MANY = 1000

export async function deployments(rounds: number): Promise<Figure[]> {
  const agent = await startAgent(await fleet())
  try {
    await untilListed(agent, 100)
    return [...(await listFigures(agent, rounds)), await outsideStop(agent, rounds)]
  } finally {
    await agent.stop('keep')
  }
}

/** Through a proxy that counts what the agent asks of the engine. */
export async function calls(): Promise<Figure[]> {
  const proxy = await engineProxy(process.env.DOCKER_HOST as string)
  const agent = await startAgent(await fleet(), [], { DOCKER_HOST: proxy.address })
  try {
    await untilListed(agent, 100)
    return [await engineCalls(agent, proxy.requests)]
  } finally {
    await agent.stop('keep')
    await proxy.close()
  }
}

async function listFigures(agent: AgentProcess, rounds: number): Promise<Figure[]> {
  const bearer = async (as?: 'user') => ({ authorization: `Bearer ${await agent.token(as)}` })
  const admin = await bearer()
  const user = await bearer('user')
  await assign(agent, admin, 30)
  const changing = await churn(10)
  const how = { rounds, seconds: 15, bytes: true }
  const asAdmin = await against(agent, '/api/deployments', admin, how)
  const asUser = await against(agent, '/api/deployments', user, how)
  const rate = await changing.stop()
  return [['administrator, 100 deployments', asAdmin] as const, ['user, 30 deployments', asUser] as const].flatMap(
    ([who, { ours, theirs, perSecond, p99 }]) => [
      {
        what: `GET /api/deployments as ${who}, against a bare route`,
        value: perSecond,
        target: { atLeast: 0.5 },
        unit: '',
        measured: `${short(ours.perSecond)} of ${short(theirs.perSecond)} requests/s, ${short(rate)} containers change a second`,
      },
      {
        what: 'its p99',
        value: p99,
        target: { atMost: 2 },
        unit: ' x',
        measured: `${short(ours.p99Ms)} ms against ${short(theirs.p99Ms)} ms`,
      },
    ],
  )
}

/** Looks whether the engine still answers are none of a request. */
async function engineCalls(agent: AgentProcess, calls: string[]): Promise<Figure> {
  const headers = { authorization: `Bearer ${await agent.token()}` }
  await sleep(1000)
  const before = calls.length
  const { requests } = await wrk(`${agent.url}/api/deployments`, 3, headers)
  const made = calls.slice(before).filter(line => !line.includes('/_ping')).length
  return {
    what: 'engine calls for one GET /api/deployments',
    value: made / requests,
    target: { atMost: 0.001 },
    unit: '',
    measured: `${made} calls while ${requests} requests were answered`,
  }
}

/** From the engine's own event of the container's end to the first answer that says so. */
async function outsideStop(agent: AgentProcess, rounds: number): Promise<Figure> {
  const headers = { authorization: `Bearer ${await agent.token()}` }
  const isStopped = async (name: string) => {
    const answer = await fetch(`${agent.url}/api/deployments/${name}`, { headers })
    const { data } = (await answer.json()) as { data: { services: { name: string; status: string }[] } }
    return data.services.some(one => one.name === 'mail' && one.status === 'exited')
  }
  const ends = new AbortController()
  const ended = endsOf(ends.signal)
  const changing = await churn(20)
  const waits: number[] = []
  for (let n = 0; n < 20 * rounds; n++) {
    const name = nameOf(n % 40)
    const stopping = run('docker', ['stop', `${name}-mail-1`])
    while (!(await isStopped(name))) await sleep(1)
    const seen = Date.now()
    await stopping
    waits.push(Math.max(0, seen - ((await ended).get(`${name}-mail-1`) as number)))
    await engine.containers.start(`${name}-mail-1`)
  }
  const rate = await changing.stop()
  ends.abort()
  return {
    what: 'a docker stop from outside is seen, p95',
    value: quantile(waits, 0.95),
    target: { atMost: 50 },
    unit: ' ms',
    measured: `median ${short(median(waits))} ms of ${waits.length}, at ${short(rate)} other events a second`,
  }
}

/** When the containers ended, by name, by the clock of the engine. */
async function endsOf(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number>()
  const events = await engine.events({ filters: { type: ['container'], event: ['die'] }, signal })
  const listen = async () => {
    for await (const { Actor, timeNano } of events) times.set(Actor.Attributes?.name ?? '', (timeNano ?? 0) / 1e6)
  }
  listen().catch(() => {})
  return times
}

/** How long the event loop was held up at most, while one container changes and the list is asked for. */
export async function thousand(rounds: number): Promise<Figure[]> {
  const folder = await fleet()
  await addFolders(folder, 100, MANY)
  const file = join(await mkdtemp(join(tmpdir(), 'fairlead-bench-')), 'delay')
  const watch = fileURLToPath(new URL('loop-delay.ts', import.meta.url))
  const agent = await startAgent(folder, ['--import', watch], { BENCH_DELAY_FILE: file })
  try {
    await untilListed(agent, MANY)
    const headers = { authorization: `Bearer ${await agent.token()}` }
    const list = async () => (await fetch(`${agent.url}/api/deployments`, { headers })).text()
    const delay = async (work: () => Promise<unknown>) => {
      process.kill(agent.pid, 'SIGUSR2')
      await sleep(50)
      await work()
      process.kill(agent.pid, 'SIGUSR2')
      await sleep(50)
      return Number(await readFile(file, 'utf8'))
    }
    // As in an agent that has been in use: the first requests also pay for the compiling of what they run through.
    await wrk(`${agent.url}/api/deployments`, 3, headers)
    const [quiet, changed]: number[][] = [[], []]
    for (let n = 0; n < 5 * rounds; n++) {
      const container = `${nameOf(n % 40)}-mail-1`
      quiet?.push(await delay(list))
      changed?.push(
        await delay(async () => {
          await engine.containers.pause(container)
          await sleep(20)
          await list()
        }),
      )
      await engine.containers.unpause(container)
      await sleep(50)
      await list()
    }
    return [
      {
        what: 'the event loop is held up by one change at 1,000 deployments',
        value: median(changed ?? []),
        target: { atMost: 5 },
        unit: ' ms',
        measured: `the longest delay of each of ${changed?.length} changes, median; without a change ${short(median(quiet ?? []))} ms`,
      },
    ]
  } finally {
    await agent.stop('keep')
  }
}

async function assign(agent: AgentProcess, headers: Record<string, string>, count: number): Promise<void> {
  const users = (await (await fetch(`${agent.url}/api/users`, { headers })).json()) as {
    data: { id: number; username: string }[]
  }
  const { id } = users.data.find(({ username }) => username === 'bench') as { id: number }
  for (let n = 0; n < count; n++) {
    const body = JSON.stringify({ deployment_name: nameOf(n), access_level: 'read' })
    const answer = await fetch(`${agent.url}/api/users/${id}/deployments`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
    })
    if (!answer.ok) throw new Error(await answer.text())
  }
}
