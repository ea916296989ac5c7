// A walk over ids from the newest to the oldest, in slices that each take a moment, with other work let in between.

export interface Ids {
  first: number
  last: number
}

/** How many ids to begin with, and how long one slice may take. */
export interface Pace {
  size: number
  momentMs: number
}

/**
 * What `read` gives of each slice. Slices grow while they are read in less than half of the moment and shrink when they
 * take longer, so that neither many matching rows nor many others hold up the rest of the agent.
 */
export async function* inSlices<T>(
  { first, last }: Ids,
  { size, momentMs }: Pace,
  read: (low: number, high: number) => T,
): AsyncGenerator<T> {
  let span = size
  for (let high = last; high >= first; ) {
    const low = Math.max(first, high - span + 1)
    const began = performance.now()
    const found = read(low, high)
    const took = performance.now() - began
    if (took < momentMs / 2) span *= 2
    else if (took > momentMs) span = Math.max(SMALLEST, Math.floor(span / 2))
    yield found
    high = low - 1
    await new Promise(setImmediate)
  }
}

const SMALLEST = 10
