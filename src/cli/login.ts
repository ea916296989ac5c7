// Logging in and out, and the profiles that remember where and as whom.

import { parseArguments, textOf } from './arguments.ts'
import { CommandCache } from './command-cache.ts'
import { ClientError, UsageError } from './failure.ts'
import { type Flag, helpFlag, profileFlag } from './flags.ts'
import { textOf as bodyOf, exchange, trust } from './http.ts'
import { tableLines } from './print/table.ts'
import type { Profile } from './profile.ts'
import type { World } from './run.ts'
import { logIn, Session } from './session.ts'
import { readFile } from './source-file.ts'
import { addressOf } from './target.ts'

const DEFAULT_URL = 'http://127.0.0.1:8090'

export const loginFlags: Flag[] = [
  {
    name: 'api-key-file',
    takes: 'text',
    placeholder: 'FILE',
    about: 'Read the API key from a file; - for standard input',
    file: true,
  },
  { name: 'username', takes: 'text', placeholder: 'NAME', about: 'Log in as a user; the password is asked for' },
  {
    name: 'password-file',
    takes: 'text',
    placeholder: 'FILE',
    about: 'Read the password from a file; - for standard input',
    file: true,
  },
  {
    name: 'ca-file',
    takes: 'text',
    placeholder: 'FILE',
    about: 'Trust the certificates in this file too (PEM)',
    file: true,
  },
  { name: 'api-key', takes: 'perhaps', placeholder: 'KEY', about: 'The API key itself', hidden: true },
  { name: 'profile', takes: 'text', placeholder: 'NAME', about: 'Remember it under this name (default)' },
  helpFlag,
]

export async function login(world: World, argv: readonly string[]): Promise<void> {
  const args = parseArguments(argv, loginFlags, 'login')
  if (args.positional.length > 1) throw new UsageError('Usage: fairlead login [URL] [flags]')
  const name = textOf(args, 'profile') ?? 'default'
  const url = addressOf(args.positional[0] ?? world.profiles.read(name)?.url ?? DEFAULT_URL)
  const caFile = textOf(args, 'ca-file')
  const ca = caFile === undefined ? undefined : await readFile(caFile)
  if (ca !== undefined) await trust(ca)
  if (isOpenToAll(url)) world.warn(`what you send to ${url} is not encrypted; use https:// outside of your own network`)

  const known = { url, ...(ca === undefined ? {} : { ca }) }
  const profile = (await needsNoLogin(url)) ? known : { ...known, ...(await credentials(world, args, url)) }
  await world.profiles.write(name, profile)
  await world.profiles.use(name)
  const session = new Session({ url, profile: name, kept: profile }, world.profiles)
  await new CommandCache(session, world.env).refresh()
  world.screen.note(`You are logged in to ${url}${await asWhom(session)}. Profile: ${name}`)
}

export async function logout(world: World, argv: readonly string[]): Promise<void> {
  const args = parseArguments(argv, [profileFlag, helpFlag], 'logout')
  const name = textOf(args, 'profile') ?? world.profiles.current()
  const profile = world.profiles.read(name)
  world.profiles.remove(name)
  const still = profile?.api_key ? ' Its API key still works until it is revoked (fairlead apikeys revoke).' : ''
  world.screen.note(`Profile ${name} is forgotten.${still}`)
}

export async function listProfiles(world: World, argv: readonly string[]): Promise<void> {
  const json: Flag = { name: 'json', takes: 'nothing', about: 'As JSON' }
  const { positional, given } = parseArguments(argv, [json, profileFlag, helpFlag], 'profiles')
  const [action = 'list', name] = positional
  if (action === 'use' || action === 'remove') {
    if (name === undefined) throw new UsageError(`Usage: fairlead profiles ${action} NAME`)
    if (action === 'use') await world.profiles.use(name)
    else world.profiles.remove(name)
    return world.screen.note(action === 'use' ? `${name} is the current profile.` : `Profile ${name} is forgotten.`)
  }
  if (action !== 'list')
    throw new UsageError(`profiles has no operation "${action}". It has: list, use NAME, remove NAME`)
  const rows = profileRows(world)
  if (given.some(({ flag }) => flag === json)) return world.screen.print(JSON.stringify(rows))
  if (rows.length === 0) return world.screen.note('No profiles. Make one with: fairlead login URL')
  for (const line of tableLines(world.screen, rows, {}, { identity: 'name' })) world.screen.print(line)
}

/** Without what must stay secret. */
function profileRows({ profiles }: World) {
  const current = profiles.current()
  return profiles.names().map(name => {
    const { url, username, api_key } = profiles.read(name) as Profile
    const login = username ?? (api_key === undefined ? 'nobody' : `API key ${api_key.slice(0, 6)}…`)
    return { name, url, login, current: name === current }
  })
}

async function credentials(
  world: World,
  args: ReturnType<typeof parseArguments>,
  url: string,
): Promise<Partial<Profile>> {
  const username = textOf(args, 'username')
  const given = textOf(args, 'api-key')
  if (given !== undefined)
    world.warn('a key on the command line can be read by others in the list of processes; use --api-key-file')
  if (username !== undefined) return withPassword(world, url, username, textOf(args, 'password-file'))
  const file = textOf(args, 'api-key-file') ?? (world.prompt.possible ? undefined : '-')
  const key =
    given ??
    (file === undefined
      ? await world.prompt.askHidden('API key (empty to log in with a name and password): ')
      : (await readFile(file)).trim())
  if (key !== '') return { api_key: key, ...(await logIn(url, { api_key: key })) }
  if (!world.prompt.possible)
    throw new UsageError('There is no API key on standard input. Use --api-key-file FILE, or --username NAME.')
  return withPassword(world, url, await world.prompt.ask('Username: '), undefined)
}

/** The password is not kept: a token is, until it expires. */
async function withPassword(
  world: World,
  url: string,
  username: string,
  file: string | undefined,
): Promise<Partial<Profile>> {
  const source = file ?? (world.prompt.possible ? undefined : '-')
  const password =
    source === undefined ? await world.prompt.askHidden('Password: ') : (await readFile(source)).replace(/\r?\n$/, '')
  return { username, ...(await logIn(url, { username, password })) }
}

async function needsNoLogin(url: string): Promise<boolean> {
  const answer = await exchange(url, { method: 'GET', path: '/api/auth/status' })
  const text = await bodyOf(answer)
  try {
    const { enabled } = JSON.parse(text) as { enabled?: boolean }
    if (typeof enabled === 'boolean') return !enabled
  } catch {}
  throw new ClientError(`There is no Fairlead agent at ${url}.`)
}

async function asWhom(session: Session): Promise<string> {
  const answer = await session.ask({ method: 'GET', path: '/api/users/me' })
  const text = await bodyOf(answer)
  if (answer.statusCode !== 200) return ''
  const { username, role } = (JSON.parse(text) as { data: { username: string; role: string } }).data
  return ` as ${username} (${role})`
}

function isOpenToAll(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !/^(localhost|127\.|\[::1\])/.test(hostname)
}
