// One container engine, Docker or Podman: everything the agent asks of it and does to it.

import { EngineClient } from './client.ts'
import { type CallLimit, containerCalls, type Filters } from './containers.ts'
import { execCalls } from './exec.ts'
import { jsonLines } from './frames.ts'
import { imageCalls } from './images.ts'
import { networkCalls } from './networks.ts'
import type { EngineVersion } from './version.ts'
import { volumeCalls } from './volumes.ts'
import type { EngineEvent, EngineInfo } from './wire.ts'

export type Engine = ReturnType<typeof openEngine>

/** Nothing is connected until the first call; see `engineAddress` for the address. */
export function openEngine(address: string) {
  const client = new EngineClient(address)
  return {
    address: client.address,
    containers: containerCalls(client),
    exec: execCalls(client),
    images: imageCalls(client),
    volumes: volumeCalls(client),
    networks: networkCalls(client),

    /** The engine's own clock, to the second. */
    ping: (limit: CallLimit = {}): Promise<Date> => ping(client, limit),
    version: (): Promise<EngineVersion> => client.version(),
    /** To be called by whoever notices that the connection was lost. */
    renegotiate: (): void => client.renegotiate(),
    info: (limit: CallLimit = {}): Promise<EngineInfo> => client.json('GET', '/info', limit),
    events: (query: EventQuery): Promise<AsyncGenerator<EngineEvent>> => events(client, query),
    close: (): void => client.close(),
  }
}

export type EventQuery = {
  readonly filters: Filters
  readonly since?: Date | undefined
  readonly signal?: AbortSignal | undefined
}

async function ping(client: EngineClient, limit: CallLimit): Promise<Date> {
  const response = await client.stream('GET', '/_ping', { deadlineMs: 10_000, ...limit })
  response.resume()
  const said = Date.parse(response.headers.date ?? '')
  return new Date(Number.isNaN(said) ? Date.now() : said)
}

/** Resolves when the engine has accepted the subscription; the generator throws when the connection is lost. */
async function events(
  client: EngineClient,
  { filters, since, signal }: EventQuery,
): Promise<AsyncGenerator<EngineEvent>> {
  const query = { filters, since: since && Math.floor(since.getTime() / 1000) }
  const response = await client.stream('GET', '/events', { query, signal, deadlineMs: 10_000 })
  return (async function* () {
    try {
      for await (const event of jsonLines(response)) yield event as EngineEvent
    } catch (error) {
      signal?.throwIfAborted()
      throw client.explain(error)
    } finally {
      response.on('error', () => {})
      response.destroy()
    }
  })()
}
