// Which deployment a container, volume or network of the engine belongs to, and what the compose files refer to by name.

import type { ComposeModel, ComposeResource } from '../../adapters/compose/model.ts'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import { familiarName } from '../../adapters/container-engine/lookup.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import { fail } from '../../core/failure.ts'
import type { DeploymentFolders, Folder } from './folders.ts'

export interface Belonging {
  ofContainer(container: Pick<ContainerEntry, 'compose'>): string | null
  /** Volumes and networks carry only the name of their project. */
  ofLabels(labels: Readonly<Record<string, string>>): string | null
  /** The deployments whose compose files name it, whether they run or not. */
  referringTo(type: 'image' | 'volume' | 'network', name: string): Reference[]
}

export interface Reference {
  deployment: string
  /** Not made by the deployment itself, only used. */
  external: boolean
}

/** Refuses while the engine is away: what was last known could be wrong about everything. */
export async function belongings(
  folders: Pick<DeploymentFolders, 'all'>,
  mirror: Pick<EngineMirror, 'ready' | 'state' | 'reason' | 'containers'>,
): Promise<Belonging> {
  await mirror.ready
  if (mirror.state === 'down') fail('ENGINE_UNAVAILABLE', mirror.reason ?? 'The container engine does not answer.')
  return belongingTo(await folders.all(), mirror.containers.values())
}

export function belongingTo(folders: readonly Folder[], containers: Iterable<ContainerEntry>): Belonging {
  const byPath = new Map(folders.map(folder => [folder.path, folder.name]))
  const projects = projectsOf(folders, byPath, containers)
  return {
    ofContainer({ compose }) {
      if (!compose) return null
      const names = projects.get(compose.project) ?? []
      const here = byPath.get(compose.workingDir)
      return here !== undefined && (names.length === 0 || names.includes(here)) ? here : (names[0] ?? null)
    },
    ofLabels: labels => projects.get(labels['com.docker.compose.project'] ?? '')?.[0] ?? null,
    referringTo: (type, name) =>
      folders.flatMap(({ name: deployment, model }) =>
        model ? namesIn(model, type, name).map(external => ({ deployment, external })) : [],
      ),
  }
}

/** A folder whose file is broken keeps what it had: its project is what its containers say, or its own name. */
function projectsOf(
  folders: readonly Folder[],
  byPath: ReadonlyMap<string, string>,
  containers: Iterable<ContainerEntry>,
): Map<string, string[]> {
  const projects = new Map<string, string[]>()
  for (const { name, model } of folders) {
    if (model) projects.set(model.project, [...(projects.get(model.project) ?? []), name])
  }
  const broken = new Set(folders.filter(({ model }) => !model).map(({ name }) => name))
  for (const { compose } of broken.size > 0 ? containers : []) {
    const name = compose && byPath.get(compose.workingDir)
    if (name && broken.has(name) && !projects.has(compose.project)) projects.set(compose.project, [name])
  }
  for (const name of broken) if (!projects.has(name)) projects.set(name, [name])
  return projects
}

function namesIn(model: ComposeModel, type: 'image' | 'volume' | 'network', wanted: string): boolean[] {
  if (type === 'image') {
    const images = Object.entries(model.services).map(([name, { image }]) => image ?? `${model.project}-${name}`)
    return images.some(image => familiarName(image) === familiarName(wanted)) ? [true] : []
  }
  const resources = type === 'volume' ? model.volumes : model.networks
  const nameOf = ([key, { name }]: [string, ComposeResource]) => name ?? `${model.project}_${key}`
  const found = Object.entries(resources).find(entry => nameOf(entry) === wanted)
  return found ? [found[1].external === true] : []
}
