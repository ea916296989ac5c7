// The folders of all deployments as they are on disk: read once, watched, and seen anew within a second of any change.

import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { mkdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { type Compose, type ComposeModel, composeFileNames } from '../../adapters/compose/compose.ts'
import { type Files, sha256 } from '../../adapters/files/index.ts'
import { asFailure } from '../../core/failure.ts'

export interface Folder {
  name: string
  path: string
  composeFile: string
  composeText: string
  envText: string | null
  /** What the agent keeps about it; a person may read and edit it. */
  metaText: string | null
  removed: boolean
  revision: string
  createdAt: string
  updatedAt: string
  /** What Compose makes of it, or its words when it does not. */
  model: ComposeModel | null
  error: string | null
}

export const META_FILE = 'fairlead.yml'
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/
/** Several events within a moment are one change. */
const SETTLE_MS = 40
/** A look at all of them, for what no watch has told of. */
const SWEEP_MS = 60_000
/** The same where changes are not told: without a watch, or on a file system that others write to. */
const BLIND_SWEEP_MS = 5000
/** NFS, SMB, CIFS, FUSE, 9P, Ceph, AFS. */
const REMOTE = [0x6969, 0x517b, 0xfe534d42, 0xff534d42, 0x65735546, 0x01021997, 0x00c36400, 0x5346414f]
export const MAX_COMPOSE_BYTES = 256 * 1024
const MAX_FILE_BYTES = 1024 * 1024

export class DeploymentFolders {
  readonly root: string
  readonly #files: Files
  readonly #compose: Compose
  readonly #folders = new Map<string, Folder>()
  #sorted: readonly Folder[] | undefined
  readonly #watchers = new Map<string, FSWatcher>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  /** Those that Compose could not be asked about. */
  readonly #unsure = new Set<string>()
  /** Those that the agent itself has changed since they were read: its own changes are seen at once. */
  readonly #stale = new Set<string>()
  readonly #loading = new Map<string, Promise<Folder | undefined>>()
  readonly #warn: (error: unknown) => void
  #sweeping: NodeJS.Timeout | undefined
  #unsubscribe = () => {}
  /** Not every change is told. */
  #isBlind = false
  #closed = false

  constructor(root: string, files: Files, compose: Compose, warn: (error: unknown) => void) {
    this.root = root
    this.#files = files
    this.#compose = compose
    this.#warn = warn
  }

  /** Begins to watch; the folders are read meanwhile, and `all` waits for them. */
  async open(): Promise<void> {
    await mkdir(this.root, { recursive: true })
    this.#unsubscribe = this.#files.onChange(path => this.#stale.add(path.split('/')[0] as string))
    this.#watch('', () => this.#later('', () => this.#scan()))
    if (REMOTE.includes((await statfs(this.root)).type)) this.#isBlind = true
    let looks = 0
    this.#sweeping = setInterval(() => {
      if (this.#isBlind || ++looks % (SWEEP_MS / BLIND_SWEEP_MS) === 0) void this.#sweep()
    }, BLIND_SWEEP_MS).unref()
    await this.#scan()
  }

  async all(): Promise<readonly Folder[]> {
    const stale = [...this.#stale].map(name => this.refresh(name))
    await Promise.all([...this.#loading.values(), ...stale])
    return this.#current()
  }

  /** The same at once, unless one of them is being read: the same array as long as none of them changes. */
  get known(): readonly Folder[] | undefined {
    return this.#loading.size > 0 || this.#stale.size > 0 ? undefined : this.#current()
  }

  /** A folder as it is now, also one that is marked as removed. */
  async get(name: string): Promise<Folder | undefined> {
    if (!NAME.test(name)) return undefined
    await this.#loading.get(name)
    const known = this.#folders.get(name)
    return known && (await this.#isCurrent(known)) ? known : this.refresh(name)
  }

  /** Reads a folder now; for a command that has just changed it. */
  async refresh(name: string): Promise<Folder | undefined> {
    this.#stale.delete(name)
    const before = this.#loading.get(name)
    const load = (before ?? Promise.resolve()).then(() => this.#load(name))
    this.#loading.set(name, load)
    try {
      return await load
    } finally {
      if (this.#loading.get(name) === load) this.#loading.delete(name)
    }
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#sweeping)
    this.#unsubscribe()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    for (const watcher of this.#watchers.values()) watcher.close()
  }

  #current(): readonly Folder[] {
    this.#sorted ??= [...this.#folders.values()]
      .filter(folder => !folder.removed)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
    return this.#sorted
  }

  #keep(name: string, folder: Folder | undefined): void {
    if (folder) this.#folders.set(name, folder)
    else this.#folders.delete(name)
    this.#sorted = undefined
  }

  async #scan(): Promise<void> {
    const entries = (await this.#files.list('')) ?? []
    const names = entries.filter(entry => entry.type === 'folder' && NAME.test(entry.name)).map(entry => entry.name)
    for (const gone of [...this.#folders.keys(), ...this.#watchers.keys()].filter(
      name => name !== '' && !names.includes(name),
    ))
      this.#forget(gone)
    for (const name of names) {
      if (this.#watchers.has(name)) continue
      // One flat watch for each folder: a deployment may keep a database in it.
      this.#watch(name, () => this.#later(name, () => this.refresh(name)))
      void this.refresh(name).catch(this.#warn)
    }
  }

  async #load(name: string): Promise<Folder | undefined> {
    const texts = await this.#texts(name).catch(unreadable)
    const times = texts && (await this.#times(name, texts.composeFile).catch(() => undefined))
    if (!texts || !times || this.#closed) {
      this.#keep(name, undefined)
      return undefined
    }
    const { composeFile, composeText, envText, metaText, fault } = texts
    const path = join(this.root, name)
    const removed = metaOf(metaText).removed === true
    const read = {
      name,
      path,
      composeFile,
      composeText,
      envText,
      metaText,
      removed,
      revision: revisionOf(texts),
      ...times,
    }
    const folder: Folder = { ...read, ...(fault === null ? await this.#model(read) : { model: null, error: fault }) }
    this.#keep(name, folder)
    return folder
  }

  async #times(name: string, composeFile: string): Promise<Pick<Folder, 'createdAt' | 'updatedAt'>> {
    const { birthtime, mtime } = await stat(join(this.root, name))
    const { mtime: written } = await stat(join(this.root, name, composeFile)).catch(() => ({ mtime }))
    return { createdAt: (birthtime.getTime() > 0 ? birthtime : mtime).toISOString(), updatedAt: written.toISOString() }
  }

  async #texts(name: string): Promise<Texts | undefined> {
    const text = async (file: string) =>
      (await this.#files.read(`${name}/${file}`, { max: MAX_FILE_BYTES }))?.content.toString() ?? null
    for (const composeFile of composeFileNames) {
      const composeText = await text(composeFile)
      if (composeText === null) continue
      return { composeFile, composeText, envText: await text('.env'), metaText: await text(META_FILE), fault: null }
    }
    return undefined
  }

  async #model(
    read: Pick<Folder, 'name' | 'path' | 'composeText' | 'removed'>,
  ): Promise<Pick<Folder, 'model' | 'error'>> {
    this.#unsure.delete(read.name)
    if (read.removed) return { model: null, error: null }
    if (Buffer.byteLength(read.composeText) > MAX_COMPOSE_BYTES)
      return { model: null, error: 'The compose file is larger than 256 KiB.' }
    try {
      return { model: await this.#compose.model(read.path), error: null }
    } catch (thrown) {
      const { code, message } = asFailure(thrown)
      // Not the fault of the file: Compose is missing, or was too slow. It is asked again.
      if (code !== 'COMPOSE_INVALID') this.#unsure.add(read.name)
      return { model: null, error: message }
    }
  }

  async #isCurrent(folder: Folder): Promise<boolean> {
    if (this.#unsure.has(folder.name)) return false
    const texts = await this.#texts(folder.name).catch(unreadable)
    return texts !== undefined && revisionOf(texts) === folder.revision
  }

  async #sweep(): Promise<void> {
    await this.#scan().catch(this.#warn)
    for (const folder of this.#folders.values()) {
      if (!this.#closed && !(await this.#isCurrent(folder))) await this.refresh(folder.name).catch(this.#warn)
    }
  }

  #watch(name: string, changed: () => void): void {
    try {
      const watcher = watch(join(this.root, name), changed)
      watcher.on('error', () => this.#forget(name))
      this.#watchers.set(name, watcher)
    } catch (error) {
      this.#isBlind = true
      this.#warn(error)
    }
  }

  #later(name: string, work: () => Promise<unknown>): void {
    clearTimeout(this.#timers.get(name))
    this.#timers.set(
      name,
      setTimeout(() => void work().catch(this.#warn), SETTLE_MS),
    )
  }

  #forget(name: string): void {
    this.#watchers.get(name)?.close()
    this.#watchers.delete(name)
    this.#keep(name, undefined)
    this.#compose.forget(join(this.root, name))
  }
}

interface Texts {
  composeFile: string
  composeText: string
  envText: string | null
  metaText: string | null
  /** Why one of them cannot be read. */
  fault: string | null
}

/** A folder whose files cannot be read is a deployment all the same: it is listed with the reason. */
function unreadable(thrown: unknown): Texts {
  return {
    composeFile: composeFileNames[0],
    composeText: '',
    envText: null,
    metaText: null,
    fault: asFailure(thrown).message,
  }
}

export function metaOf(text: string | null): { removed?: boolean } {
  try {
    const meta: unknown = text === null ? {} : parse(text)
    return meta !== null && typeof meta === 'object' ? (meta as { removed?: boolean }) : {}
  } catch {
    return {}
  }
}

function revisionOf({ composeFile, composeText, envText, metaText, fault }: Texts): string {
  const parts = [fault, composeFile, sha256(composeText), envText && sha256(envText), metaText && sha256(metaText)]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)
}
