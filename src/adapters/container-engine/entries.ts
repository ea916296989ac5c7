// The entries of the mirror: of what the engine says, only the fields we use, under our names.

import type { ContainerInspect, ImageSummary, NetworkInspect, VolumeInspect } from './wire.ts'

export type ContainerState = 'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead'
export type ContainerHealth = 'healthy' | 'unhealthy' | 'starting' | 'none'

export type ContainerEntry = {
  readonly id: string
  readonly name: string
  /** The name it was created from; `imageId` is what it runs, also when the tag has moved. */
  readonly image: string
  readonly imageId: string
  readonly state: ContainerState
  readonly health: ContainerHealth
  /** Null while it runs and before it ever did. */
  readonly exitCode: number | null
  readonly error: string
  readonly oomKilled: boolean
  readonly restartCount: number
  readonly restartPolicy: string
  readonly tty: boolean
  /** 0 when it does not run. */
  readonly pid: number
  /** `container:<id>` when it shares the network of another. */
  readonly networkMode: string
  readonly createdAt: string
  readonly startedAt: string | null
  readonly finishedAt: string | null
  readonly ports: readonly PortEntry[]
  readonly networks: readonly { readonly name: string; readonly id: string; readonly ip: string }[]
  readonly mounts: readonly MountEntry[]
  readonly labels: Readonly<Record<string, string>>
  readonly compose: ComposeLabels | null
}

export type PortEntry = {
  readonly hostIp: string | null
  readonly hostPort: number | null
  readonly containerPort: number
  readonly protocol: string
}

export type MountEntry = {
  readonly type: string
  /** The volume's name; null for a bind. */
  readonly name: string | null
  readonly source: string
  readonly destination: string
  readonly readOnly: boolean
}

export type ComposeLabels = {
  readonly project: string
  readonly service: string
  readonly number: number
  readonly oneoff: boolean
  readonly configHash: string
  readonly workingDir: string
}

export type ImageEntry = {
  readonly id: string
  readonly tags: readonly string[]
  readonly digests: readonly string[]
  readonly size: number
  readonly createdAt: string
}

export type VolumeEntry = {
  readonly name: string
  readonly driver: string
  readonly mountpoint: string
  readonly createdAt: string | null
  readonly labels: Readonly<Record<string, string>>
}

export type NetworkEntry = {
  readonly id: string
  readonly name: string
  readonly driver: string
  readonly scope: string
  readonly internal: boolean
  readonly attachable: boolean
  readonly subnets: readonly string[]
  readonly labels: Readonly<Record<string, string>>
}

export function containerEntry(inspect: ContainerInspect): ContainerEntry {
  const { State, Config, HostConfig, NetworkSettings } = inspect
  const state = containerState(State.Status)
  const labels = Config.Labels ?? {}
  const startedAt = timeOrNull(State.StartedAt)
  const ran = startedAt !== null && state !== 'created'
  return {
    id: inspect.Id,
    name: inspect.Name.replace(/^\//, ''),
    image: Config.Image,
    imageId: inspect.Image,
    state,
    health: containerHealth(State.Health?.Status),
    exitCode: ran && state !== 'running' && state !== 'paused' ? (State.ExitCode ?? 0) : null,
    error: State.Error ?? '',
    oomKilled: State.OOMKilled ?? false,
    restartCount: inspect.RestartCount ?? 0,
    restartPolicy: HostConfig?.RestartPolicy?.Name || 'no',
    tty: Config.Tty ?? false,
    pid: State.Pid ?? 0,
    networkMode: HostConfig?.NetworkMode ?? 'default',
    createdAt: timeOrNull(inspect.Created) ?? '',
    startedAt,
    finishedAt: timeOrNull(State.FinishedAt),
    ports: portEntries(NetworkSettings?.Ports ?? {}),
    networks: networksOf(inspect),
    mounts: (inspect.Mounts ?? []).map(mountEntry),
    labels,
    compose: composeLabels(labels),
  }
}

export function imageEntry(image: ImageSummary): ImageEntry {
  const real = (names: string[] | null | undefined) => (names ?? []).filter(name => !name.startsWith('<none>'))
  return {
    id: image.Id,
    tags: real(image.RepoTags),
    digests: real(image.RepoDigests),
    size: image.Size,
    createdAt: new Date(image.Created * 1000).toISOString(),
  }
}

export const volumeEntry = (volume: VolumeInspect): VolumeEntry => ({
  name: volume.Name,
  driver: volume.Driver,
  mountpoint: volume.Mountpoint,
  createdAt: timeOrNull(volume.CreatedAt),
  labels: volume.Labels ?? {},
})

export const networkEntry = (network: NetworkInspect): NetworkEntry => ({
  id: network.Id,
  name: network.Name,
  driver: network.Driver,
  scope: network.Scope,
  internal: network.Internal ?? false,
  attachable: network.Attachable ?? false,
  subnets: (network.IPAM?.Config ?? []).flatMap(({ Subnet }) => (Subnet ? [Subnet] : [])),
  labels: network.Labels ?? {},
})

/** Podman has words of its own. */
export function containerState(said: string): ContainerState {
  return stateNames[said.toLowerCase()] ?? 'dead'
}

/** The health that a line of the container list shows in brackets. */
export function listedHealth(status: string): ContainerHealth {
  return containerHealth(/\((?:health: )?(healthy|unhealthy|starting)\)/.exec(status)?.[1])
}

const stateNames: Readonly<Record<string, ContainerState>> = {
  created: 'created',
  configured: 'created',
  initialized: 'created',
  running: 'running',
  stopping: 'running',
  paused: 'paused',
  restarting: 'restarting',
  removing: 'removing',
  exited: 'exited',
  stopped: 'exited',
  dead: 'dead',
}

const containerHealth = (said: string | undefined): ContainerHealth =>
  said === 'healthy' || said === 'unhealthy' || said === 'starting' ? said : 'none'

/** The engine's "never" is the year 1. */
function timeOrNull(text: string | undefined): string | null {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) || time <= 0 ? null : new Date(time).toISOString()
}

function portEntries(ports: Record<string, { HostIp?: string; HostPort?: string }[] | null>): PortEntry[] {
  return Object.entries(ports).flatMap(([key, bindings]) => {
    const [port, protocol = 'tcp'] = key.split('/')
    const inner = { containerPort: Number(port), protocol }
    if (!bindings?.length) return [{ hostIp: null, hostPort: null, ...inner }]
    return bindings.map(({ HostIp, HostPort }) => ({
      hostIp: HostIp || null,
      hostPort: Number(HostPort) || null,
      ...inner,
    }))
  })
}

const networksOf = (inspect: ContainerInspect): ContainerEntry['networks'] =>
  Object.entries(inspect.NetworkSettings?.Networks ?? {}).map(([name, endpoint]) => ({
    name,
    id: endpoint?.NetworkID ?? '',
    ip: endpoint?.IPAddress ?? '',
  }))

const mountEntry = (mount: NonNullable<ContainerInspect['Mounts']>[number]): MountEntry => ({
  type: mount.Type ?? 'bind',
  name: mount.Type === 'volume' ? (mount.Name ?? null) : null,
  source: mount.Source ?? '',
  destination: mount.Destination,
  readOnly: mount.RW === false,
})

function composeLabels(labels: Readonly<Record<string, string>>): ComposeLabels | null {
  const project = labels['com.docker.compose.project']
  const service = labels['com.docker.compose.service']
  if (project === undefined || service === undefined) return null
  return {
    project,
    service,
    number: Number(labels['com.docker.compose.container-number'] ?? 1),
    oneoff: labels['com.docker.compose.oneoff']?.toLowerCase() === 'true',
    configHash: labels['com.docker.compose.config-hash'] ?? '',
    workingDir: labels['com.docker.compose.project.working_dir'] ?? '',
  }
}
