// Answers: the form every one has, and the form in which one may be kept.

import type { Command, Operation, Query } from './operation.ts'
import { isPaged, redact } from './schema.ts'

export interface Answer {
  status: number
  body: object
  /** For questions: what `If-Match` compares. */
  revision?: string | undefined
}

export function envelope(operation: Query | Command, output: unknown, message: string): object {
  if (operation.http.bare) return output as object
  if (isPaged(operation.output)) return { ...(output as object), message }
  return { data: output, message }
}

/** An answer as it may be kept: what was shown once is not shown again. */
export function redactAnswer(operation: Operation, body: object): object {
  if (operation.http.bare) return redact(operation.output, body) as object
  const { data, ...rest } = body as { data?: unknown }
  return { ...rest, ...(data === undefined ? {} : { data: redact(operation.output, data) }) }
}
