// Named locks: all of an operation's at once, in the order of asking, held to the end of its run.

import { Failure } from './failure.ts'

export interface Held {
  release(): void
}

interface Waiting {
  names: readonly string[]
  holder: string
  grant(): void
}

export class Locks {
  readonly #holders = new Map<string, string>()
  readonly #queue: Waiting[] = []

  /** Waits for all of them; after the limit it is `BUSY`, and details say who holds what. */
  async take(names: readonly string[], holder: string, limitMs: number, signal?: AbortSignal): Promise<Held> {
    signal?.throwIfAborted()
    const sorted = [...new Set(names)].sort()
    if (this.#free(sorted)) return this.#hold(sorted, holder)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting: Waiting = { names: sorted, holder, grant: resolve }
    this.#queue.push(waiting)
    const giveUp = (reason: unknown) => {
      const place = this.#queue.indexOf(waiting)
      if (place < 0) return
      this.#queue.splice(place, 1)
      this.#serve()
      reject(reason)
    }
    const timer = setTimeout(() => giveUp(this.#busy(sorted)), limitMs)
    const abort = () => giveUp(signal?.reason)
    signal?.addEventListener('abort', abort)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    return { release: () => this.#release(sorted) }
  }

  /** Free means: nobody holds one of them, and nobody who came before waits for one of them. */
  #free(names: readonly string[], before = this.#queue.length): boolean {
    const wanted = new Set(this.#queue.slice(0, before).flatMap(waiting => waiting.names))
    return names.every(name => !this.#holders.has(name) && !wanted.has(name))
  }

  #hold(names: readonly string[], holder: string): Held {
    for (const name of names) this.#holders.set(name, holder)
    return { release: () => this.#release(names) }
  }

  #release(names: readonly string[]): void {
    for (const name of names) this.#holders.delete(name)
    this.#serve()
  }

  #serve(): void {
    for (let index = 0; index < this.#queue.length; ) {
      const waiting = this.#queue[index] as Waiting
      if (this.#free(waiting.names, index)) {
        this.#queue.splice(index, 1)
        this.#hold(waiting.names, waiting.holder)
        waiting.grant()
      } else index++
    }
  }

  #busy(names: readonly string[]): Error {
    const held = names
      .filter(name => this.#holders.has(name))
      .map(name => ({ held: name, by: this.#holders.get(name) }))
    const what = held.map(({ held, by }) => `${held} is held by ${by}`).join(', ') || 'others wait for the same'
    return new Failure('BUSY', `Another change is under way: ${what}. Try again when it has ended.`, held)
  }
}
