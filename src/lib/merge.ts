// Several streams as one: by order of their items, or as they come. A reader that stops reading stops the sources.

/** Merges sources that are each in order into one that is; only one batch of each is held. */
export async function* mergeInOrder<T>(
  sources: readonly AsyncIterable<readonly T[]>[],
  before: (a: T, b: T) => boolean,
): AsyncGenerator<T> {
  const heads = (await Promise.all(sources.map(source => Head.open(source)))).filter(head => head !== undefined)
  try {
    while (heads.length > 0) {
      let first = heads[0] as Head<T>
      for (const head of heads) if (before(head.item, first.item)) first = head
      yield first.item
      const more = first.advance()
      // Only the end of a batch is worth waiting for.
      if (!(more === true || (await more))) heads.splice(heads.indexOf(first), 1)
    }
  } finally {
    await Promise.all(heads.map(head => head.close()))
  }
}

class Head<T> {
  readonly #iterator: AsyncIterator<readonly T[]>
  #batch: readonly T[] = []
  #place = 0

  static async open<T>(source: AsyncIterable<readonly T[]>): Promise<Head<T> | undefined> {
    const head = new Head<T>(source[Symbol.asyncIterator]())
    return (await head.#fill()) ? head : undefined
  }

  private constructor(iterator: AsyncIterator<readonly T[]>) {
    this.#iterator = iterator
  }

  get item(): T {
    return this.#batch[this.#place] as T
  }

  advance(): Promise<boolean> | true {
    this.#place++
    return this.#place < this.#batch.length || this.#fill()
  }

  async close(): Promise<void> {
    await this.#iterator.return?.()
  }

  async #fill(): Promise<boolean> {
    this.#place = 0
    do {
      const { value, done } = await this.#iterator.next()
      if (done) return false
      this.#batch = value
    } while (this.#batch.length === 0)
    return true
  }
}

/** Sources that may join later; items are given as they come, one outstanding for each source. Ends when all have. */
export class Funnel<T> implements AsyncIterable<T> {
  readonly #waiting: Arrival<T>[] = []
  readonly #open = new Set<AsyncIterator<T>>()
  #wake: (() => void) | undefined

  add(source: AsyncIterable<T>): void {
    const iterator = source[Symbol.asyncIterator]()
    this.#open.add(iterator)
    this.#pull(iterator)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    try {
      while (this.#open.size > 0) {
        if (this.#waiting.length === 0) {
          await new Promise<void>(wake => {
            this.#wake = wake
          })
        }
        const next = this.#waiting.shift()
        if (!next) continue
        if ('failure' in next) throw next.failure
        if (next.result.done) {
          this.#open.delete(next.iterator)
          continue
        }
        yield next.result.value
        this.#pull(next.iterator)
      }
    } finally {
      await Promise.all([...this.#open].map(iterator => iterator.return?.()))
    }
  }

  #pull(iterator: AsyncIterator<T>): void {
    const arrive = (arrival: Arrival<T>) => {
      this.#waiting.push(arrival)
      this.#wake?.()
      this.#wake = undefined
    }
    iterator.next().then(
      result => arrive({ iterator, result }),
      failure => arrive({ iterator, result: { done: true, value: undefined }, failure }),
    )
  }
}

interface Arrival<T> {
  iterator: AsyncIterator<T>
  result: IteratorResult<T>
  failure?: unknown
}

/** The last so many items. */
export async function lastOf<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const ring: T[] = []
  let place = 0
  for await (const item of items) {
    if (ring.length < count) ring.push(item)
    else ring[place] = item
    place = (place + 1) % count
  }
  return ring.length < count ? ring : [...ring.slice(place), ...ring.slice(0, place)]
}
