// Ids and generated secrets derived from a seed, so that deciding again on the same world gives the same steps.

import { createHmac, hkdfSync } from 'node:crypto'

export interface Fresh {
  bytes(name: string, length: number): Buffer
  /** Letters and digits, each equally likely. */
  text(name: string, length: number): string
  id(name: string): string
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function freshFrom(seed: Buffer): Fresh {
  const bytes = (name: string, length: number) => Buffer.from(hkdfSync('sha256', seed, '', `fresh:${name}`, length))
  const text = (name: string, length: number) => {
    const letters: string[] = []
    for (let round = 0; letters.length < length; round++) {
      for (const byte of createHmac('sha256', seed).update(`text:${name}:${round}`).digest()) {
        // 248 is the largest multiple of 62 in a byte: what lies above would favour some letters.
        if (byte < 248 && letters.length < length) letters.push(alphabet[byte % 62] as string)
      }
    }
    return letters.join('')
  }
  return { bytes, text, id: name => text(`id:${name}`, 20) }
}
