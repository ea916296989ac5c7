// Pass two: the model that Compose has interpolated and normalised, so that every spelling has become the same one.

import { join } from 'node:path'
import type { ComposeModel, ComposeResource } from '../../../adapters/compose/model.ts'
import { composeFileNames } from '../../../adapters/compose/reads.ts'
import { META_FILE } from '../folders.ts'
import { builtNames } from './build-keys.ts'
import { locate, OUTSIDE, type PolicyFolder, type RealFolder, realFolder } from './inside.ts'
import { containerNamesOf, type Owners } from './owners.ts'
import { overrideFileNames, type RawRead } from './raw-pass.ts'
import { type Refusal, refuseAll } from './refusal.ts'
import { configKeys, networkKeys, secretKeys, volumeKeys } from './resource-keys.ts'
import { below, keys, type Look, refuse, type UsedPath } from './rules.ts'
import { serviceKeys } from './service-keys.ts'
import { BELOW_WRITABLE, isBelowAny, isReachedBy, STEERED } from './written.ts'

export interface ModelContext {
  /** The name the project has to have: that of the deployment, or what an administrator has given it. */
  project: string
  folder: PolicyFolder
  owners: Owners
  /** What the first pass found that Compose reads. */
  reads: readonly RawRead[]
}

/** Refuses with `COMPOSE_INVALID`, naming every service and key that is not known to stay inside the deployment. */
export async function refuseModel(model: ComposeModel, context: ModelContext): Promise<void> {
  const look: Look = { service: null, key: '', model, refusals: [], paths: [] }
  if (model.project !== context.project)
    refuse(below(look, 'name'), `is not allowed: the project has to be called "${context.project}"; leave it out`)
  for (const [name, service] of Object.entries(model.services)) {
    keys(serviceKeys)(service, { ...look, service: name })
    refuseForeignContainer(name, look, context)
    refuseForeignImage(name, look, context)
  }
  for (const [part, table] of resourceTables)
    for (const [name, one] of Object.entries(model[part])) keys(table)(one, below(below(look, part), name))
  for (const part of ['networks', 'volumes'] as const)
    for (const [name, one] of Object.entries(model[part]))
      refuseForeignResource(part, one, below(below(look, part), name), context)
  await refusePaths(look, await realFolder(context.folder), context.reads)
  refuseAll(look.refusals)
}

const resourceTables = [
  ['networks', networkKeys],
  ['volumes', volumeKeys],
  ['configs', configKeys],
  ['secrets', secretKeys],
] as const

/** Compose only warns when a volume or network of that name was made by another project, and uses it. */
function refuseForeignResource(
  part: 'networks' | 'volumes',
  resource: ComposeResource | null,
  look: Look,
  { owners }: ModelContext,
): void {
  const { project } = look.model
  const name = resource?.name ?? `${project}_${look.key.slice(part.length + 1)}`
  const owner = part === 'networks' ? owners.network(name) : owners.volume(name)
  if (owner === project) return
  if (resource?.external) refuse(below(look, 'external'), `is not allowed: it is none of this deployment’s ${part}`)
  else if (owner !== undefined) refuse(below(look, 'name'), 'is taken outside this deployment: choose another')
  else if (!isOwnName(name, project))
    refuse(below(look, 'name'), `has to begin with "${project}_": names of others are not allowed`)
}

const isOwnName = (name: string, project: string): boolean =>
  name.startsWith(`${project}_`) || name.startsWith(`${project}-`)

function refuseForeignContainer(service: string, look: Look, { owners }: ModelContext): void {
  const foreign = containerNamesOf(look.model, service).some(name => {
    const owner = owners.container(name)
    return owner !== undefined && owner !== look.model.project
  })
  if (foreign)
    refuse({ ...look, service, key: 'container_name' }, 'is taken outside this deployment: choose another name')
}

/** An image is known to the whole machine by its name: who may build "postgres" decides what others run. */
function refuseForeignImage(service: string, look: Look, { owners }: ModelContext): void {
  const { project } = look.model
  for (const { key, name } of builtNames(service, look)) {
    const bare = name.replace(/^localhost\//, '')
    const isOwn = isOwnName(bare, project) && /^[\w.-]+(?::[\w.-]+)?$/.test(bare)
    if (isOwn && owners.image(name) === undefined) continue
    refuse(
      { ...look, service, key },
      isOwn
        ? 'is the name of an image that another deployment runs: choose another'
        : `has to begin with "${project}-" when it is built here: leave it out, or choose such a name`,
    )
  }
}

/** Follows every path of the model, and looks whether containers can write where paths are followed later. */
async function refusePaths(look: Look, folder: RealFolder, reads: readonly RawRead[]): Promise<void> {
  const located = await Promise.all(look.paths.map(one => locate(folder, one.path, one.expects)))
  const places: { use: UsedPath; real: string }[] = []
  for (const [index, use] of look.paths.entries()) {
    const place = located[index]
    if (place?.real !== undefined) places.push({ use, real: place.real })
    else look.refusals.push(refusalAt(use, place?.refused ?? OUTSIDE))
  }
  const writable = places.filter(({ use }) => use.writable)
  const steering = [...reads.filter(one => one.steers).map(one => one.real), ...steeringFiles(folder.root)]
  for (const { use, real } of writable)
    if (steering.some(file => isReachedBy(file, [real]))) look.refusals.push(refusalAt(use, STEERED))
  const written = [...writable.map(({ real }) => real), ...folder.written]
  for (const { use, real } of [...places, ...reads.map(one => ({ use: one, real: one.real }))])
    if (isBelowAny(real, written)) look.refusals.push(refusalAt(use, BELOW_WRITABLE))
}

const refusalAt = ({ service, key }: Pick<UsedPath, 'service' | 'key'>, message: string): Refusal => ({
  service,
  key,
  message,
})

/** What decides about the deployment in its folder, there or not: Compose’s files, the variables, and what we keep. */
const steeringFiles = (root: string): string[] =>
  ['.env', META_FILE, ...composeFileNames, ...overrideFileNames].map(name => join(root, name))
