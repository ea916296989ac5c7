// Reasons to give up on a call, a deadline among them, as one signal.

export class Limit {
  readonly #abort = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #sources: readonly AbortSignal[]
  readonly #follow = () => this.#abort.abort(this.#sources.find(source => source.aborted)?.reason)

  /** Aborts with `late()` after `deadlineMs`, or with the reason of the first source that aborts. */
  constructor(deadlineMs: number, late: () => unknown, ...sources: (AbortSignal | undefined)[]) {
    this.#timer = setTimeout(() => this.#abort.abort(late()), deadlineMs)
    this.#sources = sources.filter(source => source !== undefined)
    for (const source of this.#sources) source.addEventListener('abort', this.#follow)
    if (this.#sources.some(source => source.aborted)) this.#follow()
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** What to throw when this limit was the cause of an error; the error itself otherwise. */
  cause(error: unknown): unknown {
    return this.#abort.signal.aborted ? this.#abort.signal.reason : error
  }

  /** Starts the deadline anew. */
  extend(): void {
    this.#timer.refresh()
  }

  /** No deadline any more; the sources still count. */
  disarm(): void {
    clearTimeout(this.#timer)
  }

  release(): void {
    clearTimeout(this.#timer)
    for (const source of this.#sources) source.removeEventListener('abort', this.#follow)
  }
}
