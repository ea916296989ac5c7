// Answers as they are sent: what never changes is made into bytes and tagged once.

import { etagOf } from '../core/canonical.ts'

/** What is frozen never changes and is rendered once, each item of a frozen list by itself. */
export function renderedOf(body: object, revision?: string): Rendered {
  const known = kept.get(body)
  if (known) return known
  if (Array.isArray(body) && Object.isFrozen(body)) return keep(body, renderedList(body))
  const text = JSON.stringify(body)
  const tag = () => etagOf(text, revision)
  if (!Object.isFrozen(body)) return new Rendered(text, tag)
  return keep(body, new Rendered(text.length > LONG ? Buffer.from(text) : text, tag))
}

function renderedList(list: readonly object[]): Rendered {
  const items = list.map(item => renderedOf(item))
  const parts = items.flatMap((item, place) => (place === 0 ? [item.bytes] : [COMMA, item.bytes]))
  return new Rendered(Buffer.concat([OPENING, ...parts, CLOSING]), () => etagOf(items.map(item => item.etag).join()))
}

const [OPENING, COMMA, CLOSING] = ['[', ',', ']'].map(mark => Buffer.from(mark)) as [Buffer, Buffer, Buffer]

function keep(body: object, rendered: Rendered): Rendered {
  kept.set(body, rendered)
  return rendered
}

/** A body as it is sent. A long one that is sent again and again is bytes, which need no more encoding. */
class Rendered {
  readonly body: string | Buffer
  readonly #tag: () => string
  #bytes: Buffer | undefined
  #etag: string | undefined

  constructor(body: string | Buffer, tag: () => string) {
    this.body = body
    this.#tag = tag
  }

  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(this.body)
    return this.#bytes
  }

  get etag(): string {
    this.#etag ??= this.#tag()
    return this.#etag
  }
}

const LONG = 4 * 1024
const kept = new WeakMap<object, Rendered>()
