// Idempotency keys: the same key and request within 24 h returns the first answer and does nothing again.

import type { Database } from '../store/database.ts'
import type { Vault } from '../store/vault.ts'
import { fail } from './failure.ts'

/** A key with its request, as digests: what a run remembers, so that it is not carried out twice after a crash. */
export interface Kept {
  key: string
  request: string
}

export interface KeptAnswer {
  status: number
  body: unknown
}

const LIFETIME_MS = 86_400_000

export class Idempotency {
  readonly #db: Database
  readonly #vault: Vault
  /** The request behind each key that is being carried out. */
  readonly #underWay = new Map<string, string>()

  constructor(db: Database, vault: Vault) {
    this.#db = db
    this.#vault = vault
  }

  /** The kept answer, or a claim on the key that must be settled. */
  begin(scope: string, request: string): KeptAnswer | Claim {
    const key = this.#vault.digest(scope)
    const digest = this.#vault.digest(request)
    const since = new Date(Date.now() - LIFETIME_MS).toISOString()
    const row = this.#db.get<{ request: string; status: number; answer: string }>(
      'SELECT request, status, answer FROM kept_answers WHERE key = ? AND created_at > ?',
      key,
      since,
    )
    const first = row?.request ?? this.#underWay.get(key)
    if (first !== undefined && first !== digest) {
      fail('CONFLICT', 'This Idempotency-Key was used for another request. Use a new key for a new request.')
    }
    if (this.#underWay.has(key))
      fail('BUSY', 'The first request with this Idempotency-Key is still under way.', [{ held: 'idempotency key' }])
    if (row && row.status === 0) {
      fail(
        'CONFLICT',
        'The first request with this key was carried out, but its answer was lost when the agent stopped. Read the record to see it.',
      )
    }
    if (row) return { status: row.status, body: this.#vault.unseal(row.answer) }
    this.#underWay.set(key, digest)
    return new Claim(this.#db, this.#vault, { key, request: digest }, () => this.#underWay.delete(key))
  }

  /** What was finished after a crash is not carried out again. */
  carriedOut(kept: Kept): void {
    new Claim(this.#db, this.#vault, kept, () => {}).done()
  }

  sweep(): void {
    this.#db.run('DELETE FROM kept_answers WHERE created_at < ?', new Date(Date.now() - LIFETIME_MS).toISOString())
  }
}

export class Claim {
  readonly #db: Database
  readonly #vault: Vault
  readonly kept: Kept
  readonly #release: () => void

  constructor(db: Database, vault: Vault, kept: Kept, release: () => void) {
    this.#db = db
    this.#vault = vault
    this.kept = kept
    this.#release = release
  }

  /** In the transaction of the run: from here on the request is never carried out twice. */
  done(): void {
    this.#put(0, '')
  }

  /** Keeps the answer, with the secrets it showed once taken out. */
  keep(status: number, body: unknown): void {
    this.#put(status, this.#vault.seal(body))
  }

  release(): void {
    this.#release()
  }

  #put(status: number, answer: string): void {
    this.#db.run(
      'INSERT OR REPLACE INTO kept_answers (key, request, status, answer, created_at) VALUES (?, ?, ?, ?, ?)',
      this.kept.key,
      this.kept.request,
      status,
      answer,
      new Date().toISOString(),
    )
  }
}
