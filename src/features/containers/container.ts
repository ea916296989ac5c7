// What a container is in answers, and what can be asked about containers: those of the engine that the caller may see.

import type { Engine } from '../../adapters/container-engine/engine.ts'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import { readLogs } from '../../adapters/container-engine/log-stream.ts'
import { findContainer } from '../../adapters/container-engine/lookup.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import type { Target } from '../../adapters/container-engine/steps.ts'
import { fail, notFound } from '../../core/failure.ts'
import { momentAt } from '../../core/moment.ts'
import type { Viewer } from '../../core/operation.ts'
import { requireScope, sees } from '../../core/permission.ts'
import { Nullable, Time, Type, Words } from '../../core/schema.ts'
import { belongings, type DeploymentFolders } from '../deployments/index.ts'

export const ContainerId = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'Its name, its id, or the beginning of its id when no other has it',
})

export const Container = Type.Object({
  id: Type.String(),
  name: Type.String(),
  image: Type.String(),
  image_id: Type.String(),
  state: Words(['created', 'running', 'paused', 'restarting', 'removing', 'exited', 'dead']),
  status: Type.String({ description: 'The state in words, with the exit code or the health' }),
  health: Words(['healthy', 'unhealthy', 'starting', 'none']),
  deployment: Nullable(Type.String()),
  service: Nullable(Type.String()),
  ports: Type.Array(
    Type.Object({
      host_ip: Nullable(Type.String()),
      host_port: Nullable(Type.Integer()),
      container_port: Type.Integer(),
      protocol: Type.String(),
    }),
  ),
  networks: Type.Array(Type.Object({ name: Type.String(), ip: Type.String() })),
  mounts: Type.Array(
    Type.Object({
      type: Type.String(),
      name: Nullable(Type.String({ description: 'The volume' })),
      source: Type.String(),
      destination: Type.String(),
      read_only: Type.Boolean(),
    }),
  ),
  created_at: Time(),
  started_at: Nullable(Time()),
  labels: Type.Record(Type.String(), Type.String()),
})

declare module '../../core/operation.ts' {
  interface Readers {
    containers: ContainerReader
  }
}

export interface ContainerParts {
  engine: Engine
  mirror: EngineMirror
  folders: DeploymentFolders
}

export type ContainerReader = ReturnType<typeof containerReader>

interface Seen {
  entry: ContainerEntry
  deployment: string | null
}

export function containerReader({ engine, mirror, folders }: ContainerParts, { actor }: Viewer) {
  const visible = async (): Promise<Map<string, Seen>> => {
    const belonging = await belongings(folders, mirror)
    const all = [...mirror.containers].map(
      ([id, entry]) => [id, { entry, deployment: belonging.ofContainer(entry) }] as const,
    )
    return new Map(all.filter(([, { deployment }]) => sees(actor, deployment)))
  }

  const find = async (asked: string): Promise<Seen | undefined> => {
    const seen = await visible()
    const entries = new Map([...seen].map(([id, { entry }]) => [id, entry]))
    const found = findContainer(entries, asked)
    if (found) return seen.get(found.id)
    const fitting = /^[0-9a-f]{4,64}$/.test(asked) ? [...entries.values()].filter(({ id }) => id.startsWith(asked)) : []
    if (fitting.length > 1) {
      const candidates = fitting.map(({ id, name }) => ({ id, name }))
      fail(
        'CONFLICT',
        `"${asked}" begins the ids of ${fitting.length} containers. Give more of the id, or the name.`,
        candidates,
      )
    }
    return undefined
  }

  const one = async (asked: string): Promise<Seen> => (await find(asked)) ?? notFound('container', asked)

  return {
    list: async (all: boolean) =>
      [...(await visible()).values()]
        .filter(({ entry }) => all || entry.state === 'running')
        .sort((a, b) => (a.entry.name < b.entry.name ? -1 : 1))
        .map(shown),

    /** Null when the engine has removed it by itself, as it does with what was run to vanish at its end. */
    async afterwards(asked: string) {
      const found = await find(asked)
      return found ? shown(found) : null
    },

    deploymentOf: async (asked: string): Promise<string | null> => (await find(asked))?.deployment ?? null,

    /** For a change: on a container of a deployment it needs level write there. */
    async target(asked: string): Promise<Target> {
      const { entry, deployment } = await one(asked)
      if (deployment !== null) requireScope(actor, [{ deployment, level: 'write' }])
      return { id: entry.id, name: entry.name, state: entry.state }
    },

    async logs(asked: string, query: { tail: number; filter?: string; since?: string }, signal: AbortSignal) {
      const { entry } = await one(asked)
      const since = momentAt('since', query.since)
      return readLogs(engine, [entry], {
        tail: query.tail,
        filter: query.filter,
        since: since === undefined ? undefined : new Date(since),
        signal,
      })
    },
  }
}

function shown({ entry, deployment }: Seen) {
  return {
    id: entry.id,
    name: entry.name,
    image: entry.image,
    image_id: entry.imageId,
    state: entry.state,
    status: statusOf(entry),
    health: entry.health,
    deployment,
    service: entry.compose?.service ?? null,
    ports: entry.ports.map(port => ({
      host_ip: port.hostIp,
      host_port: port.hostPort,
      container_port: port.containerPort,
      protocol: port.protocol,
    })),
    networks: entry.networks.map(({ name, ip }) => ({ name, ip })),
    mounts: entry.mounts.map(({ type, name, source, destination, readOnly }) => ({
      type,
      name,
      source,
      destination,
      read_only: readOnly,
    })),
    created_at: entry.createdAt,
    started_at: entry.startedAt,
    labels: { ...entry.labels },
  }
}

/** As people know it from the engine, but without a clock in it: it would change without anything happening. */
function statusOf({ state, health, exitCode }: ContainerEntry): string {
  const word = state === 'running' ? 'Up' : `${state[0]?.toUpperCase()}${state.slice(1)}`
  if (state === 'running' && health !== 'none') return `${word} (${health})`
  return exitCode === null || state === 'created' ? word : `${word} (${exitCode})`
}
