// Points in time as callers give them: RFC 3339, or a span back from now.

import { parseSince } from '../lib/duration.ts'
import { fail } from './failure.ts'
import { Type } from './schema.ts'

export const Since = (description: string) =>
  Type.String({
    maxLength: 40,
    description: `${description} RFC 3339, or a span back from now such as 15m, 24h or 7d.`,
  })

/** The moment in RFC 3339 UTC; anything else is refused with the name of its field. */
export function momentAt(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const found = parseSince(text, new Date())
  if (found) return found.toISOString()
  return fail(
    'VALIDATION_FAILED',
    `\`${field}\` must be a time such as 2026-01-31T12:00:00Z, or a span such as 15m, 24h or 7d.`,
    [{ path: field, message: 'must be RFC 3339 or a span back from now' }],
  )
}
