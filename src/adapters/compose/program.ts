// Finds Docker Compose 2 or newer and runs it with an environment that holds nothing of the agent's.

import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure, fail } from '../../core/failure.ts'
import { type ProgramOptions, type ProgramOutput, runProgram } from '../process/run.ts'

export type ComposeSettings = {
  /** The only variables Compose gets, and with it every compose file. */
  readonly path: string
  /** A neutral folder of ours, never that of a person. */
  readonly home: string
  readonly dockerHost: string
  /** Where the plugin is looked for; Docker's own folders when left out. */
  readonly pluginFolders?: readonly string[]
}

/** In Docker's own order. */
export const dockerPluginFolders = [
  '/usr/local/lib/docker/cli-plugins',
  '/usr/local/libexec/docker/cli-plugins',
  '/usr/lib/docker/cli-plugins',
  '/usr/libexec/docker/cli-plugins',
]

export type ComposeVersion = { readonly text: string; readonly major: number; readonly minor: number }

export type ComposeProgram = ReturnType<typeof composeProgram>

type RunOptions = Omit<ProgramOptions, 'cwd' | 'env'>

export function composeProgram(settings: ComposeSettings) {
  const env = { PATH: settings.path, HOME: settings.home, DOCKER_HOST: settings.dockerHost }
  let found: Promise<Found> | undefined

  const find = (): Promise<Found> => {
    found ??= detect(settings, env).catch(error => {
      found = undefined
      throw error
    })
    return found
  }

  return {
    version: async (): Promise<ComposeVersion> => (await find()).version,

    /** How this version is asked for progress that can be read by a program. */
    async progressFlags(): Promise<readonly string[]> {
      const { major, minor } = (await find()).version
      if (major > 2 || minor >= 29) return ['--progress', 'json']
      return minor >= 19 ? ['--progress', 'plain'] : ['--ansi', 'never']
    },

    async run(folder: string, args: readonly string[], options: RunOptions): Promise<ProgramOutput> {
      const { command } = await find()
      const [file, ...first] = command
      try {
        return await runProgram(file, [...first, ...args], { ...options, cwd: folder, env })
      } catch (error) {
        if (error instanceof Failure && error.code === 'SERVICE_UNAVAILABLE') found = undefined
        throw error
      }
    },
  }
}

type Command = readonly [file: string, ...args: string[]]
type Found = { readonly command: Command; readonly version: ComposeVersion }

async function detect(settings: ComposeSettings, env: Record<string, string>): Promise<Found> {
  let tooOld: string | undefined
  for (const command of await candidates(settings)) {
    const version = await versionOf(command, env)
    if (!version) continue
    if (version.major >= 2) return { command, version }
    tooOld = version.text
  }
  if (tooOld) {
    return fail(
      'SERVICE_UNAVAILABLE',
      `Docker Compose ${tooOld} is too old: version 2 or newer is needed. Install the package docker-compose-plugin.`,
    )
  }
  return fail(
    'SERVICE_UNAVAILABLE',
    'Docker Compose is not installed: install the package docker-compose-plugin (version 2 or newer).',
  )
}

/** The plugin is run directly: the detour through `docker` doubles the time of a short call. */
async function candidates({ pluginFolders = dockerPluginFolders }: ComposeSettings): Promise<Command[]> {
  const plugins: Command[] = []
  for (const folder of pluginFolders) {
    const file = join(folder, 'docker-compose')
    if (await isExecutable(file)) plugins.push([file])
  }
  return [...plugins, ['docker', 'compose'], ['docker-compose']]
}

const isExecutable = (file: string): Promise<boolean> =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  )

async function versionOf(command: Command, env: Record<string, string>): Promise<ComposeVersion | undefined> {
  const [file, ...first] = command
  const options = { cwd: '/', env, deadlineMs: 10_000 }
  const output = await runProgram(file, [...first, 'version', '--short'], options).catch(() => undefined)
  const parts = output?.code === 0 ? /(\d+)\.(\d+)\.\d+[\w.+-]*/.exec(output.stdout) : null
  if (!parts) return undefined
  return { text: parts[0], major: Number(parts[1]), minor: Number(parts[2]) }
}
