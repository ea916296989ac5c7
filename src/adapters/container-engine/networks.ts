// What can be asked of and done to networks at the engine.

import type { EngineClient } from './client.ts'
import type { CallLimit, Filters } from './containers.ts'
import type { NetworkInspect } from './wire.ts'

export type NetworkSpec = {
  readonly name: string
  readonly driver?: string
  readonly internal?: boolean
  readonly attachable?: boolean
  readonly subnet?: string | undefined
  readonly gateway?: string | undefined
  readonly labels?: Readonly<Record<string, string>>
}

export type NetworkCalls = ReturnType<typeof networkCalls>

export function networkCalls(client: EngineClient) {
  return {
    list: (filters: Filters = {}, limit: CallLimit = {}): Promise<NetworkInspect[]> =>
      client.json('GET', '/networks', { ...limit, query: { filters } }),
    inspect: (id: string, limit: CallLimit = {}): Promise<NetworkInspect> => client.json('GET', at(id), limit),
    create: async (spec: NetworkSpec, limit: CallLimit = {}): Promise<string> => {
      const options = { ...limit, body: bodyOf(spec) }
      return (await client.json<{ Id: string }>('POST', '/networks/create', options)).Id
    },
    remove: (id: string, limit: CallLimit = {}): Promise<void> => client.json('DELETE', at(id), limit),
    connect: (id: string, container: string, aliases: readonly string[] = [], limit: CallLimit = {}): Promise<void> =>
      client.json('POST', `${at(id)}/connect`, {
        ...limit,
        body: { Container: container, EndpointConfig: { Aliases: aliases } },
      }),
    disconnect: (id: string, container: string, limit: CallLimit & { force?: boolean } = {}): Promise<void> =>
      client.json('POST', `${at(id)}/disconnect`, {
        ...limit,
        body: { Container: container, Force: limit.force ?? false },
      }),
  }
}

const at = (id: string): string => `/networks/${encodeURIComponent(id)}`

function bodyOf({
  name,
  driver = 'bridge',
  internal = false,
  attachable = false,
  subnet,
  gateway,
  labels = {},
}: NetworkSpec) {
  const pool = subnet === undefined ? [] : [{ Subnet: subnet, ...(gateway === undefined ? {} : { Gateway: gateway }) }]
  const ipam = pool.length ? { IPAM: { Driver: 'default', Config: pool } } : {}
  return {
    Name: name,
    CheckDuplicate: true,
    Driver: driver,
    Internal: internal,
    Attachable: attachable,
    Labels: labels,
    ...ipam,
  }
}
