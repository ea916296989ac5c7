// Several streams as one: by order of their items, or as they come. A reader that stops reading stops the sources.

/** Merges sources that are each in order into one that is; only one batch of each is held. */
export async function* mergeInOrder<T>(
  sources: readonly AsyncIterable<readonly T[]>[],
  before: (a: T, b: T) => boolean,
): AsyncGenerator<T[]> {
  const heads = sources.map(source => new Head(source))
  try {
    await Promise.all(heads.map(head => head.fill()))
    let open = heads.filter(head => !head.isEmpty)
    while (open.length > 0) {
      // What is certain without waiting: up to the end of the batch that ends first.
      const merged: T[] = []
      let first: Head<T>
      do {
        first = firstOf(open, before)
        merged.push(first.take())
      } while (!first.isEmpty)
      yield merged
      await first.fill()
      if (first.isEmpty) open = open.filter(head => head !== first)
    }
  } finally {
    await Promise.all(heads.map(head => head.close()))
  }
}

function firstOf<T>(heads: readonly Head<T>[], before: (a: T, b: T) => boolean): Head<T> {
  let first = heads[0] as Head<T>
  for (const head of heads) if (before(head.item, first.item)) first = head
  return first
}

class Head<T> {
  readonly #iterator: AsyncIterator<readonly T[]>
  #batch: readonly T[] = []
  #place = 0

  constructor(source: AsyncIterable<readonly T[]>) {
    this.#iterator = source[Symbol.asyncIterator]()
  }

  get item(): T {
    return this.#batch[this.#place] as T
  }

  get isEmpty(): boolean {
    return this.#place === this.#batch.length
  }

  take(): T {
    return this.#batch[this.#place++] as T
  }

  /** It is empty afterwards only at the end of its source. */
  async fill(): Promise<void> {
    while (this.isEmpty) {
      const { value, done } = await this.#iterator.next()
      if (done) return
      this.#batch = value
      this.#place = 0
    }
  }

  async close(): Promise<void> {
    await this.#iterator.return?.()
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

  /** Keeps it open until then; a failure is told to the reader. */
  holdUntil(settled: Promise<unknown>): void {
    const next = () => settled.then(() => ({ done: true, value: undefined }) as const)
    this.add({ [Symbol.asyncIterator]: () => ({ next }) })
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

/** The last so many items, in the batches they came in. */
export async function lastOf<T>(batches: AsyncIterable<readonly T[]>, count: number): Promise<(readonly T[])[]> {
  const held: (readonly T[])[] = []
  let items = 0
  for await (const batch of batches) {
    held.push(batch)
    items += batch.length
    while (items - (held[0]?.length ?? 0) >= count) items -= held.shift()?.length ?? 0
  }
  const [first = [], ...later] = held
  return [first.slice(Math.max(0, items - count)), ...later]
}
