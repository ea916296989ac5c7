// One value as people read it: times, sizes, lists and small objects in a few words.

import { present, type Schema } from '../schema.ts'
import { printable, type Screen } from '../screen.ts'

export interface CellStyle {
  people: boolean
  /** Times with their distance from now beside them, where there is room. */
  full?: boolean
}

export function cellOf(value: unknown, schema: Schema, name: string, style: CellStyle): string {
  if (value === null || value === undefined || value === '') return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return numberText(value, name, style)
  if (typeof value === 'string') return isTime(value, schema) ? timeText(value, style) : printable(value)
  if (Array.isArray(value))
    return value
      .map(item => cellOf(item, present(schema).items ?? {}, name, style))
      .filter(Boolean)
      .join(', ')
  return objectText(value as Record<string, unknown>)
}

/** `3 minutes ago`, `in 2 hours`. */
export function distance(time: number, now = Date.now()): string {
  const seconds = Math.round(Math.abs(now - time) / 1000)
  if (seconds < 5) return 'now'
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ['second', 1]
  const count = Math.floor(seconds / size)
  const words = `${count} ${unit}${count === 1 ? '' : 's'}`
  return time > now ? `in ${words}` : `${words} ago`
}

/** How things stand is seen before it is read. `shown` is the text as it is laid out. */
export function painted(screen: Screen, name: string, text: string, shown = text): string {
  const colour = /(^|_)(status|state|health)$/.test(name) && COLOURS.find(one => STANDS[one].includes(text))
  return colour ? screen.paint(colour, shown) : shown
}

export function localTime(time: Date): string {
  const two = (number: number) => String(number).padStart(2, '0')
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`
}

export function sizeText(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(SIZES.length - 1, Math.floor(Math.log10(bytes) / 3))
  const amount = bytes / 1000 ** power
  return `${power === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${SIZES[power]}`
}

/** Sizes are bytes everywhere; their names are few. */
const BYTES = /(^|_)(size|bytes|rss|rx|tx)$|^memory_(usage|limit)$|^block_(read|write)$|^bytes_/
const SIZES = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
const COLOURS = ['green', 'yellow', 'red'] as const
const STANDS: Record<(typeof COLOURS)[number], string[]> = {
  green: ['running', 'healthy', 'ok', 'completed', 'applied', 'valid', 'up'],
  yellow: ['partial', 'deploying', 'pending', 'applying', 'starting', 'restarting', 'degraded', 'expiring', 'obsolete'],
  red: ['error', 'failed', 'invalid', 'unhealthy', 'dead', 'exited', 'missing', 'expired', 'down'],
}
const UNITS: [string, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
]

function isTime(text: string, schema: Schema): boolean {
  return present(schema).format === 'date-time' || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(text)
}

function timeText(text: string, { people, full }: CellStyle): string {
  const time = new Date(text)
  if (!people || Number.isNaN(time.getTime())) return printable(text)
  return full ? `${localTime(time)} (${distance(time.getTime())})` : distance(time.getTime())
}

function numberText(value: number, name: string, { people }: CellStyle): string {
  if (people && BYTES.test(name) && value >= 1000) return sizeText(value)
  return /(^|_)percent$/.test(name) && people ? `${value} %` : String(value)
}

/** An object is known by its name; one of counts by those that are not zero; any other by its plain values. */
function objectText(value: Record<string, unknown>): string {
  if (typeof value.name === 'string') return printable(value.name)
  const entries = Object.entries(value)
  if (entries.length > 0 && entries.every(([, inner]) => typeof inner === 'number')) {
    return entries
      .filter(([, count]) => count !== 0)
      .map(([name, count]) => `${count} ${name.replaceAll('_', ' ')}`)
      .join(', ')
  }
  const plain = entries.map(([, inner]) => inner).filter(inner => inner !== null && typeof inner !== 'object')
  return printable(plain.join(' '))
}
