// What a registry is in answers, what can be asked about registries, and which credential an image is pulled with.

import {
  isForbidden,
  isLoopback,
  parseAddress,
  parseReference,
  type RegistryAddress,
} from '../../adapters/registry/index.ts'
import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { Nullable, Type } from '../../core/schema.ts'
import type { Database } from '../../store/database.ts'
import type { CredentialReader, CredentialRow } from '../credentials/index.ts'
import { type RegistryRow, registries } from './records.ts'

export const Slug = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
  'x-hint': 'must be 1 to 63 of a-z, 0-9 and -, and start with a letter or digit',
})

export const Registry = Type.Object({
  slug: Type.String(),
  name: Type.String(),
  url: Type.String(),
  type: Type.String(),
  insecure: Type.Boolean(),
  credential_id: Nullable(Type.String()),
})

declare module '../../core/operation.ts' {
  interface Readers {
    registries: RegistryReader
  }
}

export type RegistryReader = ReturnType<typeof registryReader>

/** Somewhere to log in. */
export interface Place {
  address: RegistryAddress
  insecure: boolean
}

export function registryReader(db: Database, credentials: CredentialReader, { actor }: Viewer) {
  const all = (): RegistryRow[] => registries.all(db, 'ORDER BY slug')
  const row = (slug: string): RegistryRow => registries.get(db, { slug }) ?? notFound('registry', slug)

  const placesOf = (credential: CredentialRow): Place[] => {
    const own = parseAddress(serverOf(credential) ?? '')
    const referring = all().filter(({ credential_id }) => credential_id === credential.id)
    const places = [...(own ? [{ address: own, insecure: isLoopback(own.host) }] : []), ...referring.map(placeOf)]
    return [...new Map(places.map(place => [place.address.host, place])).values()]
  }

  /** Of those for the host, the one for the longest part of the path; a registry's comes before a loose credential's. */
  const matching = (host: string, path: string, deployment: string | undefined): CredentialRow | undefined => {
    const usable = (id: string) => {
      const found = credentials.row(id)
      return credentials.mayUse(found, deployment) ? found : undefined
    }
    const fits = ({ address }: Place) =>
      address.host === host && (address.path === '' || path === address.path || path.startsWith(`${address.path}/`))
    const linked = all()
      .filter(one => one.credential_id !== null && fits(placeOf(one)))
      .sort((a, b) => placeOf(b).address.path.length - placeOf(a).address.path.length)
      .map(one => usable(one.credential_id as string))
    const found = linked.find(one => one !== undefined)
    if (found) return found
    return credentials
      .ofType('registry')
      .filter(one => credentials.mayUse(one, deployment))
      .find(one => serverOf(one) !== undefined && placesOf(one).some(fits))
  }

  return {
    list: all,
    row,
    placesOf,

    /**
     * The id of the credential that an image is pulled with, null for none: the one asked for, else the one matching its
     * registry among those that the caller may use. `deployment` is the one that the image is pulled for.
     */
    credentialFor(
      image: string,
      { asked, deployment }: { asked?: string | null | undefined; deployment?: string } = {},
    ): string | null {
      const { registry, path } = requireImage(image)
      if (asked === null) return null
      if (asked === undefined) return matching(registry, path, deployment)?.id ?? null
      const credential = credentials.usable(asked, deployment)
      requireFor(credential, placesOf(credential), registry, actor.permissions.has('credentials:read'))
      return credential.id
    },
  }
}

/** The address of a registry as it may be kept: fit to be asked, and not in the open unless that was said. */
export function requireAddress(url: string, insecure: boolean): RegistryAddress {
  const refuse = (message: string): never =>
    fail('VALIDATION_FAILED', `\`url\` ${message}.`, [{ path: 'url', message }])
  const address =
    parseAddress(url) ??
    refuse('must be the address of a registry, such as https://registry.example.com, without a login in it')
  if (isForbidden(address.host.replace(/:\d+$/, '')))
    refuse('is a link-local or metadata address, from which the agent never fetches')
  if (address.scheme === 'http' && !insecure && !isLoopback(address.host))
    refuse('is without TLS: use https, or mark the registry as `insecure`')
  return address
}

function requireImage(image: string): { registry: string; path: string } {
  const refuse = (message: string): never =>
    fail('VALIDATION_FAILED', `\`image\` ${message}.`, [{ path: 'image', message }])
  const found =
    parseReference(image) ??
    refuse('must be the name of an image, such as redis:7 or registry.example.com/team/app:1.2')
  if (isForbidden(found.registry.replace(/:\d+$/, '')))
    refuse('is at a link-local or metadata address, from which the agent never fetches')
  return found
}

/** A password is only ever sent to the registry that it is for; one that is for none yet, only by who may read it. */
function requireFor(
  credential: CredentialRow,
  places: readonly Place[],
  registry: string,
  mayReadCredentials: boolean,
): void {
  const refuse = (message: string): never =>
    fail('VALIDATION_FAILED', `The credential "${credential.name}" ${message}.`, [{ path: 'credential_id', message }])
  if (credential.type !== 'registry') refuse(`is of type ${credential.type}, not for a registry`)
  if (places.length === 0 && mayReadCredentials) return
  if (places.length === 0) refuse('is bound to no registry: an administrator can refer to it from one')
  if (places.some(({ address }) => address.host === registry)) return
  refuse(`is for ${places.map(({ address }) => address.host).join(', ')}, not for ${registry}`)
}

/** A credential may say itself where it is for. */
const serverOf = ({ credentials: { server, url, registry } }: CredentialRow): string | undefined =>
  server ?? url ?? registry

function placeOf({ url, insecure }: RegistryRow): Place {
  return { address: parseAddress(url) ?? { scheme: null, host: url, path: '' }, insecure }
}
