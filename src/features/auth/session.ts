// What the operations of this area can ask: the login checks, and the making of tokens.

import type { Actor } from '../../core/permission.ts'
import { type Identity, subjectOf } from './identity.ts'

export type AuthReader = ReturnType<typeof authReader>

export function authReader(identity: Identity, enabled: () => boolean) {
  return {
    enabled,
    byApiKey: (key: string): Promise<Actor> => identity.byApiKey(key),
    byPassword: (username: string, password: string): Promise<Actor> => identity.byPassword(username, password),
    issue: (actor: Actor) => identity.issue(actor, subjectOf(actor)),
    expiryOf: (actor: Actor) => identity.expiryOf(actor),
  }
}
