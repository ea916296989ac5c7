// A hundred deployments of five services, of which two hundred containers are really there, for an agent to run over.

import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openEngine } from '../src/adapters/container-engine/engine.ts'
import { type AgentProcess, agentFolder } from './agent-process.ts'
import { short } from './table.ts'

const run = promisify(execFile)

const DEPLOYMENTS = 100
/** So many of them are up, with all their services. */
const UP = 40
const COMPOSE = `x-service: &service
  image: fairlead-test/busybox:1
  command: [sleep, '1000000']
  network_mode: none
  stop_signal: SIGKILL
services: { web: *service, worker: *service, cache: *service, queue: *service, mail: *service }
`

export const engine = openEngine(process.env.DOCKER_HOST as string)

let made: Promise<string> | undefined

/** The folder of an agent with all of them; the same one for every benchmark of a run. */
export const fleet = (): Promise<string> => {
  made ??= make()
  return made
}

export const nameOf = (n: number): string => `app-${String(n).padStart(3, '0')}`

/** Further folders of the same kind, none of which runs. */
export async function addFolders(folder: string, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) {
    const path = join(folder, 'deployments', nameOf(n))
    await mkdir(path, { recursive: true })
    await writeFile(join(path, 'compose.yaml'), COMPOSE)
  }
}

/** The agent has read them all and seen their containers. */
export async function untilListed(agent: AgentProcess, count: number): Promise<void> {
  const headers = { authorization: `Bearer ${await agent.token()}` }
  const began = performance.now()
  const answer = await fetch(`${agent.url}/api/deployments`, { headers })
  const list = (await answer.json()) as { status: string }[]
  const wrong = list.filter(({ status }) => status === 'invalid' || status === 'unknown')
  if (list.length !== count || wrong.length > 0)
    throw new Error(`${list.length} deployments, ${wrong.length} of them wrong`)
  console.error(`${count} deployments listed after ${short((performance.now() - began) / 1000)} s`)
}

async function make(): Promise<string> {
  const began = performance.now()
  const folder = await agentFolder()
  await addFolders(folder, 0, DEPLOYMENTS)
  for (let n = 0; n < UP; n++) {
    await run('docker', ['compose', 'up', '--detach'], { cwd: join(folder, 'deployments', nameOf(n)) })
  }
  const { length } = await engine.containers.list()
  console.error(`${length} containers of ${DEPLOYMENTS} deployments in ${short((performance.now() - began) / 1000)} s`)
  return folder
}

/** Containers that change their state all the while, so many times a second, each in turn. Those of `mail` never do. */
export async function churn(perSecond: number): Promise<{ stop(): Promise<number> }> {
  const all = await engine.containers.list()
  const ids = all.filter(({ Names }) => !Names?.some(name => name.endsWith('-mail-1'))).map(({ Id }) => Id)
  const began = performance.now()
  let going = true
  let changes = 0
  const change = async () => {
    for (; going || changes % 2 === 1; changes++) {
      const id = ids[Math.floor(changes / 2) % ids.length] as string
      await (changes % 2 === 0 ? engine.containers.pause(id) : engine.containers.unpause(id))
      await sleep(Math.max(0, began + ((changes + 1) * 1000) / perSecond - performance.now()))
    }
  }
  const changing = change()
  return {
    /** How many a second there really were. */
    async stop() {
      const rate = changes / ((performance.now() - began) / 1000)
      going = false
      await changing
      return rate
    },
  }
}
