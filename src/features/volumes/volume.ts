// What a volume is in answers, and what can be asked about volumes: those of the engine that the caller may see.

import type { VolumeEntry } from '../../adapters/container-engine/entries.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { type Actor, requireScope, sees } from '../../core/permission.ts'
import { Nullable, Time, Type } from '../../core/schema.ts'
import { type Belonging, belongings, type DeploymentFolders } from '../deployments/index.ts'

export const Volume = Type.Object({
  name: Type.String(),
  driver: Type.String(),
  mountpoint: Type.String(),
  created_at: Nullable(Time()),
  labels: Type.Record(Type.String(), Type.String()),
  deployment: Nullable(Type.String()),
  in_use_by: Type.Array(Type.String({ description: 'A container, running or not' })),
})

declare module '../../core/operation.ts' {
  interface Readers {
    volumes: VolumeReader
  }
}

export interface VolumeParts {
  mirror: EngineMirror
  folders: DeploymentFolders
}

export type VolumeReader = ReturnType<typeof volumeReader>

export function volumeReader({ mirror, folders }: VolumeParts, { actor }: Viewer) {
  const usersOf = (name: string) =>
    [...mirror.containers.values()].filter(({ mounts }) => mounts.some(mount => mount.name === name))
  const shown = (volume: VolumeEntry, belonging: Belonging) => ({
    name: volume.name,
    driver: volume.driver,
    mountpoint: volume.mountpoint,
    created_at: volume.createdAt,
    labels: { ...volume.labels },
    deployment: belonging.ofLabels(volume.labels),
    in_use_by: usersOf(volume.name)
      .filter(one => sees(actor, belonging.ofContainer(one)))
      .map(({ name }) => name)
      .sort(),
  })

  return {
    async list() {
      const belonging = await belongings(folders, mirror)
      return [...mirror.volumes.values()]
        .filter(({ labels }) => sees(actor, belonging.ofLabels(labels)))
        .map(volume => shown(volume, belonging))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
    },

    async detail(name: string) {
      const belonging = await belongings(folders, mirror)
      return shown(mirror.volumes.get(name) ?? notFound('volume', name), belonging)
    },

    async deploymentOf(name: string): Promise<string | null> {
      const belonging = await belongings(folders, mirror)
      return belonging.ofLabels(mirror.volumes.get(name)?.labels ?? {})
    },

    /** Free to be taken: neither there, nor the name of one that a deployment makes for itself when it starts. */
    async requireFree(name: string): Promise<void> {
      const belonging = await belongings(folders, mirror)
      if (mirror.volumes.has(name)) fail('ALREADY_EXISTS', `There is a volume "${name}" already. Choose another name.`)
      if (belonging.referringTo('volume', name).some(({ external }) => !external)) {
        fail(
          'CONFLICT',
          `"${name}" is the name of a volume that a deployment makes when it starts. Choose another name.`,
        )
      }
    },

    /** Its data goes for good: on a volume of a deployment that needs level admin there, and nothing may use it. */
    async requireRemovable(name: string): Promise<void> {
      const belonging = await belongings(folders, mirror)
      const volume = mirror.volumes.get(name)
      const deployment = volume ? belonging.ofLabels(volume.labels) : null
      if (!volume || !sees(actor, deployment)) notFound('volume', name)
      if (deployment !== null) requireScope(actor, [{ deployment, level: 'admin' }])
      const users = usersOf(name)
      if (users.length > 0) {
        const { in_use_by } = shown(volume as VolumeEntry, belonging)
        const words = in_use_by.length > 0 ? in_use_by.join(', ') : 'a container of another deployment'
        fail('IN_USE', `Volume "${name}" is in use by ${words}. Remove that first.`, in_use_by)
      }
      requireUnreferenced(actor, belonging, name)
    },
  }
}

/** A volume that a deployment did not make, but was told to use, is not ours to take away under it. */
function requireUnreferenced(actor: Actor, belonging: Belonging, name: string): void {
  const external = belonging.referringTo('volume', name).filter(one => one.external)
  if (external.length === 0) return
  const known = external.map(one => one.deployment).filter(deployment => sees(actor, deployment))
  const words = known.length > 0 ? known.join(', ') : 'another deployment'
  fail('IN_USE', `The compose file of ${words} uses volume "${name}". Change that first.`, known)
}
