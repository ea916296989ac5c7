// Every key of a service in the Compose Specification, and what it may be. A key that is not here is refused.

import { build } from './build-keys.ts'
import {
  anything,
  below,
  both,
  each,
  free,
  isMapping,
  keys,
  type Look,
  labels,
  never,
  only,
  ownService,
  path,
  type Rule,
  refuse,
  sharedWith,
  type Table,
  uses,
} from './rules.ts'

const OTHERS_NAMESPACE = 'it opens the namespace of the machine or of another container'
const REALTIME = 'it takes processor time away from everything else on the machine'

/** All but those that raise priority over others. */
const ulimits: Rule = keys(free('as core cpu data fsize locks memlock msgqueue nofile nproc rss sigpending stack'))

/** A bind mount gives its source to the container; volumes and tmpfs are the engine's to keep apart. */
const mount: Rule = both(
  keys({
    ...free('type source target read_only consistency'),
    bind: keys({
      ...free('create_host_path recursive selinux'),
      propagation: only(['private', 'rprivate'], 'mounts must not travel between the machine and the container'),
    }),
    volume: keys({ ...free('nocopy subpath'), labels }),
    tmpfs: keys(free('size mode')),
  }),
  (value, look) => {
    const { type, source, read_only } = isMapping(value) ? value : {}
    if (type === 'bind' && typeof source === 'string') uses(look, source, 'either', read_only !== true)
    else if (type === 'volume' && source !== undefined && !isOwnVolume(source, look))
      refuse(look, 'names a volume that is not in this file')
    else if (type !== 'volume' && type !== 'tmpfs')
      refuse(below(look, 'type'), 'is not allowed with this value: mount a folder, a named volume or a tmpfs')
  },
)

const isOwnVolume = (source: unknown, { model }: Look): boolean =>
  typeof source === 'string' && Object.hasOwn(model.volumes, source)

/** Runs in the container with the rights the container has. */
const hook: Rule = keys({
  ...free('command user working_dir environment'),
  privileged: never('it gives the command every right on the machine'),
})

const deploy: Rule = keys({
  ...free('mode endpoint_mode replicas update_config rollback_config restart_policy placement'),
  labels,
  resources: keys({
    limits: keys(free('cpus memory pids')),
    reservations: keys({
      ...free('cpus memory'),
      devices: never('it hands a device of the machine to the container'),
      generic_resources: never('it reserves hardware of the machine'),
    }),
  }),
})

const logging: Rule = keys({
  driver: only(['json-file', 'local', 'none'], 'logs must stay with the engine; use json-file, local or none'),
  options: keys(free('compress env env-regex labels labels-regex max-buffer-size max-file max-size mode tag')),
})

const envFile: Rule = (value, look) => path('file')(isMapping(value) ? value.path : value, look)

export const serviceKeys: Table = {
  // What runs.
  image: anything, // Together with `build` it is a name to give; see `builtNames`.
  build,
  platform: anything,
  pull_policy: anything,
  pull_refresh_after: anything,
  command: anything,
  entrypoint: anything,
  working_dir: anything,
  user: anything, // Root in the container may take any id already.
  group_add: anything,
  environment: anything,
  env_file: each(envFile), // Read by Compose before this table is asked: the first pass has looked at it.
  init: anything,
  stdin_open: anything,
  tty: anything,
  attach: anything,
  healthcheck: anything,
  post_start: each(hook),
  pre_stop: each(hook),
  stop_grace_period: anything,
  stop_signal: anything,
  restart: anything,
  scale: anything,
  profiles: anything,
  depends_on: anything,
  deploy,
  logging,
  develop: keys({
    watch: each(keys({ ...free('action target ignore include initial_sync'), path: path('either'), exec: hook })),
  }),
  extends: anything, // Resolved by Compose; the first pass has looked at its file.

  // Names and labels.
  container_name: anything, // Not that of another deployment; see `refuseForeignContainer`.
  hostname: anything,
  domainname: anything,
  labels,
  label_file: each(path('file')),
  annotations: never('some runtimes take orders to the machine from them'),

  // Network. Ports of the machine may be published: a deployment is there to be reached.
  ports: each(keys(free('name mode host_ip target published protocol app_protocol'))),
  expose: anything,
  networks: each(
    keys({
      ...free('aliases ipv4_address ipv6_address mac_address interface_name priority gw_priority'),
      link_local_ips: never('such addresses may belong to services of the machine'),
      driver_opts: never('it sets kernel parameters'),
    }),
  ),
  // `bridge` is the engine's network for everybody, and any other word the name of a network.
  network_mode: sharedWith(['none'], `${OTHERS_NAMESPACE}; use none, service:… or networks`),
  mac_address: anything,
  dns: anything,
  dns_opt: anything,
  dns_search: anything,
  extra_hosts: anything, // `host-gateway` only names an address that every container can reach.
  links: each(ownService('only services of the same file can be linked')),
  external_links: never('it reaches containers of others'),

  // Files.
  volumes: each(mount),
  volumes_from: each(ownService('only volumes of services of the same file can be taken')),
  tmpfs: anything,
  configs: each(keys(free('source target uid gid mode'))),
  secrets: each(keys(free('source target uid gid mode'))),
  read_only: anything,
  storage_opt: never('it changes how the engine stores the container'),

  // Rights and namespaces.
  privileged: never('it gives the container every right on the machine'),
  cap_add: never('it gives the container more rights on the machine'),
  cap_drop: anything,
  security_opt: each(
    only(
      ['no-new-privileges', 'no-new-privileges:true', 'no-new-privileges=true'],
      'it loosens what confines the container',
    ),
  ),
  sysctls: never('it sets kernel parameters'),
  pid: sharedWith([], OTHERS_NAMESPACE),
  ipc: sharedWith(['private', 'shareable', 'none'], OTHERS_NAMESPACE),
  uts: never(OTHERS_NAMESPACE),
  userns_mode: never(OTHERS_NAMESPACE),
  cgroup: only(['private'], OTHERS_NAMESPACE),
  cgroup_parent: never('it leaves the limits of the engine'),
  runtime: never('another runtime may confine the container less'),
  isolation: never('it changes how the container is confined'),
  credential_spec: never('it names credentials of the machine'),
  use_api_socket: never('it hands the engine itself to the container'),
  provider: never('it runs a program of the machine'),
  models: never('it runs a program of the machine'),
  devices: never('it hands a device of the machine to the container'),
  device_cgroup_rules: never('it opens devices of the machine'),
  gpus: never('it hands a device of the machine to the container'),

  // Limits: a container may only limit itself.
  cpus: anything,
  cpuset: anything,
  cpu_count: anything,
  cpu_percent: anything,
  cpu_period: anything,
  cpu_quota: anything,
  cpu_shares: anything,
  cpu_rt_period: never(REALTIME),
  cpu_rt_runtime: never(REALTIME),
  mem_limit: anything,
  mem_reservation: anything,
  mem_swappiness: anything,
  memswap_limit: anything,
  pids_limit: anything,
  shm_size: anything,
  ulimits,
  blkio_config: keys({ weight: anything }), // The rest names devices of the machine.
  oom_kill_disable: never('it lets others be killed in its place when memory runs out'),
  oom_score_adj: (value, look) => {
    if (Number(value ?? 0) >= 0) return
    refuse(look, 'is not allowed below 0: it lets others be killed in its place when memory runs out')
  },
}
