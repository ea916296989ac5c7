// What a world holds at one moment (records, files, containers), and what differs between two moments.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { AnyTable } from '../src/core/record.ts'
import type { Database, Row } from '../src/store/database.ts'
import { Vault } from '../src/store/vault.ts'
import type { World } from './walk.ts'

export interface Snapshot {
  /** Every table of the store as it is, by name. */
  tables: Map<string, Row[]>
  /** The records of the areas by their keys, each a `Shown`. */
  records: Things
  /** Files and folders outside the data folder; a folder ends with a slash. */
  files: Things
  /** Containers, networks, volumes and tags of images, each as `type name`. */
  engine: Things
}

export type Things = Map<string, unknown>

/** A record under the name a plan gives it, without what moves by itself. */
export interface Shown {
  name: string
  fields: Record<string, unknown>
}

export interface Difference {
  id: string
  action: 'create' | 'update' | 'delete'
  before: unknown
  after: unknown
}

/** The records that differ, each under the name it had. */
export function recordDifferences(before: Things, after: Things): Difference[] {
  return differences(before, after).map(({ action, ...one }) => {
    const [old, next] = [one.before as Shown | undefined, one.after as Shown | undefined]
    return { action, id: (old ?? (next as Shown)).name, before: old?.fields, after: next?.fields }
  })
}

export async function snapshot(world: World, tables: readonly AnyTable[]): Promise<Snapshot> {
  return {
    tables: allTables(world.db),
    records: records(world, tables),
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

function records({ db, folder }: World, tables: readonly AnyTable[]): Things {
  const vault = new Vault(Buffer.from(readFileSync(join(folder, 'data', 'master.key'), 'utf8'), 'base64'))
  // Sealed twice, the same value does not look the same.
  const opened = (value: unknown) =>
    typeof value === 'string' && value.startsWith('v1:') ? vault.unseal(value) : value
  const moves = (table: AnyTable, column: string) => (table.volatile as string[] | undefined)?.includes(column) ?? false
  return new Map(
    tables.flatMap(table =>
      table.all(db).map((record): [string, Shown] => {
        const kept = Object.entries(record).filter(([column]) => !moves(table, column))
        const stable = kept.map(([column, value]) => [column, opened(value)])
        const key = `${table.name} ${table.key.map(column => record[column]).join(' ')}`
        return [key, { name: `${table.noun} ${table.label(record)}`, fields: Object.fromEntries(stable) }]
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
