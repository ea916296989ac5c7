// The raw text of a compose file, read so that nothing can be hidden from us that Compose's own parser would see.

import { type Alias, type Document, isAlias, isMap, isScalar, isSeq, parseAllDocuments, visit } from 'yaml'

/** What is wrong with a text, as a sentence continues: "has …". */
export class UnreadableText extends Error {}

export interface RawYaml {
  readonly root: unknown
  /**
   * Every pair of a mapping, those that merge keys (`<<`) bring along as well. A key may come more than once: which of
   * them wins is not for us to know, so that all have to be harmless. Undefined when it is no mapping.
   */
  pairs(node: unknown): Pair[] | undefined
  /** The items of a list, or the one value alone. */
  items(node: unknown): unknown[]
  /** Undefined when it is no plain value. */
  text(node: unknown): string | undefined
  isNull(node: unknown): boolean
}

export type Pair = readonly [key: string, value: unknown]

export function readRawYaml(text: string): RawYaml {
  const hidden = breaks.exec(text)
  if (hidden) throw new UnreadableText('holds a character that not everybody takes for a line break: remove it')
  if (/^%/m.test(text)) throw new UnreadableText('holds a YAML directive (a line that begins with %): remove it')
  const documents = parseAllDocuments(text, { merge: false, uniqueKeys: false, logLevel: 'silent' })
  if (!Array.isArray(documents)) return reader(null, new Map())
  if (documents.length > 1) throw new UnreadableText('holds several YAML documents (---): write one')
  const [document] = documents
  if (!document) return reader(null, new Map())
  const [error] = document.errors
  if (error) throw new UnreadableText(`cannot be read as YAML: ${error.message.split('\n')[0]?.replace(/:$/, '')}`)
  return reader(document.contents, aliasesOf(document))
}

/**
 * Looks at the tags and keys of all nodes, and finds what each alias stands for: the last anchor of its name before it.
 * (The parser's own look for keys that come twice takes minutes for some texts.)
 */
function aliasesOf(document: Document.Parsed): ReadonlyMap<Alias, unknown> {
  const anchors = new Map<string, unknown>()
  const found = new Map<Alias, unknown>()
  visit(document, {
    Node(_key, node) {
      if (isAlias(node)) return void found.set(node, anchors.get(node.source))
      if (node.tag !== undefined && !tags.has(node.tag))
        throw new UnreadableText(`holds the YAML tag ${node.tag}: remove it`)
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
      if (isMap(node)) refuseTwins(node.items.map(({ key }) => key))
    },
  })
  return found
}

function refuseTwins(keys: readonly unknown[]): void {
  const texts = keys.flatMap(key => (isScalar(key) ? [String(key.value)] : []))
  if (new Set(texts).size < texts.length) throw new UnreadableText('holds a key twice in the same place')
}

/** Line breaks to Compose's parser (YAML 1.1), but not to ours (1.2); and marks that it skips. */
const breaks = /[\0\u0085\u2028\u2029\ufeff]|\r(?!\n)/

const core = ['str', 'map', 'seq', 'int', 'float', 'bool', 'null', 'merge'].map(name => `tag:yaml.org,2002:${name}`)
const tags = new Set(['!', '!reset', '!override', ...core])

/** Aliases can make a small text unfold without end. */
const maxSteps = 50_000

function reader(root: unknown, aliases: ReadonlyMap<Alias, unknown>): RawYaml {
  let steps = 0
  const behind = (node: unknown): unknown => {
    let found = node
    while (isAlias(found)) {
      step()
      found = aliases.get(found)
    }
    return found
  }
  const step = () => {
    if (++steps > maxSteps) throw new UnreadableText('unfolds to too many values')
  }
  const text = (node: unknown): string | undefined => {
    const found = behind(node)
    if (!isScalar(found) || found.value === null) return undefined
    return typeof found.value === 'string' ? found.value : (found.source ?? String(found.value))
  }
  const pairs = (node: unknown, depth = 0): Pair[] | undefined => {
    const found = behind(node)
    if (!isMap(found)) return undefined
    if (depth > 20) throw new UnreadableText('merges mappings without end')
    return found.items.flatMap(({ key, value }): Pair[] => {
      step()
      const name = text(key)
      if (name === undefined) throw new UnreadableText('holds a key that is no plain text')
      if (name !== '<<') return [[name, value]]
      return items(value).flatMap(one => {
        const merged = pairs(one, depth + 1)
        if (!merged) throw new UnreadableText('merges (<<) something that is no mapping')
        return merged
      })
    })
  }
  const items = (node: unknown): unknown[] => {
    const found = behind(node)
    if (found === null || found === undefined) return []
    if (!isSeq(found)) return [found]
    for (const _ of found.items) step()
    return found.items
  }
  const isNull = (node: unknown): boolean => {
    const found = behind(node)
    return found === null || found === undefined || (isScalar(found) && found.value === null)
  }
  return { root, pairs, items, text, isNull }
}
