// Where the container engine listens: a unix socket or a TCP port, from what the configuration and the machine say.

import { existsSync } from 'node:fs'
import { fail } from '../../core/failure.ts'

export type EngineAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }

/** The configured address, else DOCKER_HOST, else the Docker socket, else Podman's, else Docker's again for the message. */
export function engineAddress(
  configured: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  if (configured) return configured
  if (env.DOCKER_HOST) return env.DOCKER_HOST
  const found = knownSockets(env.XDG_RUNTIME_DIR).find(path => existsSync(path))
  return `unix://${found ?? dockerSocket}`
}

/** Accepts `/path`, `unix:///path`, `tcp://host:port`. */
export function parseAddress(text: string): EngineAddress {
  if (text.startsWith('/')) return { kind: 'unix', path: text }
  if (text.startsWith('unix:///')) return { kind: 'unix', path: text.slice('unix://'.length) }
  const tcp = /^(?:tcp|http):\/\/(?:\[(?<six>[0-9a-f:]+)\]|(?<name>[^:/[\]]+))(?::(?<port>\d{1,5}))?\/?$/i.exec(text)
  const host = tcp?.groups?.six ?? tcp?.groups?.name
  const port = Number(tcp?.groups?.port ?? defaultTcpPort)
  if (host && port > 0 && port < 65536) return { kind: 'tcp', host, port }
  return fail(
    'ENGINE_UNAVAILABLE',
    `"${text}" is not an engine address: give a socket path, unix:///path or tcp://host:port in engine.socket.`,
  )
}

/** The address as Docker's own programs take it in DOCKER_HOST. */
export function dockerHost(address: EngineAddress): string {
  if (address.kind === 'unix') return `unix://${address.path}`
  return `tcp://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
}

const dockerSocket = '/var/run/docker.sock'
const defaultTcpPort = '2375'

function knownSockets(runtimeFolder: string | undefined): string[] {
  const ofRoot = [dockerSocket, '/run/podman/podman.sock']
  if (!runtimeFolder) return ofRoot
  return [
    dockerSocket,
    `${runtimeFolder}/docker.sock`,
    '/run/podman/podman.sock',
    `${runtimeFolder}/podman/podman.sock`,
  ]
}
