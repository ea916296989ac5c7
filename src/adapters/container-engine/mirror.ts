// The one in-memory copy of the engine's containers, images, volumes and networks, kept true by the engine's events.

import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import { coalesce } from './coalesce.ts'
import { isNotFound } from './containers.ts'
import type { Engine } from './engine.ts'
import {
  type ContainerEntry,
  containerEntry,
  containerState,
  type ImageEntry,
  imageEntry,
  listedHealth,
  type NetworkEntry,
  networkEntry,
  type VolumeEntry,
  volumeEntry,
} from './entries.ts'
import type { ContainerSummary, EngineEvent } from './wire.ts'

/** What became different together. A container without `before` is new, one without `after` is gone. */
export type MirrorChange = {
  readonly state: boolean
  readonly containers: readonly { readonly before?: ContainerEntry; readonly after?: ContainerEntry }[]
  readonly images: boolean
  readonly volumes: boolean
  readonly networks: boolean
}

export type MirrorOptions = {
  /** Between looks whether the engine still answers, and how long it may take to. */
  readonly heartbeatMs?: number
  /** Between comparisons with the engine's lists: an engine drops events of a subscriber that was too slow. */
  readonly sweepMs?: number
  readonly longestPauseMs?: number
}

export type EngineMirror = ReturnType<typeof mirrorEngine>

/** Begins at once and never gives up until `close`. While `state` is `down` the maps hold what was last known. */
export function mirrorEngine(engine: Engine, options: MirrorOptions = {}) {
  const mirror = new Mirror(engine, options)
  const finished = mirror.live()
  return {
    get state(): 'up' | 'down' {
      return mirror.reason === null ? 'up' : 'down'
    },
    /** Why it is down; null when it is up. */
    get reason(): string | null {
      return mirror.reason
    },
    /** Another number whenever its state or a container is another. */
    get version(): number {
      return mirror.version
    },
    containers: mirror.containers as ReadonlyMap<string, ContainerEntry>,
    images: mirror.images as ReadonlyMap<string, ImageEntry>,
    volumes: mirror.volumes as ReadonlyMap<string, VolumeEntry>,
    networks: mirror.networks as ReadonlyMap<string, NetworkEntry>,
    /** The containers of a compose project, one-off ones included: the same array as long as none of them changes. */
    project: (name: string): readonly ContainerEntry[] => mirror.projects.get(name) ?? none,
    /** The image that a reference (`nginx`, `nginx:1.29`, a digest or an id) means on this machine. */
    imageOf: (reference: string): ImageEntry | undefined => mirror.imageOf(reference),
    /** Resolves when the first attempt to reach the engine has ended, well or not. */
    ready: mirror.tried.promise,
    /** Makes these containers, or else everything, exact before it resolves; throws when the engine can't be asked. */
    refresh: (ids?: readonly string[]): Promise<void> => mirror.refresh(ids),
    /** The same for all that carries the labels of a compose project. */
    refreshProject: (name: string): Promise<void> => mirror.refreshProject(name),
    refreshImages: (): Promise<void> => mirror.explicitly(() => mirror.touch({ kind: 'images' })),
    refreshVolumes: (): Promise<void> => mirror.explicitly(() => mirror.touch({ kind: 'volumes' })),
    refreshNetworks: (): Promise<void> => mirror.explicitly(() => mirror.touch({ kind: 'networks' })),
    /** The listener is called with what changed, after the maps have it. Returns the way to stop. */
    onChange: (listener: (change: MirrorChange) => void): (() => void) => mirror.subscribe(listener),
    close: (): Promise<void> => {
      mirror.closing.abort(new Failure('ENGINE_UNAVAILABLE', 'The agent is stopping.'))
      return finished
    },
  }
}

type Touched =
  | { readonly kind: 'container' | 'volume' | 'network'; readonly id: string }
  | { readonly kind: 'containers' | 'images' | 'volumes' | 'networks' }

const none: readonly ContainerEntry[] = []
const eventDelayMs = 5
const firstPauseMs = 100

/**
 * What the engine is asked to tell. Not asked for: exec_*, attach, top, kill, mount and the like, which are most of all
 * events. Several of these are Podman's words.
 */
const eventFilters = {
  type: ['container', 'image', 'volume', 'network'],
  event: [
    ...['create', 'start', 'restart', 'die', 'died', 'stop', 'pause', 'unpause', 'rename', 'update', 'oom'],
    ...['destroy', 'remove', 'health_status', 'prune', 'connect', 'disconnect'],
    ...['pull', 'tag', 'untag', 'delete', 'import', 'load', 'loadfromarchive'],
  ],
}

class Mirror {
  readonly containers = new Map<string, ContainerEntry>()
  readonly images = new Map<string, ImageEntry>()
  readonly volumes = new Map<string, VolumeEntry>()
  readonly networks = new Map<string, NetworkEntry>()
  readonly projects = new Map<string, readonly ContainerEntry[]>()
  readonly closing = new AbortController()
  readonly tried = Promise.withResolvers<void>()
  reason: string | null = 'The container engine has not been asked yet.'
  version = 0

  readonly #engine: Engine
  readonly #options: Required<MirrorOptions>
  readonly #listeners = new Set<(change: MirrorChange) => void>()
  readonly #touched = new Set<string>()
  readonly #perform = coalesce<string>(key => this.#reread(JSON.parse(key)))
  /** Made when it is asked for, and dropped when an image changes. */
  #byReference: Map<string, ImageEntry> | undefined
  #news = new News()
  #loading = true
  #timer: NodeJS.Timeout | undefined
  #newsScheduled = false

  constructor(engine: Engine, { heartbeatMs = 10_000, sweepMs = 60_000, longestPauseMs = 2000 }: MirrorOptions) {
    this.#engine = engine
    this.#options = { heartbeatMs, sweepMs, longestPauseMs }
  }

  /** Session after session, with growing pauses between those that failed. */
  async live(): Promise<void> {
    let pause = firstPauseMs
    while (!this.closing.signal.aborted) {
      await this.#session(() => {
        pause = firstPauseMs
        this.tried.resolve()
      }).catch(error => this.#down(error instanceof Error ? error.message : String(error)))
      this.tried.resolve()
      await sleep(pause, undefined, { signal: this.closing.signal }).catch(() => {})
      pause = Math.min(pause * 2, this.#options.longestPauseMs)
    }
    clearTimeout(this.#timer)
  }

  subscribe(listener: (change: MirrorChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  imageOf(reference: string): ImageEntry | undefined {
    this.#byReference ??= new Map(
      [...this.images.values()].flatMap(image =>
        [image.id, ...image.digests, ...image.tags].map(name => [name, image] as const),
      ),
    )
    const isTagged = reference.includes('@') || /:[^/]+$/.test(reference)
    return this.#byReference.get(isTagged ? reference : `${reference}:latest`)
  }

  refresh(ids?: readonly string[]): Promise<void> {
    return this.explicitly(() => (ids ? this.#touchAll(ids) : this.#load(true)))
  }

  refreshProject(name: string): Promise<void> {
    return this.explicitly(async () => {
      const filters = { label: [`com.docker.compose.project=${name}`] }
      const [containers] = await Promise.all([
        this.#engine.containers.list(filters),
        this.touch({ kind: 'networks' }),
        this.touch({ kind: 'volumes' }),
      ])
      const known = this.projects.get(name) ?? none
      await this.#touchAll(new Set([...containers.map(({ Id }) => Id), ...known.map(({ id }) => id)]))
    })
  }

  async explicitly(work: () => Promise<unknown>): Promise<void> {
    if (this.reason !== null) throw new Failure('ENGINE_UNAVAILABLE', this.reason)
    await work()
    this.#tell()
  }

  touch(touched: Touched): Promise<void> {
    return this.#perform(JSON.stringify(touched))
  }

  async #touchAll(ids: Iterable<string>): Promise<void> {
    await Promise.all([...ids].map(id => this.touch({ kind: 'container', id })))
  }

  /** Subscribes first and lists then, so that nothing is missed between; ends, by throwing, when the engine is lost. */
  async #session(succeeded: () => void): Promise<void> {
    const session = new AbortController()
    const signal = AbortSignal.any([session.signal, this.closing.signal])
    this.#loading = true
    try {
      this.#engine.renegotiate()
      const now = await this.#engine.ping({ signal })
      // The engine subscribes us a moment after it has answered: events of that moment come from its memory.
      const since = new Date(now.getTime() - 2000)
      const events = await this.#engine.events({ filters: eventFilters, since, signal })
      const lost = this.#listen(events)
      lost.catch(() => {})
      await Promise.race([this.#load(true), lost])
      this.#up()
      succeeded()
      await Promise.race([lost, this.#watch(signal)])
    } finally {
      session.abort()
    }
  }

  async #listen(events: AsyncIterable<EngineEvent>): Promise<never> {
    for await (const event of events) for (const touched of touchedBy(event)) this.#dirty(JSON.stringify(touched))
    throw new Failure('ENGINE_UNAVAILABLE', `The container engine at ${this.#engine.address} closed the connection.`)
  }

  /** A start is several events within a moment: they are answered together. */
  #dirty(key: string): void {
    this.#touched.add(key)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const keys = [...this.#touched]
      this.#touched.clear()
      for (const each of keys) this.#perform(each).catch(() => this.#later(each))
    }, eventDelayMs)
  }

  /** An engine that is busy with a container may be late once; a lost connection reads everything anew anyway. */
  #later(key: string): void {
    if (this.reason !== null || this.closing.signal.aborted) return
    setTimeout(() => this.#dirty(key), 1000).unref()
  }

  async #watch(signal: AbortSignal): Promise<never> {
    let swept = performance.now()
    for (;;) {
      await sleep(this.#options.heartbeatMs, undefined, { signal })
      await this.#engine.ping({ signal, deadlineMs: this.#options.heartbeatMs })
      if (performance.now() - swept < this.#options.sweepMs) continue
      await this.#load(false)
      swept = performance.now()
    }
  }

  /** Reads the lists, and each container that is new, gone or looks different; `all`: each container. */
  async #load(all: boolean): Promise<void> {
    const before = [...this.containers.keys()]
    const [listed] = await Promise.all([
      this.#engine.containers.list(),
      this.touch({ kind: 'images' }),
      this.touch({ kind: 'volumes' }),
      this.touch({ kind: 'networks' }),
    ])
    const present = new Set(listed.map(({ Id }) => Id))
    const gone = before.filter(id => !present.has(id))
    const different = listed.filter(summary => all || !looksLike(summary, this.containers.get(summary.Id)))
    await this.#touchAll([...gone, ...different.map(({ Id }) => Id)])
  }

  #reread(touched: Touched): Promise<void> {
    switch (touched.kind) {
      case 'container':
        return this.#rereadContainer(touched.id)
      case 'volume':
        return this.#rereadOne(this.volumes, 'volumes', touched.id, async id =>
          volumeEntry(await this.#engine.volumes.inspect(id)),
        )
      case 'network':
        return this.#rereadOne(this.networks, 'networks', touched.id, async id =>
          networkEntry(await this.#engine.networks.inspect(id)),
        )
      case 'containers':
        return this.#load(false)
      case 'images':
        return this.#rereadList(
          this.images,
          'images',
          async () => (await this.#engine.images.list()).map(imageEntry),
          ({ id }) => id,
        )
      case 'volumes':
        return this.#rereadList(
          this.volumes,
          'volumes',
          async () => (await this.#engine.volumes.list()).map(volumeEntry),
          ({ name }) => name,
        )
      case 'networks':
        return this.#rereadList(
          this.networks,
          'networks',
          async () => (await this.#engine.networks.list()).map(networkEntry),
          ({ id }) => id,
        )
    }
  }

  async #rereadContainer(asked: string): Promise<void> {
    const inspect = await this.#engine.containers.inspect(asked).catch(absent)
    const after = inspect && containerEntry(inspect)
    const id = after?.id ?? asked
    const before = this.containers.get(id)
    if (isSame(before, after)) return
    if (after) this.containers.set(id, after)
    else this.containers.delete(id)
    this.#index(before, after)
    this.version++
    this.#news.container(id, before, after)
    this.#tellSoon()
  }

  #index(before: ContainerEntry | undefined, after: ContainerEntry | undefined): void {
    const project = (after ?? before)?.compose?.project
    if (project === undefined) return
    const known = this.projects.get(project) ?? none
    const siblings = after && !before ? [...known, after] : known.flatMap(one => (one === before ? (after ?? []) : one))
    if (siblings.length > 0) this.projects.set(project, siblings)
    else this.projects.delete(project)
  }

  async #rereadOne<T>(
    map: Map<string, T>,
    kind: ListKind,
    id: string,
    read: (id: string) => Promise<T>,
  ): Promise<void> {
    const after = await read(id).catch(absent)
    if (isSame(map.get(id), after)) return
    if (after) map.set(id, after)
    else map.delete(id)
    this.#changed(kind)
  }

  async #rereadList<T>(
    map: Map<string, T>,
    kind: ListKind,
    read: () => Promise<T[]>,
    keyOf: (entry: T) => string,
  ): Promise<void> {
    const after = new Map((await read()).map(entry => [keyOf(entry), entry]))
    let different = false
    for (const key of map.keys()) if (!after.has(key)) different = map.delete(key)
    for (const [key, entry] of after) {
      if (isSame(map.get(key), entry)) continue
      map.set(key, entry)
      different = true
    }
    if (different) this.#changed(kind)
  }

  #changed(kind: ListKind): void {
    if (kind === 'images') this.#byReference = undefined
    this.#news[kind] = true
    this.#tellSoon()
  }

  #up(): void {
    this.#loading = false
    this.reason = null
    this.version++
    this.#news.state = true
    this.#tell()
  }

  #down(reason: string): void {
    this.#loading = false
    if (this.reason === reason) return
    this.reason = reason
    this.version++
    this.#news.state = true
    this.#tell()
  }

  #tellSoon(): void {
    if (this.#loading || this.#newsScheduled) return
    this.#newsScheduled = true
    setImmediate(() => {
      this.#newsScheduled = false
      this.#tell()
    })
  }

  #tell(): void {
    if (this.#news.empty || this.closing.signal.aborted) return
    const change = this.#news.take()
    this.#news = new News()
    for (const listener of this.#listeners) listener(change)
  }
}

type ListKind = 'images' | 'volumes' | 'networks'

/** What happened since the listeners were last told. */
class News {
  state = false
  images = false
  volumes = false
  networks = false
  readonly #containers = new Map<string, { before: ContainerEntry | undefined; after: ContainerEntry | undefined }>()

  get empty(): boolean {
    return !(this.state || this.images || this.volumes || this.networks || this.#containers.size)
  }

  container(id: string, before: ContainerEntry | undefined, after: ContainerEntry | undefined): void {
    this.#containers.set(id, { before: this.#containers.has(id) ? this.#containers.get(id)?.before : before, after })
  }

  take(): MirrorChange {
    const containers = [...this.#containers.values()].map(({ before, after }) => ({
      ...(before ? { before } : {}),
      ...(after ? { after } : {}),
    }))
    return { state: this.state, containers, images: this.images, volumes: this.volumes, networks: this.networks }
  }
}

function touchedBy({ Type, Action, Actor }: EngineEvent): Touched[] {
  const container = Actor.Attributes?.container
  switch (Type) {
    case 'container':
      return Action === 'prune' ? [{ kind: 'containers' }] : [{ kind: 'container', id: Actor.ID }]
    case 'network':
      if (container && /connect$/.test(Action)) return [{ kind: 'container', id: container }]
      return Action === 'prune' ? [{ kind: 'networks' }] : [{ kind: 'network', id: Actor.ID }]
    case 'volume':
      return Action === 'prune' ? [{ kind: 'volumes' }] : [{ kind: 'volume', id: Actor.ID }]
    case 'image':
      return [{ kind: 'images' }]
    default:
      return []
  }
}

function looksLike({ State, Status, Names }: ContainerSummary, entry: ContainerEntry | undefined): boolean {
  if (!entry || containerState(State) !== entry.state) return false
  if (entry.state === 'running' && listedHealth(Status) !== entry.health) return false
  return (Names ?? []).includes(`/${entry.name}`)
}

const isSame = (before: unknown, after: unknown): boolean => JSON.stringify(before) === JSON.stringify(after)

function absent(error: unknown): undefined {
  if (isNotFound(error)) return undefined
  throw error
}
