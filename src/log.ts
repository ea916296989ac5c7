// The agent's log: JSON lines in a file that turns over, and on standard output as JSON or as people read it.

import { isatty } from 'node:tty'
import { stripVTControlCharacters, styleText } from 'node:util'
import pino, { type Logger } from 'pino'
import { openRotatingFile } from './lib/rotating-file.ts'

export type { Logger }
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error'
export type LogFormat = 'auto' | 'json' | 'pretty'

export interface LogOptions {
  level: LogLevel
  /** How lines look on standard output; the file is always JSON. */
  format?: LogFormat
  /** Left out, there is no file. */
  file?: string | undefined
  /** The file descriptor to write to (1 is standard output); left out, none. */
  stdout?: number | undefined
  /** For how the file turns over: 10 MiB and 5 files. */
  maxBytes?: number
  keep?: number
}

export interface Log {
  logger: Logger
  /** In force at once for this logger and the children made from now on; a child that exists keeps its level. */
  setLevel(level: LogLevel): void
  /** Everything logged so far is in the file when this returns. */
  flush(): void
  close(): Promise<void>
}

export function openLog({ level, format = 'auto', file, stdout, maxBytes, keep }: LogOptions): Log {
  const lines =
    file === undefined
      ? undefined
      : openRotatingFile(file, { lostLine, ...(maxBytes && { maxBytes }), ...(keep && { keep }) })
  const out = stdout === undefined ? undefined : pino.destination({ fd: stdout, sync: false, maxLength: MOST_WAITING })
  let gone = false
  out?.on('error', () => {
    gone = true
  })
  const onTerminal = stdout !== undefined && isatty(stdout)
  const pretty = format === 'pretty' || (format === 'auto' && onTerminal)
  const write = (logged: string): void => {
    const line = withoutCredentials(logged)
    lines?.write(line)
    if (URGENT.test(line)) lines?.flush()
    out?.write(pretty ? prettyLine(line, onTerminal) : line)
  }
  const logger: Logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { err: pino.stdSerializers.err },
    },
    { write },
  )
  return {
    logger,
    setLevel(next) {
      logger.level = next
    },
    flush: () => lines?.flush(),
    async close() {
      lines?.close()
      if (out && !gone) await ended(out)
    },
  }
}

/** One JSON line as `10:02:03.123 INFO  sentence key=value`, an error's stack below it. */
export function prettyLine(line: string, colours: boolean): string {
  const read = parsed(line)
  if (!read) return line
  const { time, level = 'info', msg = '', err, ...rest } = read
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    colours ? styleText(style, text, { validateStream: false }) : text
  const word = String(level).toUpperCase().padEnd(5)
  const fields = Object.entries(rest).map(([key, value]) => ` ${paint('dim', `${key}=`)}${shown(value)}`)
  const stack =
    err && typeof err === 'object'
      ? `\n${indented(visible(String((err as { stack?: unknown }).stack ?? shown(err))))}`
      : ''
  const clock = String(time ?? '').slice(11, 23)
  return `${paint('dim', clock)} ${paint(COLOURS[String(level)] ?? 'white', word)} ${visible(String(msg))}${fields.join('')}${stack}\n`
}

/** A reader of standard output that stalls costs lines there, never memory. */
const MOST_WAITING = 4 * 1024 * 1024

const URGENT = /^\{"level":"(?:error|fatal)"/
const COLOURS: Record<string, Parameters<typeof styleText>[0]> = {
  trace: 'gray',
  debug: 'cyan',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
}

/**
 * The last net under what the features redact themselves: headers and fields that carry credentials by their name,
 * wherever they stand, and our own keys by their form. On the finished line this costs a fraction of pino's own redaction.
 */
const NAMED =
  /"((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api_key|password|(?:current|new)_password|(?:jwt_)?secret|token)":(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\])/gi
const KEYS = /\bfl_[A-Za-z0-9]{40}\b|\bbearer [\w.~+/=-]{8,}/gi
const SUSPECT = /authorization"|cookie"|api.key"|password"|secret"|token"|fl_|bearer /i

const withoutCredentials = (line: string): string =>
  SUSPECT.test(line) ? line.replace(NAMED, '"$1":"[redacted]"').replace(KEYS, '[redacted]') : line

const lostLine = (count: number) =>
  `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), msg: `${count} lines of the log were lost: the disk was full` })}\n`

/** Waits until standard output took everything, but not for a reader that stalls or went away. */
function ended(out: ReturnType<typeof pino.destination>): Promise<void> {
  return new Promise(resolve => {
    const giveUp = setTimeout(() => out.destroy(), 1000)
    const done = () => {
      clearTimeout(giveUp)
      resolve()
    }
    out.once('close', done)
    out.once('error', done)
    out.end()
  })
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const shown = (value: unknown) =>
  typeof value === 'string' && /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value)
const indented = (text: string) => text.replace(/^/gm, '    ')
/** What a caller sent must not steer the terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
const visible = (text: string) => stripVTControlCharacters(text).replace(/[\x00-\x08\x0b-\x1f\x7f]/g, '·')
