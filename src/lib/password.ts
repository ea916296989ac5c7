// Passwords as argon2id in PHC form, with a bound on how many are computed at once.

import { argon2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)
const parameters = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 }
const AT_ONCE = 2

let running = 0
const waiting: (() => void)[] = []

export async function hashPassword(password: string, salt: Buffer): Promise<string> {
  const { memory, passes, parallelism } = parameters
  const tag = await bounded(() => derive('argon2id', { message: password, nonce: salt, ...parameters }))
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${salt.toString('base64url')}$${tag.toString('base64url')}`
}

export async function isPassword(password: string, phc: string): Promise<boolean> {
  const found = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w-]+)\$([\w-]+)$/.exec(phc)
  if (!found) return false
  const [, memory, passes, parallelism, salt, wanted] = found as unknown as [
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  const expected = Buffer.from(wanted, 'base64url')
  const tag = await bounded(() =>
    derive('argon2id', {
      message: password,
      nonce: Buffer.from(salt, 'base64url'),
      memory: Number(memory),
      passes: Number(passes),
      parallelism: Number(parallelism),
      tagLength: expected.length,
    }),
  )
  return timingSafeEqual(tag, expected)
}

async function bounded<T>(work: () => Promise<T>): Promise<T> {
  while (running >= AT_ONCE) await new Promise<void>(next => waiting.push(next))
  running++
  try {
    return await work()
  } finally {
    running--
    waiting.shift()?.()
  }
}
