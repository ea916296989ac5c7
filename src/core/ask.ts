// What a decision or a question is given: the readers of all areas, each made when it is first used, bound to the actor.

import { freshFrom } from './fresh.ts'
import type { Ask, ReaderFactories, Viewer } from './operation.ts'
import type { Actor } from './permission.ts'

export type AskClass = new (viewer: Viewer, seed?: Buffer, signal?: AbortSignal) => Ask

const NO_SEED = Buffer.alloc(0)

/** One class for all asks of an agent: a reader is made when it is first used, bound to the actor. */
export function askClass(factories: ReaderFactories) {
  class Asking {
    readonly actor: Actor
    readonly viewer: Viewer
    readonly made: Record<string, unknown> = {}
    readonly seed: Buffer | undefined
    given: AbortSignal | undefined

    constructor(viewer: Viewer, seed?: Buffer, signal?: AbortSignal) {
      this.viewer = viewer
      this.actor = viewer.actor
      this.seed = seed
      this.given = signal
    }

    get fresh(): Ask['fresh'] {
      return freshFrom(this.seed ?? NO_SEED)
    }

    get signal(): AbortSignal {
      this.given ??= new AbortController().signal
      return this.given
    }
  }
  for (const [name, factory] of Object.entries(factories as Record<string, (viewer: Viewer) => unknown>)) {
    Object.defineProperty(Asking.prototype, name, {
      get(this: Asking) {
        this.made[name] ??= factory(this.viewer)
        return this.made[name]
      },
    })
  }
  return Asking as unknown as AskClass
}
