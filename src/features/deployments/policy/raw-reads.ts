// Which files a raw compose file tells Compose to read: every place of the specification that names one.

import { buildKeys } from './build-keys.ts'
import type { Expects } from './inside.ts'
import { type Pair, type RawYaml, UnreadableText } from './raw-yaml.ts'
import type { Refusal } from './refusal.ts'
import { networkKeys, secretKeys, volumeKeys } from './resource-keys.ts'
import { type Table, UNKNOWN_FORM, UNKNOWN_KEY } from './rules.ts'
import { serviceKeys } from './service-keys.ts'

interface At {
  service: string | null
  key: string
}

/** A path as it is written, from where the file lies; a Dockerfile from its build context. */
export interface NamedPath extends At {
  role: 'data' | 'extends'
  text: string
  expects: Expects
  from?: readonly string[]
}

/** Another compose file with a folder and variables of its own. */
export interface NamedInclude extends At {
  role: 'include'
  paths: readonly string[]
  folders: readonly string[]
  envFiles: readonly string[]
}

export interface Named {
  named: (NamedPath | NamedInclude)[]
  /** Keys and forms that nobody knows: they could name a file as well. */
  refusals: Refusal[]
}

export function namedIn(yaml: RawYaml): Named {
  const search = new Search(yaml)
  search.root()
  return search.found
}

class Search {
  readonly found: Named = { named: [], refusals: [] }
  readonly #yaml: RawYaml

  constructor(yaml: RawYaml) {
    this.#yaml = yaml
  }

  root(): void {
    const { root } = this.#yaml
    if (this.#yaml.isNull(root)) return
    const pairs = this.#yaml.pairs(root)
    if (!pairs) throw new UnreadableText('is no mapping')
    for (const [key, value] of pairs) {
      const at = { service: null, key }
      if (key === 'services') this.#services(value, at)
      else if (key === 'include') for (const entry of this.#yaml.items(value)) this.#include(entry, at)
      else if (key === 'configs' || key === 'secrets') this.#files(value, at)
      else if (key === 'networks') this.#resources(value, at, networkKeys)
      else if (key === 'volumes') this.#resources(value, at, volumeKeys)
      else if (!/^(?:version|name|x-.*)$/s.test(key)) this.#refuse(at, UNKNOWN_KEY)
    }
  }

  #services(node: unknown, at: At): void {
    for (const [service, body] of this.#pairs(node, at))
      for (const [key, value] of this.#pairs(body, { service, key: 'services' })) this.#service(key, value, service)
  }

  #service(key: string, value: unknown, service: string): void {
    const at = { service, key }
    if (key.startsWith('x-')) return
    if (!Object.hasOwn(serviceKeys, key)) this.#refuse(at, UNKNOWN_KEY)
    else if (key === 'extends') this.#extends(value, at)
    else if (key === 'env_file') this.#envFiles(value, at)
    else if (key === 'label_file') this.#paths(value, at, 'file')
    else if (key === 'build') this.#build(value, at)
  }

  #include(entry: unknown, at: At): void {
    const pairs = this.#textOr(entry, at, 'path', ['path', 'project_directory', 'env_file'])
    const texts = (key: string) => this.#texts(valuesOf(pairs, key), below(at, key))
    this.found.named.push({
      ...below(at, 'path'),
      role: 'include',
      paths: texts('path'),
      folders: texts('project_directory'),
      envFiles: texts('env_file'),
    })
  }

  #extends(value: unknown, at: At): void {
    const pairs = this.#textOr(value, at, 'service', ['service', 'file'])
    for (const text of this.#texts(valuesOf(pairs, 'file'), below(at, 'file')))
      this.found.named.push({ ...below(at, 'file'), role: 'extends', text, expects: 'file' })
  }

  #envFiles(value: unknown, at: At): void {
    for (const entry of this.#yaml.items(value)) {
      const pairs = this.#textOr(entry, at, 'path', ['path', 'required', 'format'])
      for (const path of valuesOf(pairs, 'path')) this.#paths(path, at, 'file')
    }
  }

  #build(value: unknown, at: At): void {
    const pairs = this.#textOr(value, at, 'context', Object.keys(buildKeys))
    const contexts = this.#texts(valuesOf(pairs, 'context'), below(at, 'context'))
    for (const text of contexts)
      this.found.named.push({ ...below(at, 'context'), role: 'data', text, expects: 'folder' })
    const from = contexts.length > 0 ? contexts : ['.']
    for (const text of this.#texts(valuesOf(pairs, 'dockerfile'), below(at, 'dockerfile')))
      this.found.named.push({ ...below(at, 'dockerfile'), role: 'data', text, expects: 'file', from })
    for (const more of valuesOf(pairs, 'additional_contexts')) this.#contexts(more, below(at, 'additional_contexts'))
  }

  /** A mapping of names to contexts, or a list of `name=context`; images and services are none of the folder's. */
  #contexts(value: unknown, at: At): void {
    const mapped = this.#yaml.pairs(value)
    const texts = mapped
      ? this.#texts(
          mapped.map(([, one]) => one),
          at,
        )
      : this.#texts([value], at).map(text => text.slice(text.indexOf('=') + 1))
    for (const text of texts)
      if (!/^(?:docker-image:\/\/|service:)/.test(text))
        this.found.named.push({ ...at, role: 'data', text, expects: 'either' })
  }

  #files(node: unknown, at: At): void {
    for (const [name, resource] of this.#pairs(node, at)) {
      const pairs = this.#known(resource, below(at, name), Object.keys(secretKeys))
      for (const file of valuesOf(pairs, 'file')) this.#paths(file, below(below(at, name), 'file'), 'either')
    }
  }

  #resources(node: unknown, at: At, table: Table): void {
    for (const [name, resource] of this.#pairs(node, at)) this.#known(resource, below(at, name), Object.keys(table))
  }

  #paths(value: unknown, at: At, expects: Expects): void {
    for (const text of this.#texts([value], at)) this.found.named.push({ ...at, role: 'data', text, expects })
  }

  /** The pairs of a mapping; a text alone stands for the one key it is short for. */
  #textOr(value: unknown, at: At, key: string, known: readonly string[]): readonly Pair[] {
    return this.#yaml.text(value) === undefined ? this.#known(value, at, known) : [[key, value]]
  }

  #known(node: unknown, at: At, known: readonly string[]): readonly Pair[] {
    const pairs = this.#pairs(node, at)
    for (const [key] of pairs)
      if (!known.includes(key) && !key.startsWith('x-')) this.#refuse(below(at, key), UNKNOWN_KEY)
    return pairs
  }

  #pairs(node: unknown, at: At): readonly Pair[] {
    if (this.#yaml.isNull(node)) return []
    const pairs = this.#yaml.pairs(node)
    if (!pairs) this.#refuse(at, UNKNOWN_FORM)
    return pairs ?? []
  }

  /** The texts of values and of lists of values. */
  #texts(values: readonly unknown[], at: At): string[] {
    return values
      .flatMap(value => this.#yaml.items(value))
      .flatMap(item => {
        if (this.#yaml.isNull(item)) return []
        const text = this.#yaml.text(item)
        if (text === undefined) this.#refuse(at, UNKNOWN_FORM)
        return text ?? []
      })
  }

  #refuse(at: At, message: string): void {
    this.found.refusals.push({ ...at, message })
  }
}

const below = ({ service, key }: At, more: string): At => ({ service, key: `${key}.${more}` })

const valuesOf = (pairs: readonly Pair[], wanted: string): unknown[] =>
  pairs.filter(([key]) => key === wanted).map(([, value]) => value)
