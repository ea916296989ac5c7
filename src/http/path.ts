// Paths of requests against the paths of operations, for what the router itself does not tell.

import type { Operation } from '../core/operation.ts'

export function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

/** The parameters of a path that fits the pattern (`/api/users/:id`), or undefined. */
export function pathMatch(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index] as string
    if (!part.startsWith(':')) {
      if (part !== value) return undefined
    } else if (value === '') return undefined
    else params[part.slice(1)] = decoded(value)
  }
  return params
}

/** Every path there is, with the methods it answers to. */
export class KnownPaths {
  readonly #methods = new Map<string, string[]>()

  constructor(operations: readonly Operation[]) {
    for (const { http } of operations) {
      const methods = this.#methods.get(http.path) ?? []
      methods.push(http.method, ...(http.also ?? []), ...(http.method === 'GET' ? ['HEAD'] : []))
      this.#methods.set(http.path, methods)
    }
  }

  /** A path that is spelled out goes before one with parameters. */
  methodsOf(path: string): readonly string[] | undefined {
    const fitting = [...this.#methods.keys()].filter(pattern => pathMatch(pattern, path))
    const [closest] = fitting.sort((a, b) => a.split(':').length - b.split(':').length)
    return closest === undefined ? undefined : this.#methods.get(closest)
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
