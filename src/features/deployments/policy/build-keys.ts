// What building an image may do: only with what lies in the folder, and only under a name of its own.

import { isAbsolute, join, resolve } from 'node:path'
import {
  anything,
  below,
  both,
  each,
  free,
  isMapping,
  keys,
  type Look,
  labels,
  never,
  only,
  type Rule,
  refuse,
  type Table,
  uses,
} from './rules.ts'

/** Other words for a build context than a path: an image, or another service of the file. */
const imageContext = /^docker-image:\/\/[\w.:@/-]+$/

const context: Rule = (value, look) => {
  if (typeof value !== 'string' || !isAbsolute(value)) return refuse(look, NO_FOLDER)
  uses(look, value, 'folder')
  uses(look, join(value, '.dockerignore'), 'file')
}

const additionalContext: Rule = (value, look) => {
  if (typeof value === 'string' && (imageContext.test(value) || isOwnService(value, look))) return
  if (typeof value !== 'string' || !isAbsolute(value)) return refuse(look, NO_FOLDER)
  uses(look, value, 'either')
}

const dockerfile: Rule = (value, look) => {
  if (!isMapping(value) || typeof value.context !== 'string' || typeof value.dockerfile !== 'string') return
  if (/[:#]/.test(value.dockerfile)) return refuse(below(look, 'dockerfile'), NO_FOLDER)
  const file = resolve(value.context, value.dockerfile)
  uses(below(look, 'dockerfile'), file, 'file')
  uses(below(look, 'dockerfile'), `${file}.dockerignore`, 'file')
}

export const buildKeys: Table = {
  context,
  dockerfile: anything, // Relative to the context; looked at below.
  dockerfile_inline: anything,
  additional_contexts: each(additionalContext),
  args: anything,
  labels,
  target: anything,
  tags: anything, // See `builtNames`.
  platforms: anything,
  no_cache: anything,
  pull: anything,
  shm_size: anything,
  secrets: each(keys(free('source target uid gid mode'))),
  // `type=local` and the like read and write anywhere on the machine.
  cache_from: each((value, look) => {
    if (typeof value !== 'string' || !/^[\w.:@/-]+$/.test(value))
      refuse(look, 'is not allowed with this value: name an image')
  }),
  cache_to: never('it writes outside the deployment'),
  network: only(['default', 'none'], 'it opens the network of the machine or of others'),
  ulimits: never('it changes the limits of the builder'),
  extra_hosts: never('it changes what names mean to the builder'),
  isolation: never('it changes how the build is confined'),
  privileged: never('it gives the build every right on the machine'),
  entitlements: never('it gives the build more rights on the machine'),
  ssh: never('it opens keys of the machine to the build'),
}

export const build: Rule = both(keys(buildKeys), dockerfile)

/** The names an image that is built will get. Another name could be one that others run. */
export function builtNames(service: string, look: Look): { key: string; name: string }[] {
  const { image, build } = look.model.services[service] ?? {}
  if (!isMapping(build)) return []
  const tags = Array.isArray(build.tags) ? build.tags.map(String) : []
  return [
    { key: 'image', name: image ?? `${look.model.project}-${service}` },
    ...tags.map((name, index) => ({ key: `build.tags[${index}]`, name })),
  ]
}

const NO_FOLDER = 'is not allowed with this value: build from a folder of the deployment'

function isOwnService(value: string, { model }: Look): boolean {
  const name = /^service:(.+)$/.exec(value)?.[1]
  return name !== undefined && Object.hasOwn(model.services, name)
}
