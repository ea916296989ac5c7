// The rules a table of allowed keys is written with. A rule looks at one value and notes what it may not be.

import type { ComposeModel } from '../../../adapters/compose/model.ts'
import type { Expects } from './inside.ts'
import type { Refusal } from './refusal.ts'

/** Where a rule looks, and where it notes what it found. */
export interface Look {
  readonly service: string | null
  readonly key: string
  readonly model: ComposeModel
  readonly refusals: Refusal[]
  readonly paths: UsedPath[]
}

/** A path of the machine that Compose or the engine will follow; looked up after all rules have spoken. */
export interface UsedPath {
  service: string | null
  key: string
  path: string
  expects: Expects
  /** A container will be able to write there. */
  writable: boolean
}

export type Rule = (value: unknown, look: Look) => void
export type Table = Readonly<Record<string, Rule>>

/** Harmless with every value. */
export const anything: Rule = () => {}

/** A table of keys, all harmless with every value. */
export const free = (names: string): Table => Object.fromEntries(names.split(' ').map(name => [name, anything]))

/** Harmless only when it is absent, false or empty. */
export const never =
  (why: string): Rule =>
  (value, look) => {
    if (!isAbsent(value)) refuse(look, `is not allowed: ${why}`)
  }

export const only =
  (values: readonly unknown[], why: string): Rule =>
  (value, look) => {
    if (!isAbsent(value) && !values.includes(value)) refuse(look, `is not allowed with this value: ${why}`)
  }

/** A mapping with these keys; extensions (`x-…`) are nobody's business. */
export const keys =
  (table: Table): Rule =>
  (value, look) => {
    if (value === undefined || value === null) return
    if (!isMapping(value)) return refuse(look, UNKNOWN_FORM)
    for (const [key, one] of Object.entries(value)) {
      if (key.startsWith('x-')) continue
      const rule = Object.hasOwn(table, key) ? table[key] : undefined
      if (rule) rule(one, below(look, key))
      else if (!isEmpty(one)) refuse(below(look, key), UNKNOWN_KEY)
    }
  }

/** Every value of a list or a mapping. */
export const each =
  (rule: Rule): Rule =>
  (value, look) => {
    if (value === undefined || value === null) return
    if (Array.isArray(value)) for (const [index, one] of value.entries()) rule(one, at(look, index))
    else if (isMapping(value)) for (const [key, one] of Object.entries(value)) rule(one, below(look, key))
    else refuse(look, UNKNOWN_FORM)
  }

/** Each in turn. */
export const both =
  (...rules: readonly Rule[]): Rule =>
  (value, look) => {
    for (const rule of rules) rule(value, look)
  }

/** Compose, the engine and we tell by these labels what belongs to whom. */
export const labels: Rule = (value, look) => {
  if (value === undefined || value === null) return
  if (!isMapping(value)) return refuse(look, UNKNOWN_FORM)
  for (const key of Object.keys(value)) {
    if (/^\s*com\.docker\./i.test(key))
      refuse(below(look, key), 'is not allowed: labels under com.docker. are Compose’s own')
  }
}

export const path =
  (expects: Expects): Rule =>
  (value, look) => {
    if (isAbsent(value)) return
    if (typeof value !== 'string') return refuse(look, UNKNOWN_FORM)
    uses(look, value, expects)
  }

/** A text that begins with the name of a service of the same file. */
export const ownService =
  (why: string): Rule =>
  (value, look) => {
    const [name = '', second] = typeof value === 'string' ? value.split(':') : []
    const isOwn = Object.hasOwn(look.model.services, name)
    if (!isOwn || (name === 'container' && second !== undefined)) refuse(look, `is not allowed with this value: ${why}`)
  }

/** One of these words, or `service:` and a service of the same file. */
export const sharedWith =
  (words: readonly string[], why: string): Rule =>
  (value, look) => {
    if (isAbsent(value) || (typeof value === 'string' && words.includes(value))) return
    const other = typeof value === 'string' ? /^service:(.+)$/.exec(value)?.[1] : undefined
    if (other === undefined || !Object.hasOwn(look.model.services, other))
      refuse(look, `is not allowed with this value: ${why}`)
  }

export function refuse({ service, key, refusals }: Look, message: string): void {
  refusals.push({ service, key, message })
}

export function uses({ service, key, paths }: Look, path: string, expects: Expects, writable = false): void {
  paths.push({ service, key, path, expects, writable })
}

export const below = (look: Look, key: string): Look => ({ ...look, key: look.key ? `${look.key}.${key}` : key })
const at = (look: Look, index: number): Look => ({ ...look, key: `${look.key}[${index}]` })

export const UNKNOWN_KEY = 'is not known to be harmless, and so not allowed'
export const UNKNOWN_FORM = 'has a form that is not known, and so is not allowed'

export const isAbsent = (value: unknown): boolean => value === false || value === '' || value === 0 || isEmpty(value)

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

export const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
