// The list of deployments, which everything asks for all the time: a row is made once and kept while nothing of it changes.

import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import type { Actor } from '../../core/permission.ts'
import type { Folder } from './folders.ts'
import { isMadeIn } from './made-in.ts'
import { type EngineView, type Observed, observe } from './observe.ts'

/** So many different sets of visible deployments are kept ready. */
const VIEWS = 100

export class Overview {
  readonly engine: EngineView
  readonly #mirror: EngineMirror
  readonly #deploying: ReadonlySet<string>
  readonly #rows = new Map<string, Row>()
  readonly #views = new Map<string, View>()
  readonly #keys = new WeakMap<object, string>()
  #folders: readonly Folder[] = []
  #seen = ''
  #namesakes: Namesakes = new Map()
  #version = 0

  constructor(mirror: EngineMirror, deploying: ReadonlySet<string>) {
    this.#mirror = mirror
    this.engine = engineView(mirror)
    this.#deploying = deploying
  }

  /** What this actor sees of these folders: the very same list as long as it says the same. */
  of(folders: readonly Folder[], { deployments }: Pick<Actor, 'deployments'>): readonly Listed[] {
    this.#update(folders)
    const key = deployments === 'all' ? '*' : this.#keyOf(deployments)
    const known = this.#views.get(key)
    if (known?.version === this.#version) return known.list
    const visible = folders.filter(({ name }) => deployments === 'all' || deployments.has(name))
    const list = Object.freeze(visible.map(({ name }) => (this.#rows.get(name) as Row).listed))
    if (this.#views.size >= VIEWS) this.#views.clear()
    this.#views.set(key, { version: this.#version, list })
    return list
  }

  /** The deployments of an actor are the same map until something is written. */
  #keyOf(deployments: ReadonlyMap<string, unknown>): string {
    const known = this.#keys.get(deployments)
    if (known !== undefined) return known
    const key = [...deployments.keys()].sort().join()
    this.#keys.set(deployments, key)
    return key
  }

  /** Folders, containers and lists of containers are never changed, only replaced: to compare them is to look. */
  #update(folders: readonly Folder[]): void {
    const seen = `${this.#mirror.version} ${[...this.#deploying]}`
    if (folders === this.#folders && seen === this.#seen) return
    if (folders !== this.#folders) this.#take(folders)
    this.#seen = seen
    const { up } = this.engine
    for (const folder of folders) {
      const { name, model } = folder
      const row = this.#rows.get(name)
      const containers = model ? this.#mirror.project(model.project) : none
      const deploying = this.#deploying.has(name)
      const namesake = this.#namesakes.get(name)
      if (
        row?.folder === folder &&
        row.containers === containers &&
        row.namesake === namesake &&
        row.deploying === deploying &&
        row.up === up
      )
        continue
      const observed = withNamesake(observe(folder, this.engine, deploying), this.#namesakes)
      this.#rows.set(name, { folder, containers, namesake, deploying, up, listed: Object.freeze(listed(observed)) })
      this.#version++
    }
  }

  #take(folders: readonly Folder[]): void {
    this.#folders = folders
    this.#namesakes = namesakes(folders)
    const names = new Set(folders.map(({ name }) => name))
    for (const name of this.#rows.keys()) if (!names.has(name)) this.#rows.delete(name)
    this.#version++
  }
}

export type Listed = ReturnType<typeof listed>

export function listed({ folder, status, services }: Observed) {
  return {
    name: folder.name,
    path: folder.path,
    status,
    created_at: folder.createdAt,
    updated_at: folder.updatedAt,
    revision: folder.revision,
    services: services.map(({ name, status, health }) => ({ name, status, health })),
    domains: [] as string[],
  }
}

function engineView(mirror: EngineMirror): EngineView {
  return {
    get up() {
      return mirror.state === 'up'
    },
    containers: (project, path) => mirror.project(project).filter(one => isMadeIn(one, path)),
    imageOf: mirror.imageOf,
  }
}

/** By the name of a folder, another one that gives the same project name. */
export type Namesakes = ReadonlyMap<string, string>

export function namesakes(folders: readonly Folder[]): Namesakes {
  const found = new Map<string, string>()
  const firsts = new Map<string, string>()
  for (const { name, model } of folders) {
    if (!model) continue
    const first = firsts.get(model.project)
    if (first === undefined) firsts.set(model.project, name)
    else found.set(name, first).set(first, found.get(first) ?? name)
  }
  return found
}

/** Two folders that give one project name would fight over its containers. */
export function withNamesake(observed: Observed, all: Namesakes): Observed {
  const { folder } = observed
  const other = all.get(folder.name)
  if (!folder.model || other === undefined) return observed
  const error = `The folders ${folder.name} and ${other} both give the project name "${folder.model.project}". Change \`name\` in one of them.`
  return { ...observed, status: 'invalid', folder: { ...folder, model: null, error } }
}

interface Row {
  folder: Folder
  containers: readonly ContainerEntry[]
  namesake: string | undefined
  deploying: boolean
  up: boolean
  listed: Listed
}

interface View {
  version: number
  list: readonly Listed[]
}

const none: readonly ContainerEntry[] = []
