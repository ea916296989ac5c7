// What a container uses, read from its cgroup files (v1 and v2), which costs the engine nothing.

import { readFile } from 'node:fs/promises'

export interface Usage {
  /** A monotonic clock, for the share between two readings. */
  at: number
  cpuNanoseconds: number
  memoryUsage: number
  /** Null when it may use all there is. */
  memoryLimit: number | null
  networkRx: number
  networkTx: number
  blockRead: number
  blockWrite: number
  pids: number
}

const ROOT = '/sys/fs/cgroup'
/** v1 says "no limit" with a number near the largest there is. */
const NO_LIMIT = 2 ** 60

/** The usage of the container whose first process this is; undefined where the files cannot be read. */
export async function usageOf(pid: number): Promise<Usage | undefined> {
  if (pid <= 0) return undefined
  try {
    const places = placesOf(await readFile(`/proc/${pid}/cgroup`, 'utf8'))
    const [own, network] = await Promise.all([
      places.has('memory') ? readV1(places) : readV2(`${ROOT}${places.get('')}`),
      readFile(`/proc/${pid}/net/dev`, 'utf8').then(networkOf),
    ])
    return { at: performance.now(), ...own, ...network }
  } catch {
    return undefined
  }
}

type Own = Omit<Usage, 'at' | 'networkRx' | 'networkTx'>

async function readV1(places: ReadonlyMap<string, string>): Promise<Own> {
  const file = (controller: string, name: string) =>
    readFile(`${ROOT}/${controller}${places.get(controller)}/${name}`, 'utf8')
  const [cpu, usage, limit, memory, blocks, pids] = await Promise.all([
    file('cpuacct', 'cpuacct.usage'),
    file('memory', 'memory.usage_in_bytes'),
    file('memory', 'memory.limit_in_bytes'),
    file('memory', 'memory.stat'),
    file('blkio', 'blkio.throttle.io_service_bytes'),
    file('pids', 'pids.current'),
  ])
  const most = Number(limit)
  return {
    cpuNanoseconds: Number(cpu),
    memoryUsage: Math.max(0, Number(usage) - field(memory, 'total_inactive_file')),
    memoryLimit: most >= NO_LIMIT ? null : most,
    blockRead: blockBytes(blocks, 'Read'),
    blockWrite: blockBytes(blocks, 'Write'),
    pids: Number(pids),
  }
}

async function readV2(folder: string): Promise<Own> {
  const file = (name: string) => readFile(`${folder}/${name}`, 'utf8')
  const [cpu, usage, limit, memory, io, pids] = (await Promise.all(
    ['cpu.stat', 'memory.current', 'memory.max', 'memory.stat', 'io.stat', 'pids.current'].map(file),
  )) as [string, string, string, string, string, string]
  const sum = (key: string) =>
    [...io.matchAll(new RegExp(`\\b${key}=(\\d+)`, 'g'))].reduce((all, match) => all + Number(match[1]), 0)
  return {
    cpuNanoseconds: field(cpu, 'usage_usec') * 1000,
    memoryUsage: Math.max(0, Number(usage) - field(memory, 'inactive_file')),
    memoryLimit: limit.trim() === 'max' ? null : Number(limit),
    blockRead: sum('rbytes'),
    blockWrite: sum('wbytes'),
    pids: Number(pids),
  }
}

/** Controller → path; the unified hierarchy has the empty name. */
export function placesOf(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const line of text.trim().split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    for (const controller of controllers.split(',')) found.set(controller, path)
  }
  return found
}

function networkOf(table: string): { networkRx: number; networkTx: number } {
  const sums = { networkRx: 0, networkTx: 0 }
  for (const line of table.split('\n')) {
    const [, name, rest = ''] = /^\s*([^:\s]+):\s*(.*)$/.exec(line) ?? []
    if (name === undefined || name === 'lo') continue
    const numbers = rest.trim().split(/\s+/).map(Number)
    sums.networkRx += numbers[0] ?? 0
    sums.networkTx += numbers[8] ?? 0
  }
  return sums
}

const field = (text: string, name: string): number => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1] ?? 0)
const blockBytes = (text: string, kind: 'Read' | 'Write'): number =>
  [...text.matchAll(new RegExp(`^\\d+:\\d+ ${kind} (\\d+)$`, 'gm'))].reduce((all, match) => all + Number(match[1]), 0)
