// What the machine and the agent itself use at this moment, out of /proc.

import { readFile, statfs } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

export interface HostStats {
  /** Of all processors together, 0-100. */
  cpu_percent: number
  load: [one: number, five: number, fifteen: number]
  memory: { total: number; used: number; available: number; percent: number; swap_total: number; swap_used: number }
  /** The file system that holds the path; `free` is what an ordinary user can still write. */
  disk: { path: string; total: number; used: number; free: number; percent: number }
  /** Bytes since the machine started, over its real interfaces. */
  network: { rx: number; tx: number }
  uptime_seconds: number
  /** The agent's own process; its percentage is of one processor. */
  agent: { rss: number; cpu_percent: number }
}

/**
 * A way to ask. Percentages are over the time since the last asking, without any timer between; the first one takes a
 * tenth of a second, and who asks again sooner than that gets the last percentages.
 */
export function watchHost(path: string): () => Promise<HostStats> {
  let last: Reading | undefined
  let percents = { host: 0, agent: 0 }
  let measuring: Promise<void> | undefined

  const measure = async (): Promise<void> => {
    if (!last) {
      last = await readTimes()
      await sleep(SHORTEST)
    }
    const now = await readTimes()
    if (now.at - last.at < SHORTEST * 0.9) return
    percents = {
      host: share(now.busy - last.busy, now.total - last.total),
      agent: share(now.own - last.own, now.at - last.at),
    }
    last = now
  }

  return async () => {
    measuring ??= measure().finally(() => {
      measuring = undefined
    })
    await measuring
    const [memory, load, network, disk, uptime] = await Promise.all([
      readMemory(),
      readLoad(),
      readNetwork(),
      readDisk(path),
      readUptime(),
    ])
    const agent = { rss: process.memoryUsage.rss(), cpu_percent: percents.agent }
    return { cpu_percent: Math.min(100, percents.host), load, memory, disk, network, uptime_seconds: uptime, agent }
  }
}

const SHORTEST = 100

/** Ticks of the machine, and milliseconds of our own. */
interface Reading {
  at: number
  busy: number
  total: number
  own: number
}

async function readTimes(): Promise<Reading> {
  const [, line = ''] = /^cpu +(.*)$/m.exec(await readFile('/proc/stat', 'utf8')) ?? []
  // The last two, guest and guest_nice, are contained in user and nice.
  const ticks = line.split(' ').map(Number).slice(0, 8)
  const total = ticks.reduce((sum, one) => sum + one, 0)
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0)
  const { user, system } = process.cpuUsage()
  return { at: performance.now(), busy: total - idle, total, own: (user + system) / 1000 }
}

async function readMemory(): Promise<HostStats['memory']> {
  return memoryOf(await readFile('/proc/meminfo', 'utf8'))
}

export function memoryOf(meminfo: string): HostStats['memory'] {
  const bytes = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(meminfo)?.[1] ?? 0) * 1024
  const [total, available] = [bytes('MemTotal'), bytes('MemAvailable')]
  const used = Math.max(0, total - available)
  const swap = bytes('SwapTotal')
  return { total, used, available, percent: share(used, total), swap_total: swap, swap_used: swap - bytes('SwapFree') }
}

async function readLoad(): Promise<HostStats['load']> {
  const [one = 0, five = 0, fifteen = 0] = (await readFile('/proc/loadavg', 'utf8')).split(' ').map(Number)
  return [one, five, fifteen]
}

async function readUptime(): Promise<number> {
  return Math.floor(Number((await readFile('/proc/uptime', 'utf8')).split(' ')[0]))
}

async function readNetwork(): Promise<HostStats['network']> {
  return networkOf(await readFile('/proc/self/net/dev', 'utf8'))
}

/** What goes through a bridge or a container's end of a cable was counted at a real interface, where there is one. */
export function networkOf(table: string): HostStats['network'] {
  const rows = table
    .split('\n')
    .map(line => /^ *([^ :]+): *(.*)$/.exec(line))
    .filter(match => match !== null)
    .map(([, name = '', numbers = '']) => ({ name, numbers: numbers.split(/ +/).map(Number) }))
    .filter(({ name }) => name !== 'lo')
  const real = rows.filter(
    ({ name }) => !/^(veth|br-|docker|virbr|cni|flannel|cali|podman|vxlan|tun|tap|wg)/.test(name),
  )
  const counted = real.length > 0 ? real : rows
  const sum = (column: number) => counted.reduce((total, { numbers }) => total + (numbers[column] ?? 0), 0)
  return { rx: sum(0), tx: sum(8) }
}

async function readDisk(path: string): Promise<HostStats['disk']> {
  const { blocks, bfree, bavail, bsize } = await statfs(path)
  const used = (blocks - bfree) * bsize
  const free = bavail * bsize
  return { path, total: blocks * bsize, used, free, percent: share(used, used + free) }
}

/** A part of a whole in percent with one decimal, never negative. */
function share(part: number, whole: number): number {
  return whole > 0 ? Math.max(0, Math.round((part / whole) * 1000) / 10) : 0
}
