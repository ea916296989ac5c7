// What an image is in answers, and what can be asked about images: which are there, and what still needs them.

import type { ContainerEntry, ImageEntry } from '../../adapters/container-engine/entries.ts'
import { familiarName, findImage } from '../../adapters/container-engine/lookup.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { sees } from '../../core/permission.ts'
import { Time, Type } from '../../core/schema.ts'
import { belongings, type DeploymentFolders } from '../deployments/index.ts'

export const Image = Type.Object({
  id: Type.String(),
  tags: Type.Array(Type.String()),
  digests: Type.Array(Type.String()),
  size: Type.Integer(),
  created_at: Time(),
  containers: Type.Integer({ description: 'How many containers were made from it, running or not' }),
})

declare module '../../core/operation.ts' {
  interface Readers {
    images: ImageReader
  }
}

export interface ImageParts {
  mirror: EngineMirror
  folders: DeploymentFolders
}

export type ImageReader = ReturnType<typeof imageReader>

export interface Removal {
  image: ImageEntry
  /** The names that go. When they are all it has, the image goes with them. */
  names: string[]
  /** Words about everything that still needs it; the last resort is never taken from what runs. */
  neededBy: string[]
  runs: boolean
}

export function imageReader({ mirror, folders }: ImageParts, { actor }: Viewer) {
  const madeFrom = (image: ImageEntry): ContainerEntry[] =>
    [...mirror.containers.values()].filter(({ imageId }) => imageId === image.id)
  const shown = (image: ImageEntry) => ({
    id: image.id,
    tags: [...image.tags],
    digests: [...image.digests],
    size: image.size,
    created_at: image.createdAt,
    containers: madeFrom(image).length,
  })

  return {
    async list() {
      await belongings(folders, mirror)
      return [...mirror.images.values()].map(shown).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
    },

    isPresent: async (name: string): Promise<boolean> => {
      await belongings(folders, mirror)
      return findImage(mirror.images, name) !== undefined
    },

    detail: (asked: string) => shown(find(mirror, asked)),

    /** What deleting it would take, and what stands against it. A tag of several is only a name. */
    async removal(asked: string): Promise<Removal> {
      const belonging = await belongings(folders, mirror)
      const image = find(mirror, asked)
      const all = image.tags.length > 0 ? image.tags : image.digests.length > 0 ? image.digests : [image.id]
      const wanted = familiarName(asked)
      const tag = image.tags.find(name => familiarName(name) === wanted)
      const names = tag ? [tag] : [...all]
      const containers = names.length === all.length ? madeFrom(image) : []
      const seen = containers.filter(one => sees(actor, belonging.ofContainer(one)))
      const deployments = new Set(
        names.flatMap(name => belonging.referringTo('image', name).map(one => one.deployment)),
      )
      const known = [...deployments].filter(name => sees(actor, name))
      return {
        image,
        names,
        neededBy: [
          ...named(
            'container',
            seen.map(({ name }) => name),
            containers.length,
          ),
          ...named('deployment', known, deployments.size),
        ],
        runs: containers.some(({ state }) => state === 'running' || state === 'paused' || state === 'restarting'),
      }
    },
  }
}

const nameOf = ({ tags, id }: { tags: string[]; id: string }): string => tags[0] ?? `~${id}`

function find({ images }: EngineMirror, asked: string): ImageEntry {
  const found = findImage(images, asked)
  if (found) return found
  const short = asked.replace(/^sha256:/, '')
  const fitting = /^[0-9a-f]{4,64}$/.test(short)
    ? [...images.values()].filter(({ id }) => id.startsWith(`sha256:${short}`))
    : []
  if (fitting.length > 1) {
    const candidates = fitting.map(({ id, tags }) => ({ id, tags }))
    fail(
      'CONFLICT',
      `"${asked}" begins the ids of ${fitting.length} images. Give more of the id, or a name.`,
      candidates,
    )
  }
  return notFound('image', asked)
}

/** Those the caller may see by name, the others only as a number. */
function named(noun: string, known: readonly string[], count: number): string[] {
  const others = count - known.length
  const list = known.map(name => `${noun} ${name}`)
  return others === 0 ? list : [...list, `${others} ${noun}${others === 1 ? '' : 's'} of others`]
}
