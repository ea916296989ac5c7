// Pass one, before Compose is started: every file it would read, on the raw text, because reading is already too much.

import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { composeFileNames } from '../../../adapters/compose/reads.ts'
import { type Expects, locate, type PolicyFolder, type RealFolder, realFolder } from './inside.ts'
import { hasHiddenBreaks, steeringVariables } from './raw-env.ts'
import { rawPath } from './raw-path.ts'
import { type NamedInclude, type NamedPath, namedIn } from './raw-reads.ts'
import { readRawYaml, UnreadableText } from './raw-yaml.ts'
import { type Refusal, refuseAll } from './refusal.ts'
import { BELOW_WRITABLE, isBelowAny } from './written.ts'

/** The texts as they will be; what else Compose reads is looked up in the folder. */
export interface RawFiles {
  composeText: string
  envText: string | null
}

/** A file that Compose reads, or would read if it were there. */
export interface RawRead {
  service: string | null
  key: string
  real: string
  /** Its content decides what Compose does, not only what a container is told. */
  steers: boolean
}

/**
 * Refuses with `COMPOSE_INVALID` when Compose would read anything outside the folder, or what cannot be told. Returns
 * the files it will read, for the second pass.
 */
export async function refuseRawOutside(files: RawFiles, folder: PolicyFolder): Promise<RawRead[]> {
  const pass = new RawPass(await realFolder(folder), files.envText)
  pass.variables()
  await pass.folderFiles()
  await pass.composeText(files.composeText)
  refuseAll(pass.refusals)
  return pass.reads
}

export const overrideFileNames = composeFileNames.map(name => name.replace('.', '.override.'))

const maxFiles = 50
const maxFileBytes = 256 * 1024

/** A compose file that is being looked at. */
interface Source {
  /** From the folder; empty for the first one. */
  shown: string
  /** What its relative paths may be relative to, with this or that version of Compose: each has to stay inside. */
  bases: readonly string[]
  /** Undefined inside another file, where variables have further sources. */
  envText: string | null | undefined
}

type At = Pick<Refusal, 'service' | 'key'>

class RawPass {
  readonly refusals: Refusal[] = []
  readonly reads: RawRead[] = []
  readonly #folder: RealFolder
  readonly #envText: string | null
  readonly #seen = new Set<string>()

  constructor(folder: RealFolder, envText: string | null) {
    this.#folder = folder
    this.#envText = envText
  }

  variables(): void {
    const text = this.#envText ?? ''
    if (hasHiddenBreaks(text)) this.refusals.push({ service: null, key: '.env', message: HIDDEN_BREAK })
    for (const key of steeringVariables(text)) this.refusals.push({ service: null, key, message: STEERING })
  }

  /** What Compose finds in the folder by itself; an override file is a compose file like the first. */
  async folderFiles(): Promise<void> {
    if (!this.#folder.exists) return
    const place = (name: string) => join(this.#folder.given, name)
    for (const key of ['.env', ...composeFileNames]) await this.#follow({ service: null, key }, place(key), 'file')
    for (const key of overrideFileNames) await this.#nested({ service: null, key }, place(key), this.#first(key))
  }

  composeText(text: string): Promise<void> {
    return this.#source(text, this.#first(''))
  }

  #first(shown: string): Source {
    return { shown, bases: [this.#folder.given], envText: this.#envText }
  }

  async #source(text: string, source: Source): Promise<void> {
    try {
      const { named, refusals } = namedIn(readRawYaml(text))
      for (const { message, ...at } of refusals) this.#refuse(at, message, source)
      for (const one of named) {
        if (one.role === 'include') await this.#include(one, source)
        else await this.#path(one, source)
      }
    } catch (error) {
      if (!(error instanceof UnreadableText)) throw error
      this.#refuse({ service: null, key: source.shown || 'compose_content' }, error.message, source)
    }
  }

  async #path(named: NamedPath, source: Source): Promise<void> {
    const bases = (named.from ?? []).flatMap(context => this.#absolute(named, context, source))
    const paths = this.#absolute(named, named.text, named.from ? { ...source, bases } : source)
    for (const path of paths) {
      if (named.role === 'data') await this.#follow(named, path, named.expects, source)
      else await this.#nested(named, path, { ...inner(source, path), bases: [dirname(path)] })
    }
  }

  async #include(include: NamedInclude, source: Source): Promise<void> {
    const absolute = (texts: readonly string[]) => texts.flatMap(text => this.#absolute(include, text, source))
    const paths = absolute(include.paths)
    const given = absolute(include.folders)
    for (const folder of given) await this.#follow(include, folder, 'folder', source)
    for (const file of absolute(include.envFiles)) await this.#follow(include, file, 'file', source)
    const bases = given.length > 0 ? given : paths.map(path => dirname(path))
    for (const base of bases) await this.#follow(include, join(base, '.env'), 'file', source)
    for (const path of paths)
      await this.#nested(include, path, { ...inner(source, path), bases: [...new Set([...bases, dirname(path)])] })
  }

  /** Where a path leads from each base of the file; none when it was refused. */
  #absolute(at: At, text: string, source: Source): string[] {
    return source.bases.flatMap(base => {
      const path = rawPath(text, base, source.envText)
      if (path.refused !== undefined) this.#refuse(at, path.refused, source)
      return path.path ?? []
    })
  }

  /** Where a path that Compose will follow really is; undefined when it was refused. */
  async #follow(at: At, path: string, expects: Expects, source?: Source, steers = false): Promise<string | undefined> {
    const { real, refused } = await locate(this.#folder, path, expects)
    if (refused !== undefined || isBelowAny(real, this.#folder.written)) {
      this.#refuse(at, refused ?? BELOW_WRITABLE, source)
      return undefined
    }
    this.reads.push({ service: at.service, key: at.key, real, steers })
    return real
  }

  /** Another compose file: looked at in the same way, when it is there. */
  async #nested(at: At, path: string, source: Source): Promise<void> {
    const real = await this.#follow(at, path, 'file', undefined, true)
    const seen = JSON.stringify([real, source.bases])
    if (real === undefined || this.#seen.has(seen)) return
    const text = await readText(real)
    if (text === null) return
    if (text === undefined) return this.#refuse(at, 'is no text of at most 256 KiB in UTF-8')
    if (this.#seen.add(seen).size > maxFiles) return this.#refuse(at, 'leads to too many other files')
    await this.#source(text, { ...source, shown: relative(this.#folder.given, path) })
  }

  #refuse({ service, key }: At, message: string, source?: Source): void {
    const where = source?.shown && source.shown !== key ? ` in ${source.shown}` : ''
    this.refusals.push({ service, key: `${key}${where}`, message })
  }
}

const HIDDEN_BREAK = 'holds a character that not everybody takes for a line break: remove it'
const STEERING =
  'is not allowed in .env: it steers the programs of the machine. Where a container needs it, write it into `environment`'

const inner = (source: Source, shown: string): Source => ({ ...source, shown, envText: undefined })

/** Null when it is not there, undefined when it is no text of ours. The path is real: a link at its end would be new. */
async function readText(path: string): Promise<string | null | undefined> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
  const isMissing = (error: NodeJS.ErrnoException) => error.code === 'ENOENT' || error.code === 'ENOTDIR'
  const handle = await open(path, flags).catch(error => (isMissing(error) ? null : undefined))
  if (!handle) return handle
  try {
    const stat = await handle.stat()
    if (!stat.isFile() || stat.size > maxFileBytes) return undefined
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await handle.readFile())
  } catch {
    return undefined
  } finally {
    await handle.close()
  }
}
