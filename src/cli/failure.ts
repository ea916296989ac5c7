// What ends a run of the client without success, and with which exit code.

/** The command line itself is wrong: exit code 2, and nothing was sent. */
export class UsageError extends Error {
  /** True when a newer document of the server may know what this one does not. */
  readonly unknown: boolean

  constructor(sentence: string, unknown = false) {
    super(sentence)
    this.unknown = unknown
  }
}

/** It could not be done from here: no login, no server, no such file. Exit code 1. */
export class ClientError extends Error {}

/** The server's own words. Exit code 1. */
export class Refusal extends Error {
  readonly status: number
  readonly details: unknown
  /** The body as it came. */
  readonly text: string

  constructor(status: number, text: string) {
    const body = bodyOf(text)
    super(body?.error ?? `The server answered with status ${status}.`)
    this.status = status
    this.details = body?.details
    this.text = text
  }
}

/** An error for people: the sentence, then what the details add to it. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Refusal) return [error.message, ...detailLines(error)].join('\n')
  return (error as Error).message
}

export const exitCodeOf = (error: unknown): number => (error instanceof UsageError ? 2 : 1)

export const isExpected = (error: unknown): boolean =>
  error instanceof UsageError || error instanceof ClientError || error instanceof Refusal

function bodyOf(text: string): { error?: string; details?: unknown } | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return body !== null && typeof body === 'object' ? body : undefined
  } catch {
    return undefined
  }
}

function detailLines({ message, details }: Refusal): string[] {
  if (details === undefined || details === null) return []
  const lines = Array.isArray(details) ? details.map(detailLine) : Object.entries(details).map(namedLine)
  return lines.filter(line => line !== '' && !message.includes(line)).map(line => `  ${line}`)
}

function detailLine(detail: unknown): string {
  if (detail === null || typeof detail !== 'object') return String(detail)
  const { path, message, type, id, reason } = detail as Record<string, unknown>
  if (message !== undefined) return path === undefined || path === '' ? String(message) : `\`${path}\` ${message}`
  if (type !== undefined && id !== undefined) return [`${type} ${id ?? ''}`.trim(), reason].filter(Boolean).join(': ')
  return JSON.stringify(detail)
}

const namedLine = ([name, value]: [string, unknown]): string =>
  `${name.replaceAll('_', ' ')}: ${typeof value === 'object' ? JSON.stringify(value) : value}`
