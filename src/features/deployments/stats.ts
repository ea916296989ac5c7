// What the running containers of a deployment use, from their cgroup files where these can be read, else from the engine.

import { totalmem } from 'node:os'
import type { Engine } from '../../adapters/container-engine/engine.ts'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import { type Usage, usageOf } from '../../adapters/host/cgroup.ts'
import { Type } from '../../core/schema.ts'

const numbers = {
  cpu_percent: Type.Number(),
  memory_usage: Type.Integer(),
  memory_limit: Type.Integer(),
  memory_percent: Type.Number(),
  network_rx: Type.Integer(),
  network_tx: Type.Integer(),
  block_read: Type.Integer(),
  block_write: Type.Integer(),
  pids: Type.Integer(),
}

export const DeploymentStats = Type.Object({
  containers: Type.Array(Type.Object({ id: Type.String(), name: Type.String(), service: Type.String(), ...numbers })),
  totals: Type.Object(numbers, { description: 'Sums; a CPU counts 100 %' }),
})

type Numbers = { [K in keyof typeof numbers]: number }

/** A share of CPU needs two readings; with none kept, the second comes this much later. */
const BETWEEN_MS = 100
/** An older reading would tell of the past. */
const KEPT_MS = 60_000

export class ContainerStats {
  readonly #engine: Engine
  readonly #last = new Map<string, Usage>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  async of(containers: readonly ContainerEntry[], signal: AbortSignal) {
    const running = containers.filter(one => one.state === 'running')
    const missing = running.filter(one => !this.#recent(one.id))
    await Promise.all(missing.map(async one => this.#keep(one.id, await this.#usage(one, signal))))
    if (missing.length > 0) await new Promise(later => setTimeout(later, BETWEEN_MS))
    const all = await Promise.all(running.map(one => this.#reading(one, signal)))
    const found = all.filter(one => one !== undefined)
    this.#forget()
    return { containers: found, totals: totals(found) }
  }

  async #reading(one: ContainerEntry, signal: AbortSignal) {
    const before = this.#last.get(one.id)
    const now = await this.#usage(one, signal)
    if (!now) return undefined
    this.#keep(one.id, now)
    const limit = now.memoryLimit ?? totalmem()
    return {
      id: one.id,
      name: one.name,
      service: one.compose?.service ?? '',
      cpu_percent: before ? cpuPercent(before, now) : 0,
      memory_usage: now.memoryUsage,
      memory_limit: limit,
      memory_percent: rounded((now.memoryUsage / limit) * 100),
      network_rx: now.networkRx,
      network_tx: now.networkTx,
      block_read: now.blockRead,
      block_write: now.blockWrite,
      pids: now.pids,
    }
  }

  async #usage(one: ContainerEntry, signal: AbortSignal): Promise<Usage | undefined> {
    return (await usageOf(one.pid)) ?? this.#asked(one, signal)
  }

  async #asked(one: ContainerEntry, signal: AbortSignal): Promise<Usage | undefined> {
    const sample = await this.#engine.containers.stats(one.id, { signal }).catch(() => undefined)
    return sample && { ...sample, at: performance.now(), memoryLimit: sample.memoryLimit || null }
  }

  #recent(id: string): boolean {
    const last = this.#last.get(id)
    return last !== undefined && performance.now() - last.at < KEPT_MS
  }

  #keep(id: string, usage: Usage | undefined): void {
    if (usage) this.#last.set(id, usage)
  }

  #forget(): void {
    for (const [id, { at }] of this.#last) if (performance.now() - at > KEPT_MS) this.#last.delete(id)
  }
}

function cpuPercent(before: Usage, now: Usage): number {
  const span = (now.at - before.at) * 1e6
  return span <= 0 ? 0 : rounded(Math.max(0, ((now.cpuNanoseconds - before.cpuNanoseconds) / span) * 100))
}

function totals(all: readonly Numbers[]): Numbers {
  const sum = (key: keyof Numbers) => rounded(all.reduce((total, one) => total + one[key], 0))
  const limits = all.map(one => one.memory_limit)
  return {
    cpu_percent: sum('cpu_percent'),
    memory_usage: sum('memory_usage'),
    memory_limit: Math.min(
      totalmem(),
      limits.reduce((total, limit) => total + limit, 0),
    ),
    memory_percent: sum('memory_percent'),
    network_rx: sum('network_rx'),
    network_tx: sum('network_tx'),
    block_read: sum('block_read'),
    block_write: sum('block_write'),
    pids: sum('pids'),
  }
}

const rounded = (value: number): number => Math.round(value * 100) / 100
