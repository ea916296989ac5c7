// A million log lines: read whole beside `docker logs`, and followed while 20,000 a second are written.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { WebSocket } from 'ws'
import { type AgentProcess, agentFolder, startAgent, watchResident } from './agent-process.ts'
import { type Figure, median, short } from './table.ts'

const IMAGE = 'fairlead-test/busybox:1'
const LINES = 1_000_000
const PER_SECOND = 20_000
const FOLLOWED = 10 * PER_SECOND
/** A little faster than asked for, since a writer is late at times and never early. */
const PACE = 1.05 * PER_SECOND
const MB = 1024 * 1024
const WORDS = '192.168.1.20 - - GET /shop/articles/4711?page=2 HTTP/1.1 200 5316 0.012 ok'

const run = promisify(execFile)

export async function logs(rounds: number): Promise<Figure[]> {
  const agent = await startAgent(await agentFolder())
  const token = await agent.token()
  const remove = (name: string) =>
    ask(agent, token, 'DELETE', `/api/deployments/${name}?remove_files=true`).catch(error =>
      console.error(String(error)),
    )
  try {
    await deploy(agent, token, 'bench-many', writesMany)
    const read = await readFigures(agent, token, rounds)
    await deploy(agent, token, 'bench-steady', writesSteadily)
    return [...read, ...(await followFigures(agent, token, rounds))]
  } finally {
    await remove('bench-many')
    await remove('bench-steady')
    await agent.stop()
  }
}

const writesMany = `
BEGIN {
  for (n = 0; n < ${LINES}; n++) printf "%09d ${WORDS}\\n", n
  system("sleep 100000")
}`

/** Each time `/tmp/go` appears: as many lines as the time that has passed asks for, until all are written. */
const writesSteadily = `
function now() {
  getline text < "/proc/uptime"
  close("/proc/uptime")
  split(text, parts, " ")
  return parts[1]
}
BEGIN {
  while (1) {
    while (system("rm /tmp/go 2>/dev/null") != 0) system("usleep 20000")
    start = now()
    for (n = 0; n < ${FOLLOWED}; ) {
      for (due = (now() - start) * ${PACE}; n < due && n < ${FOLLOWED}; n++) printf "%09d ${WORDS}\\n", n
      fflush()
      system("usleep 10000")
    }
  }
}`

async function deploy(agent: AgentProcess, token: string, name: string, script: string): Promise<void> {
  const service = { image: IMAGE, init: true, stop_grace_period: '1s', command: ['awk', script] }
  const compose_content = JSON.stringify({ services: { web: service } })
  await ask(agent, token, 'POST', '/api/deployments', { name, compose_content, auto_start: true })
}

async function ask(agent: AgentProcess, token: string, method: string, path: string, body?: object): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) }
  const answer = await fetch(agent.url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`)
}

async function readFigures(agent: AgentProcess, token: string, rounds: number): Promise<Figure[]> {
  const container = 'bench-many-web-1'
  await lastLine(container, LINES - 1)
  await sleep(2000)
  const before = await agent.resident()
  const memory = watchResident(agent.pid)
  const lines = new LineCount()
  const bytes = await readAll(agent, token, chunk => lines.push(chunk))
  if (lines.count !== LINES) throw new Error(`${lines.count} lines of ${LINES} were answered`)
  const runs: { ours: number; docker: number }[] = []
  for (let round = 0; round < rounds; round++) {
    const docker = await seconds(() => dockerLogs(['-t', container]))
    const ours = await seconds(async () => {
      if ((await readAll(agent, token)) !== bytes) throw new Error('the answers differ')
    })
    console.error(`logs: ${short(ours)} s, docker logs -t ${short(docker)} s`)
    runs.push({ ours, docker })
  }
  const most = memory.stop()
  const rate = (one: keyof (typeof runs)[number]) => LINES / median(runs.map(run => run[one]))
  const perSecond = (value: number) => Math.round(value).toLocaleString('en')
  return [
    {
      what: 'GET logs?tail=0 of 1,000,000 lines, against docker logs -t',
      value: median(runs.map(({ ours, docker }) => docker / ours)),
      target: { atLeast: 0.7 },
      unit: ' x',
      measured: `${perSecond(rate('ours'))} lines a second against ${perSecond(rate('docker'))}, medians of ${rounds} rounds`,
    },
    {
      what: 'memory for it',
      value: (most - before) / MB,
      target: { atMost: 64 },
      unit: ' MB',
      measured: `${short(before / MB)} to ${short(most / MB)} MB for answers of ${short(bytes / MB)} MB`,
    },
  ]
}

/** Reads it all and keeps nothing. */
async function readAll(agent: AgentProcess, token: string, look?: (chunk: Buffer) => void): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const asked = request(`${agent.url}/api/deployments/bench-many/logs?tail=0`, { headers }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  if (answer.statusCode !== 200) throw new Error(`the logs answered ${answer.statusCode}`)
  let bytes = 0
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    look?.(chunk)
  })
  await once(answer, 'end')
  return bytes
}

/** Counts the items of an answer, wherever its bytes are cut. */
class LineCount {
  count = 0
  #rest = ''

  push(chunk: Buffer): void {
    const parts = (this.#rest + chunk.toString('latin1')).split('{"time":"')
    this.count += parts.length - 1
    this.#rest = (parts.at(-1) as string).slice(-8)
  }
}

/** The writer is told to begin only when the follow is open, so that every line comes as it is written. */
async function followFigures(agent: AgentProcess, token: string, rounds: number): Promise<Figure[]> {
  const container = 'bench-steady-web-1'
  const runs: Followed[] = []
  for (let round = 0; round < rounds; round++) {
    const followed = follow(agent, token)
    await followed.opened
    await run('docker', ['exec', container, 'touch', '/tmp/go'])
    runs.push(await followed.ended)
    console.error(`follow: ${JSON.stringify(runs.at(-1))}`)
  }
  return [
    {
      what: 'lines missing for a websocket that follows 20,000 a second',
      value: Math.max(...runs.map(({ missing }) => missing)),
      target: { atMost: 0 },
      unit: '',
      measured: `the most of ${rounds} rounds of ${FOLLOWED} lines`,
    },
    {
      what: 'lines a second that reached it',
      value: median(runs.map(one => one.rate)),
      target: { atLeast: PER_SECOND },
      unit: '',
      measured: `written at ${runs.map(one => short(one.written)).join(', ')}`,
    },
  ]
}

interface Followed {
  missing: number
  /** Lines a second as they reached the reader, and as the engine took them from the container. */
  rate: number
  written: number
}

function follow(agent: AgentProcess, token: string): { opened: Promise<unknown>; ended: Promise<Followed> } {
  const url = `${agent.url.replace('http', 'ws')}/api/deployments/bench-steady/logs/stream?tail=1`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` }, perMessageDeflate: false })
  const { promise: ended, resolve, reject } = Promise.withResolvers<Followed>()
  const first = { at: 0, time: '' }
  let next = 0
  let missing = 0
  socket.on('error', reject)
  socket.on('close', code => reject(new Error(`the follow ended with ${code}`)))
  setTimeout(() => reject(new Error(`the follow stands at line ${next}`)), 60_000).unref()
  socket.on('message', (data: Buffer) => {
    const { type, time, line } = JSON.parse(String(data)) as { type: string; time: string; line: string }
    const number = type === 'log' ? Number(line.slice(0, 9)) : Number.NaN
    if (number === 0) Object.assign(first, { at: performance.now(), time })
    // What comes before the first line is the last one of the round before.
    if (first.at === 0 || Number.isNaN(number)) return
    if (number < next) reject(new Error(`line ${number} came twice`))
    missing += number - next
    next = number + 1
    if (next < FOLLOWED) return
    const perSecond = (milliseconds: number) => FOLLOWED / (milliseconds / 1000)
    const written = perSecond(Date.parse(time) - Date.parse(first.time))
    resolve({ missing, rate: perSecond(performance.now() - first.at), written })
    socket.close()
  })
  return { opened: once(socket, 'open').then(() => sleep(1500)), ended }
}

async function dockerLogs(args: readonly string[]): Promise<void> {
  const child = spawn('docker', ['logs', ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`docker logs ended with ${code}`)
}

async function lastLine(container: string, number: number): Promise<void> {
  const wanted = String(number).padStart(9, '0')
  for (let tries = 0; tries < 300; tries++) {
    const { stdout } = await run('docker', ['logs', '--tail', '1', container])
    if (stdout.startsWith(wanted)) return
    await sleep(200)
  }
  throw new Error(`${container} did not write its lines`)
}

async function seconds(work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return (performance.now() - began) / 1000
}
