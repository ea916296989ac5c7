// Which agent a run is about: from the command line, the environment, or the profile in use.

import { ClientError } from './failure.ts'
import { type Profile, type Profiles, unknownProfile } from './profile.ts'

export interface Target {
  url: string
  /** The name of the profile it comes from; none for what the environment names. */
  profile?: string
  kept?: Profile
  apiKey?: string
}

/** A profile named on the command line wins over the environment, the environment over the current profile. */
export function targetOf(
  profiles: Profiles,
  env: Record<string, string | undefined>,
  named?: string,
): Target | undefined {
  const { FAIRLEAD_URL, FAIRLEAD_API_KEY } = env
  if (named === undefined && FAIRLEAD_URL && FAIRLEAD_API_KEY) {
    return { url: addressOf(FAIRLEAD_URL), apiKey: FAIRLEAD_API_KEY }
  }
  const name = named ?? profiles.current()
  const kept = profiles.read(name)
  if (named !== undefined && !kept) throw unknownProfile(named, profiles.names())
  const url = named === undefined && FAIRLEAD_URL ? addressOf(FAIRLEAD_URL) : kept?.url
  if (url === undefined) return undefined
  const apiKey = named === undefined && FAIRLEAD_API_KEY ? FAIRLEAD_API_KEY : undefined
  // A stored key goes only to the server it was stored for.
  if (apiKey !== undefined || kept?.url !== url) return { url, ...(apiKey ? { apiKey } : {}) }
  return { url, profile: name, kept, ...(kept.api_key ? { apiKey: kept.api_key } : {}) }
}

export const NOT_LOGGED_IN =
  'You are not logged in. Log in with: fairlead login URL (or set FAIRLEAD_URL and FAIRLEAD_API_KEY).'

/** An address as people write it: without a scheme it is https, and http on this machine. */
export function addressOf(text: string): string {
  const local = /^(localhost|127\.|\[::1\])/.test(text)
  const full = /^[a-z]+:\/\//i.test(text) ? text : `${local ? 'http' : 'https'}://${text}`
  if (!URL.canParse(full) || !/^https?:$/.test(new URL(full).protocol)) {
    throw new ClientError(`"${text}" is not an address: write it as https://agent.example.com or http://127.0.0.1:8090`)
  }
  const { origin, pathname } = new URL(full)
  return origin + pathname.replace(/\/(api\/?)?$/, '')
}
