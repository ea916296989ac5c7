// What can be asked of and done to volumes at the engine.

import type { EngineClient } from './client.ts'
import type { CallLimit, Filters } from './containers.ts'
import type { VolumeInspect } from './wire.ts'

export type VolumeSpec = {
  readonly name: string
  readonly driver?: string
  readonly driverOptions?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
}

export type VolumeCalls = ReturnType<typeof volumeCalls>

export function volumeCalls(client: EngineClient) {
  return {
    list: async (filters: Filters = {}, limit: CallLimit = {}): Promise<VolumeInspect[]> => {
      const options = { ...limit, query: { filters } }
      return (await client.json<{ Volumes?: VolumeInspect[] | null }>('GET', '/volumes', options)).Volumes ?? []
    },
    inspect: (name: string, limit: CallLimit = {}): Promise<VolumeInspect> => client.json('GET', at(name), limit),
    create: ({ name, driver = 'local', driverOptions = {}, labels = {} }: VolumeSpec, limit: CallLimit = {}) => {
      const body = { Name: name, Driver: driver, DriverOpts: driverOptions, Labels: labels }
      return client.json<VolumeInspect>('POST', '/volumes/create', { ...limit, body })
    },
    remove: (name: string, limit: CallLimit = {}): Promise<void> =>
      client.json('DELETE', at(name), { deadlineMs: 120_000, ...limit }),
  }
}

const at = (name: string): string => `/volumes/${encodeURIComponent(name)}`
