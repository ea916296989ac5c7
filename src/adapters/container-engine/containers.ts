// What can be asked of and done to containers at the engine.

import type { IncomingMessage } from 'node:http'
import type { EngineClient } from './client.ts'
import { EngineError } from './client.ts'
import { type LogLine, logLines } from './frames.ts'
import type { ContainerInspect, ContainerSummary, StatsAnswer } from './wire.ts'

export type Filters = Readonly<Record<string, readonly string[]>>

export type CallLimit = { readonly signal?: AbortSignal | undefined; readonly deadlineMs?: number | undefined }

/** The engine's own body of `POST /containers/create`; only what we set is named. */
export type ContainerSpec = {
  readonly Image: string
  readonly Cmd?: readonly string[]
  readonly Entrypoint?: readonly string[]
  readonly Env?: readonly string[]
  readonly User?: string
  readonly WorkingDir?: string
  readonly Tty?: boolean
  readonly Labels?: Readonly<Record<string, string>>
  readonly ExposedPorts?: Readonly<Record<string, Record<string, never>>>
  readonly Healthcheck?: Readonly<Record<string, unknown>>
  readonly StopSignal?: string
  readonly StopTimeout?: number
  readonly HostConfig?: Readonly<Record<string, unknown>>
  readonly NetworkingConfig?: Readonly<Record<string, unknown>>
}

export type LogQuery = CallLimit & {
  /** Whether the container has a terminal; the mirror knows. */
  readonly tty: boolean
  /** The last so many lines; all when left out. */
  readonly tail?: number | undefined
  readonly since?: Date | undefined
  readonly until?: Date | undefined
  readonly follow?: boolean | undefined
}

/** One reading; percentages come from two of them. Times and counters as the engine gives them. */
export type ContainerSample = {
  readonly time: string
  readonly cpuNanoseconds: number
  readonly systemNanoseconds: number
  readonly cpus: number
  readonly memoryUsage: number
  readonly memoryLimit: number
  readonly networkRx: number
  readonly networkTx: number
  readonly blockRead: number
  readonly blockWrite: number
  readonly pids: number
}

export type ContainerCalls = ReturnType<typeof containerCalls>

export function containerCalls(client: EngineClient) {
  const post = (id: string, verb: string, query: Record<string, string | number | undefined>, limit: CallLimit) =>
    client.json<void>('POST', `${at(id)}/${verb}`, { ...limit, query })
  /** Stopping may take the container's grace period before the engine answers. */
  const patient = (limit: CallLimit, seconds = 10): CallLimit => ({
    signal: limit.signal,
    deadlineMs: limit.deadlineMs ?? (seconds + 30) * 1000,
  })

  return {
    list: (filters: Filters = {}, limit: CallLimit = {}): Promise<ContainerSummary[]> =>
      client.json('GET', '/containers/json', { ...limit, query: { all: true, filters } }),
    inspect: (id: string, limit: CallLimit = {}): Promise<ContainerInspect> =>
      client.json('GET', `${at(id)}/json`, limit),
    create: async (name: string, spec: ContainerSpec, limit: CallLimit = {}): Promise<string> => {
      const options = { deadlineMs: 120_000, ...limit, query: { name }, body: spec }
      return (await client.json<{ Id: string }>('POST', '/containers/create', options)).Id
    },
    start: (id: string, limit: CallLimit = {}): Promise<void> =>
      post(id, 'start', {}, { deadlineMs: 120_000, ...limit }),
    stop: (id: string, { seconds, ...limit }: CallLimit & { seconds?: number } = {}): Promise<void> =>
      post(id, 'stop', { t: seconds }, patient(limit, seconds)),
    restart: (id: string, { seconds, ...limit }: CallLimit & { seconds?: number } = {}): Promise<void> =>
      post(id, 'restart', { t: seconds }, patient(limit, seconds)),
    kill: (id: string, signal = 'SIGKILL', limit: CallLimit = {}): Promise<void> => post(id, 'kill', { signal }, limit),
    pause: (id: string, limit: CallLimit = {}): Promise<void> => post(id, 'pause', {}, limit),
    unpause: (id: string, limit: CallLimit = {}): Promise<void> => post(id, 'unpause', {}, limit),
    rename: (id: string, name: string, limit: CallLimit = {}): Promise<void> => post(id, 'rename', { name }, limit),
    /** Never removes a volume but the anonymous ones, and those only when asked. */
    remove: (
      id: string,
      {
        force = false,
        anonymousVolumes = false,
        ...limit
      }: CallLimit & { force?: boolean; anonymousVolumes?: boolean } = {},
    ): Promise<void> =>
      client.json('DELETE', at(id), { deadlineMs: 60_000, ...limit, query: { force, v: anonymousVolumes } }),
    /** The exit code, when the condition has come true. */
    wait: async (id: string, condition: 'not-running' | 'next-exit' | 'removed', limit: CallLimit): Promise<number> => {
      const options = { ...limit, query: { condition } }
      return (await client.json<{ StatusCode: number }>('POST', `${at(id)}/wait`, options)).StatusCode
    },
    stats: async (id: string, limit: CallLimit = {}): Promise<ContainerSample> => {
      const query = { stream: false, 'one-shot': true }
      return sampleOf(await client.json<StatsAnswer>('GET', `${at(id)}/stats`, { ...limit, query }))
    },
    logs: (id: string, query: LogQuery): AsyncGenerator<LogLine[]> => readLogs(client, id, query),
  }
}

const at = (id: string): string => `/containers/${encodeURIComponent(id)}`

/** Batches of lines, as they come; the source waits while the reader does. Leaving the loop closes the connection. */
async function* readLogs(client: EngineClient, id: string, query: LogQuery): AsyncGenerator<LogLine[]> {
  const response = await client.stream('GET', `${at(id)}/logs`, {
    signal: query.signal,
    deadlineMs: query.deadlineMs,
    query: {
      stdout: true,
      stderr: true,
      timestamps: true,
      follow: query.follow ?? false,
      tail: query.tail ?? 'all',
      since: unixTime(query.since),
      until: unixTime(query.until),
    },
  })
  try {
    yield* logLines(response, query.tty)
  } catch (error) {
    query.signal?.throwIfAborted()
    throw client.explain(error)
  } finally {
    discard(response)
  }
}

function discard(response: IncomingMessage): void {
  response.on('error', () => {})
  response.destroy()
}

const unixTime = (time: Date | undefined): string | undefined => time && (time.getTime() / 1000).toFixed(3)

function sampleOf(answer: StatsAnswer): ContainerSample {
  const { cpu_stats: cpu = {}, memory_stats: memory = {} } = answer
  const networks = Object.values(answer.networks ?? {})
  return {
    time: answer.read,
    cpuNanoseconds: cpu.cpu_usage?.total_usage ?? 0,
    systemNanoseconds: cpu.system_cpu_usage ?? 0,
    cpus: cpu.online_cpus ?? 1,
    memoryUsage: Math.max(0, (memory.usage ?? 0) - reclaimable(memory.stats)),
    memoryLimit: memory.limit ?? 0,
    networkRx: sum(networks.map(network => network.rx_bytes)),
    networkTx: sum(networks.map(network => network.tx_bytes)),
    blockRead: blockBytes(answer, 'read'),
    blockWrite: blockBytes(answer, 'write'),
    pids: answer.pids_stats?.current ?? 0,
  }
}

/** The page cache that `docker stats` leaves out: v1 and v2 name it differently. */
const reclaimable = (stats: Record<string, number> | null | undefined): number =>
  stats?.total_inactive_file ?? stats?.inactive_file ?? 0

const blockBytes = (answer: StatsAnswer, op: string): number =>
  sum(
    (answer.blkio_stats?.io_service_bytes_recursive ?? [])
      .filter(entry => entry.op.toLowerCase() === op)
      .map(({ value }) => value),
  )

const sum = (values: readonly (number | undefined)[]): number =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0)

export const isNotFound = (error: unknown): boolean => error instanceof EngineError && error.engineStatus === 404
