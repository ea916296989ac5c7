// What a world holds at one moment (records, files, containers), and what differs between two moments.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { AnyTable } from '../src/core/record.ts'
import type { Database, Row } from '../src/store/database.ts'
import type { World } from './walk.ts'

export interface Snapshot {
  /** Every table of the store as it is, by name. */
  tables: Map<string, Row[]>
  /** The records of the areas, by what a plan calls them, without what moves by itself. */
  records: Things
  /** Files and folders outside the data folder; a folder ends with a slash. */
  files: Things
  /** Containers, networks, volumes and tags of images, each as `type name`. */
  engine: Things
}

export type Things = Map<string, unknown>

export interface Difference {
  id: string
  action: 'create' | 'update' | 'delete'
  before: unknown
  after: unknown
}

export async function snapshot(world: World, tables: readonly AnyTable[]): Promise<Snapshot> {
  return {
    tables: allTables(world.db),
    records: records(world.db, tables),
    files: files(world.folder),
    engine: await engineThings(world),
  }
}

export function differences(before: Things, after: Things): Difference[] {
  const gone = [...before].filter(([id]) => !after.has(id))
  const changed = [...after].filter(([id, value]) => !isDeepStrictEqual(before.get(id), value))
  return [
    ...gone.map(([id, value]): Difference => ({ id, action: 'delete', before: value, after: undefined })),
    ...changed.map(
      ([id, value]): Difference => ({
        id,
        action: before.has(id) ? 'update' : 'create',
        before: before.get(id),
        after: value,
      }),
    ),
  ]
}

/** The tables of all areas: whatever their `records.ts` exports. */
export async function areaTables(): Promise<AnyTable[]> {
  const features = new URL('../src/features/', import.meta.url)
  const areas = readdirSync(features, { withFileTypes: true }).filter(entry => entry.isDirectory())
  const modules = areas.map(({ name }) => new URL(`${name}/records.ts`, features)).filter(url => existsSync(url))
  const exported = await Promise.all(modules.map(async url => Object.values(await import(url.href)) as unknown[]))
  return exported.flat().filter((one): one is AnyTable => typeof one === 'object' && one !== null && 'noun' in one)
}

function allTables(db: Database): Map<string, Row[]> {
  const names = db.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  )
  return new Map(names.map(({ name }) => [name, db.all<Row>(`SELECT * FROM ${name}`)]))
}

function records(db: Database, tables: readonly AnyTable[]): Things {
  return new Map(
    tables.flatMap(table =>
      table.all(db).map(record => {
        const stable = Object.entries(record).filter(
          ([column]) => !(table.volatile as string[] | undefined)?.includes(column),
        )
        return [`${table.noun} ${table.label(record)}`, Object.fromEntries(stable)] as const
      }),
    ),
  )
}

function files(folder: string): Things {
  const found: Things = new Map()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name).slice(folder.length + 1)
    if (path === 'data' || path.startsWith('data/')) continue
    const { mode } = statSync(join(folder, path))
    if (entry.isDirectory()) found.set(`${path}/`, mode)
    else
      found.set(
        path,
        `${mode} ${createHash('sha256')
          .update(readFileSync(join(folder, path)))
          .digest('hex')}`,
      )
  }
  return found
}

async function engineThings({ engine: { engine, prefix } }: World): Promise<Things> {
  const ours = (name: string) => name.startsWith(prefix)
  const nameOf = (names: readonly string[] | null | undefined) => names?.[0]?.slice(1) ?? ''
  const [containers, networks, volumes, images] = await Promise.all([
    engine.containers.list(),
    engine.networks.list(),
    engine.volumes.list(),
    engine.images.list(),
  ])
  const mine = containers.filter(one => ours(nameOf(one.Names)))
  const inspected = await Promise.all(mine.map(one => engine.containers.inspect(one.Id)))
  const tags = images.flatMap(image => (image.RepoTags ?? []).map(tag => [tag, image.Id] as const))
  return new Map<string, unknown>([
    ...inspected.map(
      one => [`container ${one.Name.slice(1)}`, [one.Id, one.State.Status, one.State.StartedAt]] as const,
    ),
    ...networks.filter(one => ours(one.Name)).map(one => [`network ${one.Name}`, one.Id] as const),
    ...volumes.filter(one => ours(one.Name)).map(one => [`volume ${one.Name}`, one.CreatedAt] as const),
    ...tags
      .filter(([tag]) => ours(tag) || tag.startsWith('fairlead-test/'))
      .map(([tag, id]) => [`image ${tag}`, id] as const),
  ])
}
