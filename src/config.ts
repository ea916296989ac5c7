// Every setting of the agent: where the configuration is found, read, checked, made and changed.

import { createHash, randomBytes, randomInt } from 'node:crypto'
import { mkdir, open } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { ConfigError, type Environment, parseConfig } from './config/parse.ts'
import type { Config } from './config/settings.ts'
import { writeAside } from './lib/write-aside.ts'

export { editConfig, publicConfig, redactConfigText, restartRequired } from './config/edit.ts'
export { ConfigError, type ConfigProblem, type Environment, type ParsedConfig, parseConfig } from './config/parse.ts'
export { configurationReference } from './config/reference.ts'
export { type Config, type Setting, settings } from './config/settings.ts'
export { configSchema, environmentName, otherVariables, settingOf, settingsByKey } from './config/shape.ts'

export interface LoadedConfig {
  config: Config
  file: string
  text: string
  sha256: string
  /** Whether this start made the file. */
  created: boolean
  /** Sentences for the log: what works, but is likely a mistake. */
  warnings: string[]
  /** The keys set by environment variables, which a change of the file does not reach. */
  fromEnv: string[]
}

export interface WhereToLook {
  /** What `--config` says. */
  file?: string | undefined
  env: Environment
  cwd: string
  /** The machine-wide file. */
  machine?: string
}

/** Finds, reads and checks the configuration; with none at all it makes one in `./.fairlead/`. */
export async function loadConfig(where: WhereToLook): Promise<LoadedConfig> {
  const named = where.file || where.env.FAIRLEAD_CONFIG
  if (named) {
    const read = await readConfig(resolve(where.cwd, named), where.env)
    return (
      read ??
      refuse(resolve(where.cwd, named), 'there is no such file. Name another, or none to have one made in ./.fairlead/')
    )
  }
  const own = join(where.cwd, '.fairlead', 'config.yml')
  const found =
    (await readConfig(own, where.env)) ?? (await readConfig(where.machine ?? '/etc/fairlead/config.yml', where.env))
  if (found) return found
  const created = await createConfig(where.cwd)
  const read = await readConfig(own, where.env)
  return read ? { ...read, created } : refuse(own, 'it was made and is gone again')
}

/** Makes `./.fairlead/` with a configuration of its own secret and key. False when somebody else made it meanwhile. */
export async function createConfig(cwd: string): Promise<boolean> {
  const folder = join(cwd, '.fairlead')
  const file = join(folder, 'config.yml')
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const [name, mode] of [
      ['deployments', 0o755],
      ['data', 0o700],
      ['templates', 0o755],
    ] as const) {
      await mkdir(join(folder, name), { recursive: true, mode })
    }
    await writeAside(file, firstText(), { mode: 0o600, exclusive: true })
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    return refuse(file, code === 'ENOSPC' ? 'it was not made: the disk is full' : `it was not made (${code ?? error})`)
  }
}

async function readConfig(file: string, env: Environment): Promise<LoadedConfig | undefined> {
  const read = await readWithMode(file)
  if (!read) return undefined
  const { config, fromEnv, warnings, holdsSecrets } = parseConfig(read.text, { file, env })
  const sha256 = createHash('sha256').update(read.text).digest('hex')
  const open = holdsSecrets && (read.mode & 0o077) !== 0
  const readable = open ? [`${file} holds secrets and can be read by others: run chmod 600 on it.`] : []
  return { config, file, text: read.text, sha256, created: false, warnings: [...readable, ...warnings], fromEnv }
}

async function readWithMode(file: string): Promise<{ text: string; mode: number } | undefined> {
  try {
    const handle = await open(file, 'r')
    try {
      const { mode } = await handle.stat()
      return { text: await handle.readFile('utf8'), mode }
    } finally {
      await handle.close()
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    const reasons: Record<string, string> = { EACCES: 'this user may not read it', EISDIR: 'it is a folder' }
    return refuse(file, reasons[code ?? ''] ?? `it cannot be read (${code ?? error})`)
  }
}

function refuse(file: string, reason: string): never {
  throw new ConfigError([{ key: '', message: `The configuration ${file}: ${reason}.` }])
}

function firstText(): string {
  return `# The configuration of this Fairlead agent. It holds secrets: keep it readable for its owner only.
# docs/reference/configuration.md lists every key. Each can also be set by an environment variable, which wins over
# this file: api.port is FAIRLEAD_API_PORT.

auth:
  enabled: true
  # Signs the tokens given out at login. Another one ends all sessions.
  jwt_secret: ${randomBytes(48).toString('base64url')}
  # Keys accepted at login; each is an administrator.
  api_keys:
    - ${apiKey()}

api:
  # 127.0.0.1 is reached from this machine only.
  host: 127.0.0.1
  port: 8090

# Relative paths start at the folder of this file.
deployments_path: ./deployments
data_path: ./data
templates_path: ./templates
`
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const apiKey = () => `fl_${Array.from({ length: 40 }, () => LETTERS[randomInt(LETTERS.length)]).join('')}`
