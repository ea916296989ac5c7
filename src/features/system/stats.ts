// What there is and what it uses: counts out of memory, of what the caller may see, and the machine's own figures.

import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import type { HostStats } from '../../adapters/host/index.ts'
import { type Actor, sees } from '../../core/permission.ts'
import { type Static, Type } from '../../core/schema.ts'

const Count = Type.Integer({ minimum: 0 })
const Bytes = Type.Integer({ minimum: 0 })
const Percent = Type.Number({ minimum: 0, maximum: 100 })

export const Stats = Type.Object({
  deployments: Type.Object({
    total: Count,
    running: Count,
    partial: Count,
    stopped: Count,
    error: Count,
    deploying: Count,
    invalid: Count,
    unknown: Count,
  }),
  containers: Type.Object({ total: Count, running: Count }),
  images: Count,
  volumes: Count,
  networks: Count,
  certificates: Count,
  system: Type.Object({
    cpu_percent: Percent,
    load: Type.Array(Type.Number({ minimum: 0 }), { description: 'Over 1, 5 and 15 minutes' }),
    memory: Type.Object({
      total: Bytes,
      used: Bytes,
      available: Bytes,
      percent: Percent,
      swap_total: Bytes,
      swap_used: Bytes,
    }),
    disk: Type.Object(
      { total: Bytes, used: Bytes, free: Bytes, percent: Percent },
      { description: 'The file system of the data folder' },
    ),
    network: Type.Object({ rx: Bytes, tx: Bytes }, { description: 'Since the machine started' }),
    uptime_seconds: Count,
  }),
  agent: Type.Object({
    rss: Bytes,
    cpu_percent: Type.Number({ minimum: 0, description: 'Of one processor' }),
    version: Type.String(),
  }),
})

export type StatsShown = Static<typeof Stats>

export interface StatsParts {
  version: string
  host(): Promise<HostStats>
  /** Its maps hold what was last known when the engine is away. */
  mirror: Pick<EngineMirror, 'containers' | 'images' | 'volumes' | 'networks'>
  /** Every deployment with the project its containers carry. */
  projects(): Promise<ReadonlyMap<string, string>>
}

type Status = Exclude<keyof StatsShown['deployments'], 'total'>

export async function statsFor(
  parts: StatsParts,
  actor: Actor,
  deployments: readonly { status: Status }[],
): Promise<StatsShown> {
  const { version, mirror } = parts
  const [{ agent, disk, ...host }, hidden] = await Promise.all([parts.host(), hiddenProjects(parts, actor)])
  const shown = (one: { labels: Readonly<Record<string, string>> }) =>
    !hidden.has(one.labels['com.docker.compose.project'] ?? '')
  const containers = [...mirror.containers.values()].filter(shown)
  const { path: _, ...space } = disk
  return {
    deployments: byStatus(deployments),
    containers: { total: containers.length, running: containers.filter(one => one.state === 'running').length },
    images: mirror.images.size,
    volumes: [...mirror.volumes.values()].filter(shown).length,
    networks: [...mirror.networks.values()].filter(shown).length,
    certificates: 0,
    system: { ...host, disk: space },
    agent: { ...agent, version },
  }
}

/** What hangs on somebody else's deployment follows it; what belongs to none is everybody's. */
async function hiddenProjects({ projects }: StatsParts, actor: Actor): Promise<ReadonlySet<string>> {
  if (actor.deployments === 'all') return new Set()
  const foreign = [...(await projects())].filter(([deployment]) => !sees(actor, deployment))
  return new Set(foreign.map(([, project]) => project))
}

function byStatus(deployments: readonly { status: Status }[]): StatsShown['deployments'] {
  const counts = {
    total: deployments.length,
    running: 0,
    partial: 0,
    stopped: 0,
    error: 0,
    deploying: 0,
    invalid: 0,
    unknown: 0,
  }
  for (const { status } of deployments) counts[status]++
  return counts
}
