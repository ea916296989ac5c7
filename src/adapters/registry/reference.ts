// The name of an image taken apart, and the registry it comes from.

export interface Reference {
  /** Host, with its port when it has one; `docker.io` when the name has none. */
  registry: string
  path: string
  tag: string | null
  digest: string | null
}

/** Undefined for what no engine would take. */
export function parseReference(text: string): Reference | undefined {
  if (text.length === 0 || text.length > 500) return undefined
  const [named = '', digest, ...more] = text.split('@')
  const slash = named.indexOf('/')
  const first = slash < 0 ? '' : named.slice(0, slash)
  const hasHost = /[.:[\]A-Z]/.test(first) || first === 'localhost'
  const rest = hasHost ? named.slice(slash + 1) : named
  const [path = '', tag, ...extra] = rest.split(':')
  const fits =
    more.length === 0 &&
    extra.length === 0 &&
    (!hasHost || HOST.test(first)) &&
    path.split('/').every(isPathPart) &&
    (tag === undefined || /^\w[\w.-]{0,127}$/.test(tag)) &&
    (digest === undefined || /^sha256:[0-9a-f]{64}$/.test(digest))
  if (!fits) return undefined
  return { registry: hasHost ? commonHost(first) : DOCKER_HUB, path, tag: tag ?? null, digest: digest ?? null }
}

export const registryOf = (image: string): string => parseReference(image)?.registry ?? DOCKER_HUB

export const DOCKER_HUB = 'docker.io'

/** Docker Hub has several names. */
export function commonHost(host: string): string {
  const plain = host.toLowerCase()
  return /^(index\.|registry-1\.|registry\.|hub\.)?docker\.(io|com)$/.test(plain) ? DOCKER_HUB : plain
}

const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/

/** Letters and digits in groups, parted by a dot, one or two underscores, or dashes. */
function isPathPart(part: string): boolean {
  return (
    /^[a-z0-9]/.test(part) &&
    /[a-z0-9]$/.test(part) &&
    /^[a-z0-9._-]+$/.test(part) &&
    !/\.\.|___|[._]-|-[._]|\._|_\./.test(part)
  )
}
