// One small bus for observers: what happened, told after it happened. A required effect is a call, never an event.

export interface Events {
  /** Records of these areas were written. */
  'records.changed': { areas: ReadonlySet<string> }
  'run.finished': { id: string; action: string; deployment: string | null; ok: boolean }
  'config.changed': { restart: readonly string[] }
}

type Listener<K extends keyof Events> = (event: Events[K]) => void

export class EventBus {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>()

  on<K extends keyof Events>(name: K, listener: Listener<K>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    listeners.add(listener as Listener<never>)
    return () => listeners.delete(listener as Listener<never>)
  }

  emit<K extends keyof Events>(name: K, event: Events[K]): void {
    for (const listener of this.#listeners.get(name) ?? []) (listener as Listener<K>)(event)
  }
}
