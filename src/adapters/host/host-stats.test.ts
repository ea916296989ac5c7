// Figures of the machine, compared with what the system's own programs say.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { freemem, loadavg, tmpdir, totalmem, uptime } from 'node:os'
import { test } from 'node:test'
import { memoryOf, networkOf, watchHost } from './host-stats.ts'

test('memory, load, uptime and disk are those of the machine', async () => {
  const stats = await watchHost(tmpdir())()
  assert.equal(stats.memory.total, totalmem())
  assert.ok(Math.abs(stats.memory.available - freemem()) < totalmem() / 10)
  assert.equal(stats.memory.used, stats.memory.total - stats.memory.available)
  assert.ok(Math.abs(stats.load[0] - (loadavg()[0] ?? 0)) < 2)
  assert.ok(Math.abs(stats.uptime_seconds - uptime()) < 3)
  const [total, free] =
    execFileSync('df', ['-B1', '--output=size,avail', tmpdir()], { encoding: 'utf8' })
      .split('\n')[1]
      ?.trim()
      .split(/ +/) ?? []
  assert.equal(stats.disk.total, Number(total))
  assert.ok(Math.abs(stats.disk.free - Number(free)) < 1024 ** 3)
  assert.ok(stats.agent.rss > 20 * 1024 ** 2 && stats.agent.rss < 2 * 1024 ** 3)
})

test('a busy process shows in its own percentage and in that of the machine', async () => {
  const ask = watchHost(tmpdir())
  await ask()
  const until = performance.now() + 250
  while (performance.now() < until) Math.sqrt(Math.random())
  const { agent, cpu_percent } = await ask()
  assert.ok(agent.cpu_percent > 40, `agent ${agent.cpu_percent}`)
  assert.ok(cpu_percent > 5 && cpu_percent <= 100, `host ${cpu_percent}`)
})

test('asked many times at once or again at once, it measures once and answers alike', async () => {
  const ask = watchHost(tmpdir())
  const all = await Promise.all(Array.from({ length: 20 }, ask))
  const again = await ask()
  assert.equal(new Set([...all, again].map(({ cpu_percent }) => cpu_percent)).size, 1)
})

test('used memory is what is not available, and a machine without swap has none', () => {
  const text = 'MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     600 kB\n'
  assert.deepEqual(memoryOf(text), {
    total: 1_024_000,
    used: 409_600,
    available: 614_400,
    percent: 40,
    swap_total: 0,
    swap_used: 0,
  })
  assert.equal(memoryOf(`${text}SwapTotal: 10 kB\nSwapFree: 4 kB\n`).swap_used, 6144)
})

test('traffic is counted once, at the real interfaces where there are some', () => {
  const head =
    'Inter-|   Receive                            |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n'
  const row = (name: string, rx: number, tx: number) => `${name.padStart(6)}: ${rx} 1 0 0 0 0 0 0 ${tx} 1 0 0 0 0 0 0\n`
  const table =
    head + row('lo', 5, 5) + row('eth0', 100, 200) + row('veth1', 7, 7) + row('docker0', 7, 7) + row('eth1', 1, 2)
  assert.deepEqual(networkOf(table), { rx: 101, tx: 202 })
  assert.deepEqual(networkOf(head + row('lo', 5, 5) + row('vethX', 7, 8)), { rx: 7, tx: 8 })
  assert.deepEqual(networkOf(head), { rx: 0, tx: 0 })
})
