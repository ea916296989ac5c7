// Lines of a log, of a list or as they come: when, from whom, and what.

import { present, type Schema } from '../schema.ts'
import { type Colour, printable, printableLog, type Screen } from '../screen.ts'
import { localTime } from './cell.ts'

export interface LogEntry {
  time?: string | null
  service?: string | null
  source?: string | null
  level?: string | null
  line: string
}

export const isLog = (items: Schema): boolean => present(items).properties?.line !== undefined

export function logLine(screen: Screen, entry: LogEntry): string {
  const { time, service, source, line } = entry
  const who = service ?? source ?? ''
  const text = screen.people ? printableLog(line) : line
  const when = time ? screen.paint('dim', screen.people ? localTime(new Date(time)) : time) : ''
  const from = who === '' ? '' : `${screen.paint(colourOf(who), printable(who))} |`
  return [when, from, text].filter(part => part !== '').join(' ')
}

/** The same service has the same colour in every run. */
function colourOf(name: string): Colour {
  const sum = [...name].reduce((total, character) => total + character.charCodeAt(0), 0)
  return COLOURS[sum % COLOURS.length] as Colour
}

const COLOURS: Colour[] = ['cyan', 'green', 'yellow', 'magenta', 'blue']
