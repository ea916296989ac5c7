// The address of a registry as a person writes it: a host, with or without a scheme, a port and a path.

import { commonHost, DOCKER_HUB } from './reference.ts'

export interface RegistryAddress {
  scheme: 'http' | 'https' | null
  /** As in the names of images: host and, when it is named, port. */
  host: string
  /** Without slashes at its ends; empty for the whole registry. */
  path: string
}

/** Undefined for what is no address of a registry: another scheme, a login in it, a query. */
export function parseAddress(text: string): RegistryAddress | undefined {
  const scheme = /^(https?):\/\//i.exec(text)?.[1]?.toLowerCase() as 'http' | 'https' | undefined
  if (!scheme && text.includes('://')) return undefined
  const full = scheme ? text : `https://${text}`
  if (!URL.canParse(full)) return undefined
  const { host, hostname, username, password, search, hash, pathname } = new URL(full)
  if (!hostname || username || password || search || hash || /[\s?#@]/.test(text)) return undefined
  const path = pathname.replace(/^\/+|\/+$/g, '').replace(/^v[12](\/|$)/, '')
  return { scheme: scheme ?? null, host: commonHost(host), path }
}

/** Where the registry's API is, in the order to try. Only what is marked insecure, or on this machine, is asked without TLS. */
export function apiBases({ scheme, host }: RegistryAddress, insecure: boolean): string[] {
  if (host === DOCKER_HUB) return ['https://registry-1.docker.io']
  if (scheme) return [`${scheme}://${host}`]
  return insecure || isLoopback(host) ? [`https://${host}`, `http://${host}`] : [`https://${host}`]
}

export const isLoopback = (host: string): boolean => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host)
