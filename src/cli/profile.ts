// Profiles: where an agent is and how to log in there. One file each, readable by its owner only.

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { ClientError, UsageError } from './failure.ts'

export interface Profile {
  url: string
  /** Kept because it can be revoked on the server; a password never is. */
  api_key?: string
  username?: string
  /** Reused until it expires. */
  token?: string
  expires_at?: string
  /** More certificates to trust, in PEM. */
  ca?: string
}

export interface Profiles {
  folder: string
  current(): string
  use(name: string): Promise<void>
  names(): string[]
  read(name: string): Profile | undefined
  write(name: string, profile: Profile): Promise<void>
  remove(name: string): void
}

type Environment = Record<string, string | undefined>

export function openProfiles(env: Environment, warn: (sentence: string) => void): Profiles {
  const folder = join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'fairlead')
  const fileOf = (name: string) => join(folder, 'profiles', `${checkedName(name)}.json`)
  const currentFile = join(folder, 'current')
  const profiles: Profiles = {
    folder,
    current: () => textOf(currentFile)?.trim() || 'default',
    names: () => listed(join(folder, 'profiles')),
    read(name) {
      const file = fileOf(name)
      const text = textOf(file)
      if (text === undefined) return undefined
      if (statSync(file).mode & 0o077) warn(`${file} can be read by others: chmod 600 ${file}`)
      return profileOf(text, file)
    },
    write: (name, profile) => replace(fileOf(name), `${JSON.stringify(profile, null, 2)}\n`),
    async use(name) {
      if (!profiles.names().includes(checkedName(name))) throw unknownProfile(name, profiles.names())
      await replace(currentFile, `${name}\n`)
    },
    remove(name) {
      if (!profiles.names().includes(checkedName(name))) throw unknownProfile(name, profiles.names())
      rmSync(fileOf(name))
      if (profiles.current() === name) rmSync(currentFile, { force: true })
    },
  }
  return profiles
}

export function unknownProfile(name: string, known: readonly string[]): UsageError {
  const others = known.length > 0 ? `There is ${known.join(', ')}.` : 'There is none yet.'
  return new UsageError(`There is no profile "${name}". ${others} Make one with: fairlead login URL --profile ${name}`)
}

/** Written aside and renamed, so that two runs at once leave one of the two, whole. */
async function replace(file: string, text: string): Promise<void> {
  const { writeAside } = await import('../lib/write-aside.ts')
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 })
  await writeAside(file, text, { mode: 0o600 })
}

function profileOf(text: string, file: string): Profile {
  try {
    const profile = JSON.parse(text) as Partial<Profile>
    if (typeof profile.url === 'string') return profile as Profile
  } catch {}
  throw new ClientError(`${file} is not a profile. Remove it and log in again.`)
}

function checkedName(name: string): string {
  if (/^[A-Za-z0-9][\w.-]{0,62}$/.test(name)) return name
  throw new UsageError(`"${name}" can't be the name of a profile: use letters, digits, dot, dash and underscore.`)
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw new ClientError(`${file} can't be read: ${(error as Error).message}`)
  }
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter(file => file.endsWith('.json'))
      .map(file => file.slice(0, -'.json'.length))
      .sort()
  } catch {
    return []
  }
}
