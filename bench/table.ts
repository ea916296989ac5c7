// A figure of a benchmark, and the table of them.

export interface Figure {
  what: string
  /** As measured, in words a person reads. */
  measured: string
  /** The number that is compared. */
  value: number
  target: { atLeast: number } | { atMost: number }
  unit: string
}

export function printTable(figures: readonly Figure[]): void {
  const rows = figures.map(({ what, measured, value, target, unit }) => {
    const [word, limit] = 'atLeast' in target ? ['at least', target.atLeast] : ['at most', target.atMost]
    const holds = 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
    return [what, `${short(value)}${unit}`, `${word} ${limit}${unit}`, holds ? 'yes' : 'NO', measured]
  })
  const table = [['figure', 'value', 'target', 'holds', 'as measured'], ...rows]
  const widths = table[0]?.map((_, column) => Math.max(...table.map(row => (row[column] as string).length))) ?? []
  for (const row of table)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(middle)] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** The value below which a share of all lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number
}

export const short = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3))
