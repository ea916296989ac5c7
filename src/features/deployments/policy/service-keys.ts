// Every key of a service in the Compose Specification, and what it may be. A key that is not here is refused.

import { build } from './build-keys.ts'
import {
  any,
  both,
  each,
  isMapping,
  keys,
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

/** `ulimits`: all but those that raise priority over others. */
const ulimits: Rule = keys(
  Object.fromEntries(
    [
      'as',
      'core',
      'cpu',
      'data',
      'fsize',
      'locks',
      'memlock',
      'msgqueue',
      'nofile',
      'nproc',
      'rss',
      'sigpending',
      'stack',
    ].map(name => [name, any]),
  ),
)

/** A bind mount gives its source to the container; volumes and tmpfs are the engine's to keep apart. */
const mount: Rule = both(
  keys({
    type: only(['bind', 'volume', 'tmpfs'], 'mount a folder of the deployment, a named volume or a tmpfs'),
    source: any,
    target: any,
    read_only: any,
    consistency: any,
    bind: keys({
      propagation: only(['private', 'rprivate'], 'mounts must not travel between the machine and the container'),
      create_host_path: any,
      recursive: any,
      selinux: any,
    }),
    volume: keys({ nocopy: any, subpath: any, labels }),
    tmpfs: keys({ size: any, mode: any }),
  }),
  (value, look) => {
    if (!isMapping(value)) return
    const { type, source, read_only } = value
    if (type === 'bind') {
      if (typeof source === 'string' && source !== '') uses(look, source, 'either', read_only !== true)
      else refuse(look, 'names no source')
    }
    if (type === 'volume' && typeof source === 'string' && source && !Object.hasOwn(look.model.volumes, source))
      refuse(look, 'names a volume that is not in this file')
  },
)

/** Runs in the container with the rights the container has. */
const hook: Rule = keys({
  command: any,
  user: any,
  working_dir: any,
  environment: any,
  privileged: never('it gives the command every right on the machine'),
})

const deploy: Rule = keys({
  mode: any,
  endpoint_mode: any,
  replicas: any,
  labels,
  update_config: any,
  rollback_config: any,
  restart_policy: any,
  placement: any,
  resources: keys({
    limits: keys({ cpus: any, memory: any, pids: any }),
    reservations: keys({
      cpus: any,
      memory: any,
      devices: never('it hands a device of the machine to the container'),
      generic_resources: never('it reserves hardware of the machine'),
    }),
  }),
})

const logging: Rule = keys({
  driver: only(['json-file', 'local', 'none'], 'logs must stay with the engine; use json-file, local or none'),
  options: keys(
    Object.fromEntries(
      [
        'compress',
        'env',
        'env-regex',
        'labels',
        'labels-regex',
        'max-buffer-size',
        'max-file',
        'max-size',
        'mode',
        'tag',
      ].map(name => [name, any]),
    ),
  ),
})

const envFile: Rule = (value, look) => path('file')(isMapping(value) ? value.path : value, look)

export const serviceKeys: Table = {
  // What runs.
  image: any, // Together with `build` it is a name to give; see `builtNames`.
  build,
  platform: any,
  pull_policy: any,
  pull_refresh_after: any,
  command: any,
  entrypoint: any,
  working_dir: any,
  user: any, // Root in the container may take any id already.
  group_add: any,
  environment: any,
  env_file: each(envFile), // Read by Compose before this table is asked: the first pass has looked at it.
  init: any,
  stdin_open: any,
  tty: any,
  attach: any,
  healthcheck: any,
  post_start: each(hook),
  pre_stop: each(hook),
  stop_grace_period: any,
  stop_signal: any,
  restart: any,
  scale: any,
  profiles: any,
  depends_on: any,
  deploy,
  logging,
  develop: keys({
    watch: each(
      keys({
        path: path('either'),
        action: any,
        target: any,
        ignore: any,
        include: any,
        initial_sync: any,
        exec: hook,
      }),
    ),
  }),
  extends: any, // Resolved by Compose; the first pass has looked at its file.

  // Names and labels.
  container_name: any, // Not that of another deployment; see `refuseForeignNames`.
  hostname: any,
  domainname: any,
  labels,
  label_file: each(path('file')),
  annotations: never('some runtimes take orders to the machine from them'),

  // Network. Ports of the machine may be published: a deployment is there to be reached.
  ports: each(
    keys({ name: any, mode: any, host_ip: any, target: any, published: any, protocol: any, app_protocol: any }),
  ),
  expose: any,
  networks: each(
    keys({
      aliases: any,
      ipv4_address: any,
      ipv6_address: any,
      mac_address: any,
      interface_name: any,
      priority: any,
      gw_priority: any,
      link_local_ips: never('such addresses may belong to services of the machine'),
      driver_opts: never('it sets kernel parameters'),
    }),
  ),
  // `bridge` is the engine's network for everybody, and any other word the name of a network.
  network_mode: sharedWith(['none'], `${OTHERS_NAMESPACE}; use none, service:… or networks`),
  mac_address: any,
  dns: any,
  dns_opt: any,
  dns_search: any,
  extra_hosts: any, // `host-gateway` only names an address that every container can reach.
  links: each(ownService('only services of the same file can be linked')),
  external_links: never('it reaches containers of others'),

  // Files.
  volumes: each(mount),
  volumes_from: each(ownService('only volumes of services of the same file can be taken')),
  tmpfs: any,
  configs: each(keys({ source: any, target: any, uid: any, gid: any, mode: any })),
  secrets: each(keys({ source: any, target: any, uid: any, gid: any, mode: any })),
  read_only: any,
  storage_opt: never('it changes how the engine stores the container'),

  // Rights and namespaces.
  privileged: never('it gives the container every right on the machine'),
  cap_add: never('it gives the container more rights on the machine'),
  cap_drop: any,
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
  cpus: any,
  cpuset: any,
  cpu_count: any,
  cpu_percent: any,
  cpu_period: any,
  cpu_quota: any,
  cpu_shares: any,
  cpu_rt_period: never(REALTIME),
  cpu_rt_runtime: never(REALTIME),
  mem_limit: any,
  mem_reservation: any,
  mem_swappiness: any,
  memswap_limit: any,
  pids_limit: any,
  shm_size: any,
  ulimits,
  blkio_config: keys({ weight: any }), // The rest names devices of the machine.
  oom_kill_disable: never('it lets others be killed in its place when memory runs out'),
  oom_score_adj: (value, look) => {
    if (Number(value ?? 0) >= 0) return
    refuse(look, 'is not allowed below 0: it lets others be killed in its place when memory runs out')
  },
}
