// One thing that is not allowed in a compose file, and how all of them together are told to the caller.

import { Failure } from '../../../core/failure.ts'

export interface Refusal {
  /** Null for what belongs to no service, such as a volume or a variable. */
  service: string | null
  key: string
  /** Continues the key: "is not allowed: …". Never holds a value of the file, which may be a secret. */
  message: string
}

/** Throws when there is anything to refuse; the sentence tells the first, the details all. */
export function refuseAll(found: readonly Refusal[]): void {
  const all = [...new Map(found.map(one => [JSON.stringify(one), one])).values()]
  const first = all[0]
  if (!first) return
  const more = all.length > 1 ? ` (${all.length - 1} more like this in the details)` : ''
  throw new Failure('COMPOSE_INVALID', `${sentenceOf(first)}${more}. ${wayOut}`, all.slice(0, maxDetails))
}

const wayOut = 'Change it, or ask an administrator to store this file.'
const maxDetails = 100

function sentenceOf({ service, key, message }: Refusal): string {
  return `${service === null ? 'In the compose file' : `In service "${service}"`}, "${key}" ${message}`
}
