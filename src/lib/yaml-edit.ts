// Changing single values of a YAML text a person wrote, with every other byte left as he wrote it.

import { isDeepStrictEqual } from 'node:util'
import {
  Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  Scalar,
  stringify,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'

/**
 * Sets the value at a path of keys; undefined removes it, and with it a map that becomes empty. Comments, order, blank
 * lines and quoting stay. Where the spot is too unusual to be edited in place, the whole text is written anew from its
 * parsed form, which keeps comments and order.
 */
export function editYaml(text: string, path: readonly string[], value: unknown): string {
  const document = parseDocument(text)
  if (document.errors[0]) throw document.errors[0]
  if (value === undefined && !document.hasIn(path)) return text
  const wanted = withValue(document.toJS(), path, value)
  if (isDeepStrictEqual(document.toJS() ?? {}, wanted)) return text
  const edited = inPlace(text, document.contents, path, value)
  if (edited !== undefined && means(edited, wanted)) return edited
  return writtenAnew(document, path, value)
}

/** The text with each scalar that `hide` picks by its path (keys and indices) replaced by "[redacted]"; empty ones stay. */
export function redactYaml(text: string, hide: (path: readonly (string | number)[]) => boolean): string {
  const document = parseDocument(text)
  if (document.errors.length > 0) return '# [redacted]: this is not valid YAML\n'
  const hidden = scalarsOf(document.contents, []).filter(
    ({ node, path }) => sourceOf(text, node) !== '' && node.value !== '' && hide(path),
  )
  const spliced = hidden.reduceRight(
    (done, { node }) => splice(done, ...rangeOf(node), endsLine(text, node, '"[redacted]"')),
    text,
  )
  // A value may stand once more in a comment, an old key switched off for instance.
  const values = hidden.map(({ node }) => String(node.value)).filter(value => value.length >= 8)
  return values.reduce((done, value) => done.replaceAll(value, '[redacted]'), spliced)
}

function writtenAnew(document: Document, path: readonly string[], value: unknown): string {
  const depth = path.findIndex((_, index) => index > 0 && !isMap(document.getIn(path.slice(0, index), true)))
  if (value === undefined) deleteAndPrune(document, path)
  else if (depth < 0) document.setIn(path, value)
  else document.setIn(path.slice(0, depth), document.createNode(nested(path.slice(depth), value)))
  return document.toString({ lineWidth: 0 })
}

function deleteAndPrune(document: Document, path: readonly string[]): void {
  document.deleteIn(path)
  const above = path.slice(0, -1)
  const map = above.length > 0 ? document.getIn(above, true) : undefined
  if (isMap(map) && map.items.length === 0) deleteAndPrune(document, above)
}

function inPlace(text: string, root: unknown, path: readonly string[], value: unknown): string | undefined {
  const [key, ...rest] = path
  if (key === undefined) return undefined
  if (root === null || (isScalar(root) && root.value === null))
    return value === undefined ? text : insertAtEnd(text, nested(path, value))
  if (!isMap(root)) return undefined
  const pair = root.items.find(item => isScalar(item.key) && item.key.value === key) as
    | Pair<Scalar, Node | null>
    | undefined
  if (!pair) return value === undefined ? text : insertPair(text, root, nested(path, value))
  if (value === undefined && empties(pair, rest)) return removePair(text, root, pair)
  if (rest.length === 0) return replaceValue(text, root, pair, value)
  if (isScalar(pair.value) && pair.value.value === null) return replaceValue(text, root, pair, nested(rest, value))
  return inPlace(text, pair.value, rest, value)
}

/** Whether taking away what is at `rest` leaves nothing of the pair. */
function empties(pair: Pair<Scalar, Node | null>, rest: readonly string[]): boolean {
  if (rest.length === 0) return true
  if (!isMap(pair.value) || pair.value.items.length !== 1) return false
  const only = pair.value.items[0] as Pair<Scalar, Node | null>
  return isScalar(only.key) && only.key.value === rest[0] && empties(only, rest.slice(1))
}

function insertAtEnd(text: string, value: unknown): string {
  return `${text}${text === '' || text.endsWith('\n') ? '' : lineBreak(text)}${blockOf(text, value, '')}`
}

function insertPair(text: string, map: YAMLMap, value: Record<string, unknown>): string | undefined {
  if (map.flow) {
    const end = (map.range?.[1] ?? 0) - 1
    return splice(text, end, end, `${map.items.length > 0 ? ', ' : ''}${flowOf(value).slice(1, -1).trim()}`)
  }
  const first = map.items[0]?.key
  if (!isScalar(first) || !first.range) return undefined
  const at = lineAfter(text, endOf(map))
  const indent = text.slice(lineStart(text, first.range[0]), first.range[0])
  const separated =
    indent === '' && /\n\r?\n/.test(text) && typeof Object.values(value)[0] === 'object' ? lineBreak(text) : ''
  const opened = at > 0 && text[at - 1] !== '\n' ? lineBreak(text) : ''
  return splice(text, at, at, opened + separated + blockOf(text, value, indent))
}

function removePair(text: string, map: YAMLMap, pair: Pair<Scalar, Node | null>): string | undefined {
  if (map.flow || !pair.key.range) return undefined
  return splice(text, lineStart(text, pair.key.range[0]), lineAfter(text, endOf(pair.value ?? pair.key)), '')
}

function replaceValue(text: string, map: YAMLMap, pair: Pair<Scalar, Node | null>, value: unknown): string | undefined {
  const { key, value: old } = pair
  if (!old?.range || !key.range) return undefined
  if (isSeq(old) && !old.flow && Array.isArray(value) && value.length > 0) {
    const edited = editItems(text, old, value)
    if (edited !== undefined) return edited
  }
  const inFlow = map.flow === true
  const colon = text.indexOf(':', key.range[1]) + 1
  const valueEnd = sourceOf(text, old) === '' ? colon : endOf(old)
  const oneLine = isOneLine(value) || inFlow || (isCollection(old) && old.flow === true)
  const words = oneLine ? ` ${isOneLine(value) ? scalarOf(value, old, inFlow) : flowOf(value)}` : ''
  if (oneLine && valueEnd === colon) return splice(text, colon, colon, words)
  if (oneLine && (isScalar(old) || (isCollection(old) && old.flow))) {
    return splice(text, ...rangeOf(old), endsLine(text, old, words.trimStart()))
  }
  // What follows the key on its own line, a comment perhaps, stays there.
  const indent = text.slice(lineStart(text, key.range[0]), key.range[0])
  const keyLine = isScalar(old) ? valueEnd : colon
  const comment = text.slice(keyLine, lineEnd(text, keyLine)).trimEnd()
  const block = oneLine ? '' : blockOf(text, value, `${indent}  `)
  return splice(text, colon, lineAfter(text, valueEnd), `${words}${comment}${lineBreak(text)}${block}`)
}

/** Items that stay keep their lines and comments: possible when the list only loses items and gains some at its end. */
function editItems(text: string, list: YAMLSeq, wanted: unknown[]): string | undefined {
  const items = list.items.filter(isScalar)
  if (items.length !== list.items.length || !wanted.every(isOneLine)) return undefined
  const kept: Scalar[] = []
  for (const item of items) if (isDeepStrictEqual(item.value, wanted[kept.length])) kept.push(item)
  const start = rangeOf(items[0] as Scalar)[0]
  const dash = text.slice(lineStart(text, start), start)
  if (kept.length === 0 || !/^\s*-\s+$/.test(dash)) return undefined
  const end = lineAfter(text, endOf(list))
  const opened = text[end - 1] === '\n' ? '' : lineBreak(text)
  const added = wanted.slice(kept.length).map(value => `${dash}${scalarOf(value, undefined, false)}${lineBreak(text)}`)
  const grown = splice(text, end, end, added.length > 0 ? opened + added.join('') : '')
  const gone = items.filter(item => !kept.includes(item))
  return gone.reduceRight(
    (done, item) => splice(done, lineStart(text, rangeOf(item)[0]), lineAfter(text, endOf(item)), ''),
    grown,
  )
}

/** Where the last thing written in a node ends; the range of a block collection reaches over what follows it. */
function endOf(node: unknown): number {
  if (isCollection(node) && !node.flow) {
    const last = node.items.at(-1) as Pair<Node, Node | null> | Node | undefined
    if (last) return 'key' in last ? endOf(last.value ?? last.key) : endOf(last)
  }
  return (node as Node).range?.[1] ?? 0
}

function scalarsOf(node: unknown, path: (string | number)[]): { node: Scalar; path: (string | number)[] }[] {
  if (isScalar(node)) return [{ node, path }]
  if (isSeq(node)) return node.items.flatMap((item, index) => scalarsOf(item, [...path, index]))
  if (!isMap(node)) return []
  return node.items.flatMap(item =>
    scalarsOf(item.value, [...path, String(isScalar(item.key) ? item.key.value : item.key)]),
  )
}

function scalarOf(value: unknown, old: unknown, inFlow: boolean): string {
  if (Array.isArray(value)) return '[]'
  if (value !== null && typeof value === 'object') return '{}'
  if (typeof value !== 'string') return String(value)
  if (isScalar(old) && old.type === Scalar.QUOTE_DOUBLE) return JSON.stringify(value)
  if (isScalar(old) && old.type === Scalar.QUOTE_SINGLE && /^[ -~]*$/.test(value))
    return `'${value.replaceAll("'", "''")}'`
  const plain = stringify(value, { lineWidth: 0 }).trimEnd()
  return plain.includes('\n') || (inFlow && /[[\]{},]/.test(plain) && !plain.startsWith('"'))
    ? JSON.stringify(value)
    : plain
}

function flowOf(value: unknown): string {
  const document = new Document(value)
  if (isCollection(document.contents)) document.contents.flow = true
  return document.toString({ lineWidth: 0, flowCollectionPadding: false }).trimEnd()
}

function blockOf(text: string, value: unknown, indent: string): string {
  return stringify(value, { lineWidth: 0 })
    .replace(/^(?=.)/gm, indent)
    .replaceAll('\n', lineBreak(text))
}

const isOneLine = (value: unknown): boolean =>
  value === null || typeof value !== 'object' || Object.keys(value).length === 0

function withValue(root: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value
  const copy: Record<string, unknown> =
    root !== null && typeof root === 'object' && !Array.isArray(root) ? { ...root } : {}
  const inner = withValue(copy[key], rest, value)
  if (inner === undefined || (value === undefined && rest.length > 0 && isOneLine(inner))) delete copy[key]
  else copy[key] = inner
  return copy
}

function means(text: string, wanted: unknown): boolean {
  const document = parseDocument(text)
  return document.errors.length === 0 && isDeepStrictEqual(document.toJS() ?? {}, wanted)
}

const nested = (path: readonly string[], value: unknown) =>
  path.reduceRight((inner, key) => ({ [key]: inner }), value) as Record<string, unknown>

const splice = (text: string, start: number, end: number, words: string) =>
  text.slice(0, start) + words + text.slice(end)
const rangeOf = (node: Node): [number, number] => [node.range?.[0] ?? 0, node.range?.[1] ?? 0]
const sourceOf = (text: string, node: Node) => text.slice(...rangeOf(node))
/** A block scalar's range takes in its last line break, which what replaces it must give back. */
const endsLine = (text: string, node: Node, words: string) =>
  sourceOf(text, node).endsWith('\n') ? words + lineBreak(text) : words
const lineBreak = (text: string) => (text.includes('\r\n') ? '\r\n' : '\n')
const lineStart = (text: string, at: number) => text.lastIndexOf('\n', at - 1) + 1
const lineEnd = (text: string, at: number) => (text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at))
/** The start of the line after the one `at` is in; `at` itself when it is a line's start because a block scalar ended. */
const lineAfter = (text: string, at: number) =>
  at > 0 && text[at - 1] === '\n' ? at : Math.min(text.length, lineEnd(text, at) + 1)
