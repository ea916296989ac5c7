// The running configuration and its file: read by everybody, changed only through the step declared here.

import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import {
  type Config,
  ConfigError,
  editConfig,
  type LoadedConfig,
  parseConfig,
  publicConfig,
  redactConfigText,
  restartRequired,
  settingOf,
} from '../../config.ts'
import type { EventBus } from '../../core/event.ts'
import { fail } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { stepKind } from '../../core/step.ts'
import { textDiff } from '../../lib/text-diff.ts'
import { writeAside } from '../../lib/write-aside.ts'

/** The configuration in force. A change of the file by hand is taken up at the next start. */
export class Configuration {
  readonly file: string
  readonly fromEnv: readonly string[]
  /** As the process was started: what differs and needs a restart is told until then. */
  readonly #atStart: Config
  readonly #env: NodeJS.ProcessEnv
  readonly #events: EventBus
  #current: Config

  constructor(loaded: Pick<LoadedConfig, 'config' | 'file' | 'fromEnv'>, env: NodeJS.ProcessEnv, events: EventBus) {
    this.file = loaded.file
    this.fromEnv = loaded.fromEnv
    this.#atStart = loaded.config
    this.#current = loaded.config
    this.#env = env
    this.#events = events
  }

  get current(): Config {
    return this.#current
  }

  get restartRequired(): string[] {
    return restartRequired(this.#atStart, this.#current)
  }

  async read(): Promise<{ text: string; sha256: string }> {
    try {
      const text = await readFile(this.file, 'utf8')
      return { text, sha256: sha256(text) }
    } catch (error) {
      const sentence = `The configuration file ${basename(this.file)} cannot be read (${(error as NodeJS.ErrnoException).code}). Put it back.`
      return fail('SERVICE_UNAVAILABLE', sentence, undefined, error)
    }
  }

  parse(text: string): Config {
    return parseConfig(text, { file: this.file, env: this.#env }).config
  }

  /** Writes the file if it is still what was read, and puts the new values in force. */
  async write(text: string, expect: string): Promise<void> {
    const config = this.parse(text)
    const { mode, uid, gid } = await stat(this.file)
    const requireSame = async () => {
      if ((await this.read()).sha256 !== expect) {
        fail(
          'CONFLICT',
          'The configuration file was changed by somebody else meanwhile. Read the settings again and repeat the change.',
        )
      }
    }
    await writeAside(this.file, text, { mode: mode & 0o777, owner: { uid, gid }, beforeSwap: requireSame })
    this.#current = config
    this.#events.emit('config.changed', { restart: this.restartRequired })
  }
}

declare module '../../core/step.ts' {
  interface World {
    configuration: Configuration
  }
}
declare module '../../core/operation.ts' {
  interface Readers {
    settings: SettingsReader
  }
}

export type SettingsReader = ReturnType<typeof settingsReader>

export function settingsReader(configuration: Configuration, { noteFile }: Viewer) {
  return {
    shown: () => ({ ...publicConfig(configuration.current), restart_required: configuration.restartRequired }),

    /** The step that writes a patch into the file; none when nothing differs. */
    async change(patch: object) {
      const { text, sha256 } = await configuration.read()
      noteFile(basename(configuration.file), sha256)
      refuseWhatTheEnvironmentSets(patch, configuration)
      const edited = checkedEdit(configuration, text, patch)
      return edited === text
        ? []
        : [writeConfiguration({ name: basename(configuration.file), before: text, after: edited })]
    },
  }
}

export const writeConfiguration = stepKind<{ name: string; before: string; after: string }>('configuration.write', {
  describe: ({ name, before, after }) => ({
    type: 'file',
    id: name,
    action: 'update',
    diff: textDiff(name, redactConfigText(before), redactConfigText(after)),
    ...(hiddenLines(before) === hiddenLines(after) ? {} : { sensitive: true }),
  }),
  perform: ({ configuration }, { before, after }) => configuration.write(after, sha256(before)),
  end: {
    async undo({ configuration }, { before, after }) {
      const { sha256: now } = await configuration.read()
      if (now === sha256(after)) await configuration.write(before, now)
    },
  },
})

function checkedEdit(configuration: Configuration, text: string, patch: object): string {
  try {
    const edited = editConfig(text, patch, configuration.current)
    configuration.parse(edited)
    return edited
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    // The caller learns what is wrong, not where on this machine the file lies.
    const details = error.problems.map(({ key, message }) => ({
      path: key,
      message: message.replaceAll(configuration.file, basename(configuration.file)),
    }))
    return fail('VALIDATION_FAILED', details.map(({ message }) => message).join(' '), details)
  }
}

/** The lines that a diff does not show as they are. */
function hiddenLines(text: string): string {
  const shown = redactConfigText(text).split('\n')
  return text
    .split('\n')
    .filter((line, index) => line !== shown[index])
    .join('\n')
}

/** What is sent back as it is, or hidden, is no change. */
function refuseWhatTheEnvironmentSets(patch: object, { current, fromEnv }: Configuration): void {
  const shown = publicConfig(current)
  const differs = (key: string) =>
    ![current, shown].some(config => isDeepStrictEqual(settingOf(config, key), valueAt(patch, key)))
  const keys = leaves(patch, '').filter(key => fromEnv.includes(key) && differs(key))
  if (keys.length === 0) return
  fail(
    'CONFLICT',
    `${keys.join(', ')} is set by an environment variable, which wins over the file. Change it there.`,
    keys,
  )
}

function valueAt(value: unknown, key: string): unknown {
  return key.split('.').reduce<unknown>((inner, part) => (inner as Record<string, unknown>)[part], value)
}

function leaves(value: unknown, path: string): string[] {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [path]
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, path === '' ? key : `${path}.${key}`))
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
