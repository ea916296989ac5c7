// Joins many wishes to do the same thing into few runs of it.

/**
 * Runs `work` for a key, one run at a time per key. Who asks while a run is under way gets the next one, which all
 * who ask meanwhile share: the run that answers a wish always began after it.
 */
export function coalesce<K>(work: (key: K) => Promise<void>): (key: K) => Promise<void> {
  const running = new Map<K, Promise<void>>()
  const next = new Map<K, Promise<void>>()

  const start = (key: K): Promise<void> => {
    const run = work(key).finally(() => running.delete(key))
    running.set(key, run)
    return run
  }

  return key => {
    const current = running.get(key)
    if (!current) return start(key)
    const waiting = next.get(key)
    if (waiting) return waiting
    const following = current
      .catch(() => {})
      .then(() => {
        next.delete(key)
        return start(key)
      })
    next.set(key, following)
    return following
  }
}
