// Which files Compose reads when it is run in a folder: compose files, `.env`, and what these name.

import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { access, open } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { fail } from '../../core/failure.ts'
import { interpolate, parseEnv, type Variables } from './interpolate.ts'

/** In Compose's own order of preference. */
export const composeFileNames = ['compose.yaml', 'compose.yml', 'docker-compose.yml', 'docker-compose.yaml'] as const

const overrideFileNames = [
  'compose.override.yml',
  'compose.override.yaml',
  'docker-compose.override.yml',
  'docker-compose.override.yaml',
] as const

export type ReadRole = 'compose' | 'override' | 'env' | 'include' | 'extends' | 'env_file' | 'label_file'

/**
 * A file that was read, or would be read if it were there (`sha256` null): its appearing changes the outcome too.
 * `path` is relative to the folder, or absolute when it lies outside.
 */
export type ComposeFile = { readonly path: string; readonly role: ReadRole; readonly sha256: string | null }

/** The name of the compose file of a folder; undefined when it has none and so is no deployment. */
export async function composeFileOf(folder: string): Promise<string | undefined> {
  for (const name of composeFileNames) if (await exists(join(folder, name))) return name
  return undefined
}

/**
 * Every file that Compose would read, found on the raw text without running it. A function of the contents of the files
 * it returns: as long as these have the same hashes, the list is the same. What can't be parsed is left to Compose to report.
 */
export async function filesRead(folder: string, variables: Variables = {}): Promise<ComposeFile[]> {
  const walk = new Walk(folder)
  await walk.start(variables)
  return walk.files()
}

/** The same files as they are now. */
export function filesNow(folder: string, files: readonly ComposeFile[]): Promise<ComposeFile[]> {
  return Promise.all(files.map(async file => ({ ...file, sha256: sha256(await read(resolve(folder, file.path))) })))
}

const maxFileBytes = 4 * 1024 * 1024
const maxFiles = 200

class Walk {
  readonly #folder: string
  readonly #found = new Map<string, ComposeFile>()
  readonly #walked = new Set<string>()

  constructor(folder: string) {
    this.#folder = folder
  }

  files(): ComposeFile[] {
    return [...this.#found.values()]
  }

  async start(given: Variables): Promise<void> {
    const variables = { ...(await this.#env(join(this.#folder, '.env'))), ...given }
    const named = variables.COMPOSE_FILE ? this.#named(variables) : undefined
    for (const file of listOf(variables.COMPOSE_ENV_FILES)) await this.#env(resolve(this.#folder, file))
    if (named?.[0]) {
      const base = dirname(named[0])
      const more = base === this.#folder ? {} : await this.#env(join(base, '.env'))
      for (const file of named) await this.#compose(file, 'compose', base, { ...more, ...variables })
      return
    }
    await this.#first(composeFileNames, 'compose', variables)
    await this.#first(overrideFileNames, 'override', variables)
  }

  #named(variables: Variables): string[] {
    const separator = variables.COMPOSE_PATH_SEPARATOR || ':'
    return (variables.COMPOSE_FILE ?? '')
      .split(separator)
      .filter(Boolean)
      .map(file => resolve(this.#folder, file))
  }

  /** Those before the one that is taken are noted as absent: each would take its place. */
  async #first(names: readonly string[], role: ReadRole, variables: Variables): Promise<void> {
    for (const name of names) if (await this.#compose(join(this.#folder, name), role, this.#folder, variables)) return
  }

  /** Whether the file is there. Paths in it are relative to `base`. */
  async #compose(path: string, role: ReadRole, base: string, variables: Variables): Promise<boolean> {
    const content = await this.#note(path, role)
    if (content === null) return false
    if (this.#walked.has(`${path}\n${base}`)) return true
    this.#walked.add(`${path}\n${base}`)
    for (const document of documentsOf(content.toString())) await this.#document(document, base, variables)
    return true
  }

  async #document(document: unknown, base: string, variables: Variables): Promise<void> {
    const at = (path: unknown) => resolve(base, interpolate(String(path), variables))
    for (const entry of arrayOf(field(document, 'include'))) await this.#include(entry, base, variables)
    for (const service of Object.values(objectOf(field(document, 'services')))) {
      const extended = field(field(service, 'extends'), 'file')
      if (typeof extended === 'string') await this.#compose(at(extended), 'extends', dirname(at(extended)), variables)
      for (const file of arrayOf(field(service, 'env_file')))
        await this.#note(at(field(file, 'path') ?? file), 'env_file')
      for (const file of arrayOf(field(service, 'label_file'))) await this.#note(at(file), 'label_file')
    }
  }

  async #include(entry: unknown, base: string, variables: Variables): Promise<void> {
    const at = (path: unknown) => resolve(base, interpolate(String(path), variables))
    const paths = arrayOf(field(entry, 'path') ?? entry).filter(path => !isRemote(String(path)))
    if (paths[0] === undefined) return
    const given = field(entry, 'project_directory')
    const inner = given === undefined ? dirname(at(paths[0])) : at(given)
    const named = arrayOf(field(entry, 'env_file')).map(at)
    let all = variables
    for (const file of named.length ? named : [join(inner, '.env')]) all = { ...(await this.#env(file)), ...all }
    for (const path of paths) await this.#compose(at(path), 'include', inner, all)
  }

  async #env(path: string): Promise<Record<string, string>> {
    const content = await this.#note(path, 'env')
    return content === null ? {} : parseEnv(content.toString())
  }

  async #note(path: string, role: ReadRole): Promise<Buffer | null> {
    if (this.#found.size > maxFiles)
      return fail('COMPOSE_INVALID', `The compose file names more than ${maxFiles} other files.`)
    const content = await read(path)
    if (!this.#found.has(path)) this.#found.set(path, { path: this.#shown(path), role, sha256: sha256(content) })
    return content
  }

  #shown(path: string): string {
    const inside = relative(this.#folder, path)
    return inside.startsWith('..') || isAbsolute(inside) ? path : inside
  }
}

/** Null when there is no such file. Never waits for a pipe or a device, which a compose file may name too. */
async function read(path: string): Promise<Buffer | null> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null)
  if (!handle) return null
  try {
    const { size, isFile } = await handle.stat().then(stat => ({ size: stat.size, isFile: stat.isFile() }))
    if (isFile && size <= maxFileBytes) return await handle.readFile()
  } finally {
    await handle.close()
  }
  return fail(
    'COMPOSE_INVALID',
    'The compose file names something to read that is no regular file, or one of more than 4 MiB.',
  )
}

const sha256 = (content: Buffer | null): string | null => content && createHash('sha256').update(content).digest('hex')

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

function documentsOf(text: string): unknown[] {
  try {
    return parseAllDocuments(text, { merge: true, logLevel: 'silent', uniqueKeys: false }).map(document =>
      document.toJS({ maxAliasCount: 1000 }),
    )
  } catch {
    return []
  }
}

/** A git or OCI reference: not a file of this machine. */
const isRemote = (path: string): boolean => /^(?:[a-z]+:\/\/|git@|oci:)|\.git(?:#|$)/.test(path)

const listOf = (text: string | undefined): string[] => (text ?? '').split(',').filter(Boolean)

function arrayOf(value: unknown): unknown[] {
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : [value]
}

const objectOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}

const field = (value: unknown, key: string): unknown => objectOf(value)[key]
