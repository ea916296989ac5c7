// Pass one, before Compose is started: every file it would read, on the raw text, because reading is already too much.

import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { composeFileNames } from '../../../adapters/compose/reads.ts'
import { buildKeys } from './build-keys.ts'
import { type Expects, locate, type PolicyFolder, type RealFolder, realFolder } from './inside.ts'
import { hasHiddenBreaks, steeringVariables } from './raw-env.ts'
import { rawPath } from './raw-path.ts'
import { type RawYaml, readRawYaml, UnreadableText } from './raw-yaml.ts'
import { type Refusal, refuseAll } from './refusal.ts'
import { configKeys, networkKeys, volumeKeys } from './resource-keys.ts'
import { UNKNOWN_FORM, UNKNOWN_KEY } from './rules.ts'
import { serviceKeys } from './service-keys.ts'
import { BELOW_WRITABLE, isBelowAny } from './written.ts'

/** The texts as they will be; what else Compose reads is looked up in the folder. */
export interface RawFiles {
  composeText: string
  envText: string | null
}

/** A file that Compose reads, or would read when it were there. */
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
  await pass.folderFiles()
  pass.variables()
  await pass.file(files.composeText, { shown: '', bases: [folder.path], envText: files.envText, depth: 0 })
  refuseAll(pass.refusals)
  return pass.reads
}

export const overrideFileNames = composeFileNames.map(name => name.replace('.', '.override.'))
const includeKeys = ['path', 'project_directory', 'env_file']
const maxFiles = 50
const maxDepth = 8
const maxFileBytes = 256 * 1024

interface FileContext {
  /** Of a file inside another: its path from the folder. */
  shown: string
  /** What relative paths in it may be relative to, with this or that version of Compose. */
  bases: readonly string[]
  /** Undefined when variables cannot be told. */
  envText: string | null | undefined
  depth: number
}

interface Place {
  service: string | null
  key: string
  context: FileContext
}

class RawPass {
  readonly refusals: Refusal[] = []
  readonly reads: RawRead[] = []
  readonly #folder: RealFolder
  readonly #envText: string | null
  readonly #walked = new Set<string>()

  constructor(folder: RealFolder, envText: string | null) {
    this.#folder = folder
    this.#envText = envText
  }

  /** What Compose finds in the folder by itself; the override files are compose files like the first. */
  async folderFiles(): Promise<void> {
    if (!this.#folder.exists) return
    const context: FileContext = { shown: '', bases: [this.#folder.given], envText: this.#envText, depth: 0 }
    for (const name of ['.env', ...composeFileNames])
      await this.#located({ service: null, key: name, context }, join(this.#folder.given, name), 'file')
    for (const name of overrideFileNames)
      await this.#nested({ service: null, key: name, context }, join(this.#folder.given, name), {
        ...context,
        shown: name,
      })
  }

  variables(): void {
    const text = this.#envText ?? ''
    if (hasHiddenBreaks(text))
      this.refusals.push({
        service: null,
        key: '.env',
        message: 'holds a character that not everybody takes for a line break',
      })
    for (const name of steeringVariables(text))
      this.refusals.push({
        service: null,
        key: name,
        message:
          'is not allowed in .env: it steers the programs of the machine. Where a container needs it, write it into `environment`',
      })
  }

  async file(text: string, context: FileContext): Promise<void> {
    try {
      const yaml = readRawYaml(text)
      await this.#root(yaml, context)
    } catch (error) {
      if (!(error instanceof UnreadableText)) throw error
      this.#refuse({ service: null, key: context.shown || 'compose_content', context }, error.message)
    }
  }

  async #root(yaml: RawYaml, context: FileContext): Promise<void> {
    if (yaml.isNull(yaml.root)) return
    const at = (key: string): Place => ({ service: null, key, context })
    const pairs = yaml.pairs(yaml.root)
    if (!pairs) throw new UnreadableText('is no mapping')
    for (const [key, value] of pairs) {
      if (key.startsWith('x-') || key === 'version' || key === 'name') continue
      if (key === 'services') await this.#services(yaml, value, at(key))
      else if (key === 'include') await this.#includes(yaml, value, at(key))
      else if (key === 'configs' || key === 'secrets') await this.#fileResources(yaml, value, at(key))
      else if (key === 'networks' || key === 'volumes')
        this.#resources(yaml, value, at(key), key === 'networks' ? networkKeys : volumeKeys)
      else if (!yaml.isNull(value)) this.#refuse(at(key), UNKNOWN_KEY)
    }
  }

  async #services(yaml: RawYaml, node: unknown, place: Place): Promise<void> {
    for (const [name, service] of this.#pairs(yaml, node, place))
      for (const [key, value] of this.#pairs(yaml, service, { ...place, service: name, key: `services.${name}` }))
        await this.#serviceKey(yaml, key, value, { ...place, service: name, key })
  }

  async #serviceKey(yaml: RawYaml, key: string, value: unknown, place: Place): Promise<void> {
    if (key.startsWith('x-') || yaml.isNull(value)) return
    if (!Object.hasOwn(serviceKeys, key)) return this.#refuse(place, UNKNOWN_KEY)
    if (key === 'extends') return this.#extends(yaml, value, place)
    if (key === 'env_file') return this.#envFiles(yaml, value, place)
    if (key === 'label_file') return this.#paths(yaml, value, place, 'file')
    if (key === 'build') return this.#build(yaml, value, place)
  }

  async #includes(yaml: RawYaml, node: unknown, place: Place): Promise<void> {
    for (const entry of yaml.items(node)) {
      const isText = yaml.text(entry) !== undefined
      const pairs = isText ? [['path', entry] as const] : this.#known(yaml, entry, place, includeKeys)
      const found = async (key: string, expects: Expects) => {
        const values = pairs.filter(([name]) => name === key).flatMap(([, value]) => yaml.items(value))
        const at = { ...place, key: `include.${key}` }
        return (await Promise.all(values.map(value => this.#found(yaml, value, at, expects)))).flat()
      }
      const paths = await found('path', 'file')
      const given = await found('project_directory', 'folder')
      const bases = given.length > 0 ? given : [...new Set(paths.map(path => dirname(path)))]
      await found('env_file', 'file')
      for (const base of bases) await this.#located({ ...place, key: 'include.env_file' }, join(base, '.env'), 'file')
      for (const path of paths) await this.#nested({ ...place, key: 'include.path' }, path, { ...place.context, bases })
    }
  }

  async #extends(yaml: RawYaml, node: unknown, place: Place): Promise<void> {
    if (yaml.text(node) !== undefined) return
    for (const [key, value] of this.#known(yaml, node, place, ['service', 'file'])) {
      if (key !== 'file' || yaml.isNull(value)) continue
      const at = { ...place, key: 'extends.file' }
      for (const path of await this.#found(yaml, value, at, 'file'))
        await this.#nested(at, path, { ...place.context, bases: [dirname(path)] })
    }
  }

  async #envFiles(yaml: RawYaml, node: unknown, place: Place): Promise<void> {
    for (const entry of yaml.items(node)) {
      const isText = yaml.text(entry) !== undefined
      const pairs = isText ? [] : this.#known(yaml, entry, place, ['path', 'required', 'format'])
      const values = isText ? [entry] : pairs.filter(([key]) => key === 'path').map(([, value]) => value)
      for (const value of values) await this.#paths(yaml, value, place, 'file')
    }
  }

  async #build(yaml: RawYaml, node: unknown, place: Place): Promise<void> {
    const at = (key: string): Place => ({ ...place, key: `build.${key}` })
    if (yaml.text(node) !== undefined) return this.#paths(yaml, node, at('context'), 'folder')
    const pairs = this.#known(yaml, node, place, Object.keys(buildKeys))
    const contexts: string[] = []
    for (const [key, value] of pairs)
      if (key === 'context') contexts.push(...(await this.#found(yaml, value, at(key), 'folder')))
    const bases = contexts.length > 0 ? contexts : place.context.bases
    for (const [key, value] of pairs) {
      if (key === 'dockerfile')
        await this.#paths(yaml, value, { ...at(key), context: { ...place.context, bases } }, 'file')
      if (key === 'additional_contexts') await this.#additionalContexts(yaml, value, at(key))
    }
  }

  async #additionalContexts(yaml: RawYaml, node: unknown, place: Place): Promise<void> {
    const listed = yaml.items(node).flatMap(one => {
      const text = yaml.text(one)
      return text === undefined ? [] : [text.slice(text.indexOf('=') + 1)]
    })
    const mapped = (yaml.pairs(node) ?? []).flatMap(([, value]) => yaml.text(value) ?? [])
    for (const text of [...listed, ...mapped])
      if (!/^(?:docker-image:\/\/|service:)/.test(text)) await this.#path(text, place, 'either')
  }

  async #fileResources(yaml: RawYaml, node: unknown, place: Place): Promise<void> {
    for (const [name, resource] of this.#pairs(yaml, node, place)) {
      const at = { ...place, key: `${place.key}.${name}` }
      for (const [key, value] of this.#known(yaml, resource, at, Object.keys(configKeys)))
        if (key === 'file') await this.#paths(yaml, value, { ...at, key: `${at.key}.file` }, 'either')
    }
  }

  #resources(yaml: RawYaml, node: unknown, place: Place, table: object): void {
    for (const [name, resource] of this.#pairs(yaml, node, place))
      this.#known(yaml, resource, { ...place, key: `${place.key}.${name}` }, Object.keys(table))
  }

  /** The pairs of a mapping, all of whose keys are among these. */
  #known(yaml: RawYaml, node: unknown, place: Place, keys: readonly string[]) {
    const pairs = this.#pairs(yaml, node, place)
    for (const [key] of pairs)
      if (!keys.includes(key) && !key.startsWith('x-'))
        this.#refuse({ ...place, key: `${place.key}.${key}` }, UNKNOWN_KEY)
    return pairs
  }

  #pairs(yaml: RawYaml, node: unknown, place: Place) {
    if (yaml.isNull(node)) return []
    const pairs = yaml.pairs(node)
    if (!pairs) this.#refuse(place, UNKNOWN_FORM)
    return pairs ?? []
  }

  async #paths(yaml: RawYaml, node: unknown, place: Place, expects: Expects): Promise<void> {
    for (const item of yaml.items(node)) await this.#found(yaml, item, place, expects)
  }

  /** Where a value leads from each base; none when it was refused. */
  async #found(yaml: RawYaml, node: unknown, place: Place, expects: Expects): Promise<string[]> {
    if (yaml.isNull(node)) return []
    const text = yaml.text(node)
    if (text !== undefined) return this.#path(text, place, expects)
    this.#refuse(place, UNKNOWN_FORM)
    return []
  }

  async #path(text: string, place: Place, expects: Expects): Promise<string[]> {
    const found: string[] = []
    for (const base of place.context.bases) {
      const path = rawPath(text, base, place.context.envText)
      if (path.refused !== undefined) this.#refuse(place, path.refused)
      else if (await this.#located(place, path.path, expects)) found.push(path.path)
    }
    return found
  }

  /** Where a path that Compose will follow really is; undefined when it was refused. */
  async #located(place: Place, path: string, expects: Expects, steers = false): Promise<string | undefined> {
    const located = await locate(this.#folder, path, expects)
    if (located.refused !== undefined) {
      this.#refuse(place, located.refused)
      return undefined
    }
    if (isBelowAny(located.real, this.#folder.written)) {
      this.#refuse(place, BELOW_WRITABLE)
      return undefined
    }
    this.reads.push({ service: place.service, key: place.key, real: located.real, steers })
    return located.real
  }

  /** A compose file inside another one: looked at in the same way, when it is there. */
  async #nested(place: Place, path: string, context: FileContext): Promise<void> {
    const real = await this.#located(place, path, 'file', true)
    if (real === undefined || this.#walked.has(`${real}\n${context.bases.join('\n')}`)) return
    this.#walked.add(`${real}\n${context.bases.join('\n')}`)
    const text = await readText(real)
    if (text === null) return
    if (text === undefined)
      return this.#refuse(place, 'is no text that can be read: it has to be UTF-8 of at most 256 KiB')
    if (this.#walked.size > maxFiles || context.depth >= maxDepth)
      return this.#refuse(place, 'reads too many other files')
    const shown = relative(this.#folder.given, path)
    const isOverride = overrideFileNames.includes(shown)
    await this.file(text, {
      shown,
      bases: [...new Set([...context.bases, ...(isOverride ? [] : [dirname(path)])])],
      envText: isOverride ? context.envText : undefined,
      depth: context.depth + 1,
    })
  }

  #refuse({ service, key, context }: Place, message: string): void {
    const where = context.shown && context.shown !== key ? ` (in ${context.shown})` : ''
    this.refusals.push({ service, key: `${key}${where}`, message })
  }
}

/** Null when it is not there, undefined when it is no text of ours. The path is real: a last link would be new. */
async function readText(path: string): Promise<string | null | undefined> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
  const handle = await open(path, flags).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? null : undefined,
  )
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
