// Finds a container or an image by what a person would call it: a name, a full id, or a short id that only one has.

import type { ContainerEntry, ImageEntry } from './entries.ts'
import { splitReference } from './images.ts'

export function findContainer(
  containers: ReadonlyMap<string, ContainerEntry>,
  asked: string,
): ContainerEntry | undefined {
  const exact = containers.get(asked)
  if (exact) return exact
  for (const entry of containers.values()) if (entry.name === asked) return entry
  return onlyOne(containers.values(), entry => isShortId(asked) && entry.id.startsWith(asked))
}

export function findImage(images: ReadonlyMap<string, ImageEntry>, asked: string): ImageEntry | undefined {
  const exact = images.get(asked) ?? images.get(`sha256:${asked}`)
  if (exact) return exact
  const wanted = familiarName(asked)
  for (const entry of images.values()) {
    if ([...entry.tags, ...entry.digests].some(name => familiarName(name) === wanted)) return entry
  }
  const short = asked.replace(/^sha256:/, '')
  return onlyOne(images.values(), entry => isShortId(short) && entry.id.startsWith(`sha256:${short}`))
}

/** One spelling per image: `docker.io/library/redis` and `redis:latest` are the same. */
export function familiarName(reference: string): string {
  const { repository, tag } = splitReference(reference)
  const short = repository.replace(/^(?:index\.)?docker\.io\//, '').replace(/^library\//, '')
  return tag.includes(':') ? `${short}@${tag}` : `${short}:${tag}`
}

const isShortId = (text: string): boolean => /^[0-9a-f]{4,64}$/.test(text)

function onlyOne<T>(entries: Iterable<T>, matches: (entry: T) => boolean): T | undefined {
  const found = [...entries].filter(matches)
  return found.length === 1 ? found[0] : undefined
}
