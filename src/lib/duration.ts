// Spans of time and points in time as people write them, and uptime as people read it.

/** `15m`, `24h`, `7d` (also `s` and `w`) in milliseconds; undefined for anything else. */
export function parseSpan(text: string): number | undefined {
  const match = /^(\d{1,9})([smhdw])$/.exec(text)
  if (!match) return undefined
  return Number(match[1]) * (UNITS[match[2] as keyof typeof UNITS] ?? Number.NaN)
}

/** A point in time: RFC 3339, or a span back from `now`. Undefined when it is neither, or no date that exists. */
export function parseSince(text: string, now: Date): Date | undefined {
  const span = parseSpan(text)
  if (span === undefined) return parseTimestamp(text)
  return existing(new Date(now.getTime() - span))
}

/** Strict RFC 3339: date, time and offset, on a day that exists. */
export function parseTimestamp(text: string): Date | undefined {
  const match = TIMESTAMP.exec(text)
  if (!match) return undefined
  const [, date = '', hours, minutes, seconds, , offsetHours = '0', offsetMinutes = '0'] = match
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined
  // Date rolls 30 February over into March instead of refusing it.
  const day = existing(new Date(`${date}T00:00:00Z`))
  if (!day?.toISOString().startsWith(date)) return undefined
  return existing(new Date(text.toUpperCase()))
}

/** `3h12m5s`: whole seconds, leading zero units left out, hours without bound. */
export function formatUptime(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const hours = Math.floor(whole / 3600)
  const minutes = Math.floor((whole % 3600) / 60)
  if (hours > 0) return `${hours}h${minutes}m${whole % 60}s`
  return minutes > 0 ? `${minutes}m${whole % 60}s` : `${whole}s`
}

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const TIMESTAMP = /^(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:[Zz]|[+-](\d\d):(\d\d))$/

const existing = (date: Date): Date | undefined => (Number.isNaN(date.getTime()) ? undefined : date)
