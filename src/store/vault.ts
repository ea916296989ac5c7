// Seals what must not lie open on disk, under a master key in a file of its own (AES-256-GCM).

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Database, StoreError } from './database.ts'

export class Vault {
  readonly #sealing: Buffer
  readonly #digesting: Buffer

  constructor(masterKey: Buffer) {
    this.#sealing = Buffer.from(hkdfSync('sha256', masterKey, '', 'fairlead seal', 32))
    this.#digesting = Buffer.from(hkdfSync('sha256', masterKey, '', 'fairlead digest', 32))
  }

  seal(value: unknown): string {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#sealing, nonce)
    const body = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()])
    return `v1:${Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')}`
  }

  unseal<T>(sealed: string): T {
    const bytes = Buffer.from(sealed.replace(/^v1:/, ''), 'base64')
    const decipher = createDecipheriv('aes-256-gcm', this.#sealing, bytes.subarray(0, 12))
    decipher.setAuthTag(bytes.subarray(12, 28))
    return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString())
  }

  /** A digest that cannot be guessed from outside, for comparing without keeping. */
  digest(text: string): string {
    return createHmac('sha256', this.#digesting).update(text).digest('base64url')
  }
}

/** The vault of a data folder. A missing or foreign key refuses: going on would lose what is sealed. */
export function openVault(folder: string, db: Database): Vault {
  const file = join(folder, 'master.key')
  const probe = db.get<{ value: string }>("SELECT value FROM meta WHERE key = 'vault'")?.value
  if (!existsSync(file)) {
    if (probe !== undefined) {
      throw new StoreError(
        `The master key ${file} is missing, and the store holds values sealed under it. Put the file back.`,
      )
    }
    writeKey(folder, file)
  }
  const text = readFileSync(file, 'utf8').trim()
  const key = Buffer.from(text, 'base64')
  if (key.length !== 32)
    throw new StoreError(`The master key ${file} is not 32 bytes in base64. Put the right file back.`)
  const vault = new Vault(key)
  if (probe === undefined) {
    db.run("INSERT INTO meta (key, value) VALUES ('vault', ?)", vault.seal('fairlead'))
    return vault
  }
  try {
    vault.unseal(probe)
    return vault
  } catch {
    throw new StoreError(`The master key ${file} is not the one this store was sealed with. Put the right file back.`)
  }
}

function writeKey(folder: string, file: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const aside = `${file}.new`
  const handle = openSync(aside, 'w', 0o600)
  writeSync(handle, `${randomBytes(32).toString('base64')}\n`)
  fsyncSync(handle)
  closeSync(handle)
  renameSync(aside, file)
  // The key must be on disk before the first thing is sealed under it.
  const entries = openSync(folder, 'r')
  fsyncSync(entries)
  closeSync(entries)
}
