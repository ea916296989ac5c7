// The parts of the engine's JSON that we read. Docker and Podman leave out different ones, hence the many `?`.

export type ContainerInspect = {
  Id: string
  Name: string
  Created: string
  Image: string
  RestartCount?: number
  State: ContainerState
  Config: {
    Image: string
    Tty?: boolean
    Labels?: Record<string, string> | null
    Env?: string[] | null
    Healthcheck?: { Test?: string[] | null } | null
  }
  HostConfig?: {
    NetworkMode?: string
    RestartPolicy?: { Name?: string; MaximumRetryCount?: number } | null
    AutoRemove?: boolean
  }
  Mounts?: MountPoint[] | null
  NetworkSettings?: {
    Ports?: Record<string, PortBinding[] | null> | null
    Networks?: Record<string, EndpointSettings | null> | null
  }
}

export type ContainerState = {
  Status: string
  Running?: boolean
  Paused?: boolean
  Restarting?: boolean
  OOMKilled?: boolean
  Dead?: boolean
  Pid?: number
  ExitCode?: number
  Error?: string
  StartedAt?: string
  FinishedAt?: string
  Health?: { Status?: string; FailingStreak?: number; Log?: HealthRecord[] | null } | null
}

export type HealthRecord = { Start: string; End: string; ExitCode: number; Output: string }
export type PortBinding = { HostIp?: string; HostPort?: string }
export type EndpointSettings = {
  NetworkID?: string
  IPAddress?: string
  GlobalIPv6Address?: string
  Aliases?: string[] | null
}
export type MountPoint = { Type?: string; Name?: string; Source?: string; Destination: string; RW?: boolean }

export type ContainerSummary = {
  Id: string
  Names?: string[] | null
  Image: string
  ImageID: string
  State: string
  Status: string
  Labels?: Record<string, string> | null
}

export type ImageSummary = {
  Id: string
  RepoTags?: string[] | null
  RepoDigests?: string[] | null
  Size: number
  Created: number
  Labels?: Record<string, string> | null
}

export type ImageInspect = {
  Id: string
  RepoTags?: string[] | null
  RepoDigests?: string[] | null
  Size: number
  Created?: string
  Architecture?: string
  Os?: string
  Config?: {
    Labels?: Record<string, string> | null
    ExposedPorts?: Record<string, unknown> | null
    Volumes?: Record<string, unknown> | null
  } | null
}

export type ImageRemoval = { Untagged?: string; Deleted?: string }

export type VolumeInspect = {
  Name: string
  Driver: string
  Mountpoint: string
  CreatedAt?: string
  Labels?: Record<string, string> | null
  Options?: Record<string, string> | null
  Scope?: string
}

export type NetworkInspect = {
  Id: string
  Name: string
  Created?: string
  Driver: string
  Scope: string
  Internal?: boolean
  Attachable?: boolean
  Labels?: Record<string, string> | null
  IPAM?: { Config?: { Subnet?: string; Gateway?: string }[] | null } | null
  Containers?: Record<string, { Name?: string }> | null
}

export type EngineEvent = {
  Type: string
  Action: string
  Actor: { ID: string; Attributes?: Record<string, string> | null }
  time?: number
  timeNano?: number
}

export type EngineInfo = {
  ID?: string
  Name?: string
  ServerVersion?: string
  Containers?: number
  Images?: number
  Driver?: string
  CgroupDriver?: string
  CgroupVersion?: string
  OperatingSystem?: string
  Architecture?: string
  NCPU?: number
  MemTotal?: number
  DockerRootDir?: string
}

export type StatsAnswer = {
  read: string
  cpu_stats?: { cpu_usage?: { total_usage?: number }; system_cpu_usage?: number; online_cpus?: number }
  memory_stats?: { usage?: number; limit?: number; stats?: Record<string, number> | null }
  networks?: Record<string, { rx_bytes?: number; tx_bytes?: number }> | null
  blkio_stats?: { io_service_bytes_recursive?: { op: string; value: number }[] | null } | null
  pids_stats?: { current?: number } | null
}
