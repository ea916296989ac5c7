// The word a person most likely meant when he mistyped one of a known few.

/** The candidate nearest to `word`, or undefined when none is near enough to be meant. */
export function nearMiss(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    const cost = distance(word.toLowerCase(), candidate.toLowerCase())
    if (cost >= least) continue
    least = cost
    best = candidate
  }
  return best
}

/** Edits (insert, remove, replace, swap neighbours) that turn one word into the other. */
function distance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let cost = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1))
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (swapped) cost = Math.min(cost, beforeLast[column - 2]! + 1)
      current.push(cost)
    }
    beforeLast = last
    last = current
  }
  return last[to.length]!
}
