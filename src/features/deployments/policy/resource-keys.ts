// Every top-level key of the Compose Specification below networks, volumes, configs and secrets, and what it may be.

import {
  anything,
  isAbsent,
  isMapping,
  keys,
  labels,
  never,
  only,
  path,
  type Rule,
  refuse,
  type Table,
} from './rules.ts'

export const networkKeys: Table = {
  name: anything, // Not that of another deployment; see `refuseForeignResource`.
  external: anything,
  driver: only(['bridge', 'default'], 'only bridge networks stay on their own'),
  driver_opts: keys({
    'com.docker.network.driver.mtu': anything,
    'com.docker.network.bridge.enable_icc': anything,
    'com.docker.network.bridge.enable_ip_masquerade': anything,
    'com.docker.network.bridge.host_binding_ipv4': anything,
  }),
  // A subnet is a route on the machine: one that is in use elsewhere would take the traffic of others.
  ipam: keys({
    driver: only(['default'], 'only the engine hands out addresses'),
    config: never('the engine chooses the addresses; others may be in use outside the deployment'),
    options: never('only the engine hands out addresses'),
  }),
  internal: anything,
  attachable: anything,
  enable_ipv4: anything,
  enable_ipv6: anything,
  labels,
}

const tmpfsOptions = /^(?:(?:size|uid|gid|mode|nr_inodes)=\w+%?)(?:,(?:size|uid|gid|mode|nr_inodes)=\w+%?)*$/

/** The local driver mounts whatever it is told to: only a tmpfs is nothing of the machine. */
const volumeOptions: Rule = (value, look) => {
  if (isAbsent(value)) return
  const isTmpfs =
    isMapping(value) &&
    value.type === 'tmpfs' &&
    value.device === 'tmpfs' &&
    (value.o === undefined || tmpfsOptions.test(String(value.o))) &&
    Object.keys(value).every(key => ['type', 'device', 'o'].includes(key))
  if (!isTmpfs) refuse(look, 'is not allowed: it mounts something of the machine or the network; use a plain volume')
}

export const volumeKeys: Table = {
  name: anything, // Not that of another deployment; see `refuseForeignResource`.
  external: anything,
  driver: only(['local'], 'only local volumes stay on their own'),
  driver_opts: volumeOptions,
  labels,
}

const NO_STORE = 'only a file, a text or a variable of the deployment can be given'

export const secretKeys: Table = {
  name: anything,
  file: path('either'),
  environment: anything, // A variable of `.env`: Compose is started without those of the agent.
  content: anything,
  labels,
  external: never(NO_STORE),
  driver: never(NO_STORE),
  driver_opts: never(NO_STORE),
  template_driver: never(NO_STORE),
}

export const configKeys: Table = secretKeys
