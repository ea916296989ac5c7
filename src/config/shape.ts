// The nested form of the settings: as values, as a schema, as names in the environment, and in words.

import { type TSchema, Type } from '../lib/type.ts'
import { type Config, type Setting, settings } from './settings.ts'

export const allSettings: readonly Setting[] = settings

export const settingsByKey: ReadonlyMap<string, Setting> = new Map(allSettings.map(setting => [setting.key, setting]))

/** `api.port` → `FAIRLEAD_API_PORT`. */
export const environmentName = (key: string): string => `FAIRLEAD_${key.toUpperCase().replaceAll('.', '_')}`

/** Variables with our prefix that set no key: for finding the configuration, for the client and for the set-up. */
export const otherVariables: readonly string[] = [
  'FAIRLEAD_CONFIG',
  'FAIRLEAD_URL',
  'FAIRLEAD_API_KEY',
  'FAIRLEAD_NO_INSTALL',
]

/** The names right below a section ('' is the top): a setting, or undefined for a section of its own. */
export function childrenOf(section: string): Map<string, Setting | undefined> {
  const start = section === '' ? '' : `${section}.`
  const below = allSettings.filter(({ key }) => key.startsWith(start))
  return new Map(
    below.map(({ key }) => {
      const [name = ''] = key.slice(start.length).split('.')
      return [name, settingsByKey.get(start + name)]
    }),
  )
}

export const keyBelow = (section: string, name: string): string => (section === '' ? name : `${section}.${name}`)

/** The value of one setting in a configuration. */
export function settingOf(config: Config, key: string): unknown {
  return key.split('.').reduce<unknown>((inner, part) => (inner as Record<string, unknown>)[part], config)
}

/** The nested form out of a value for each setting. */
export const nestedConfig = (pick: (setting: Setting) => unknown): Config => nest('', pick) as Config

function nest(section: string, pick: (setting: Setting) => unknown): Record<string, unknown> {
  const fields = [...childrenOf(section)].map(([name, setting]) => [
    name,
    setting ? pick(setting) : nest(keyBelow(section, name), pick),
  ])
  return Object.fromEntries(fields)
}

/** The nested schema of all settings. In a patch everything may be left out, and null puts a setting back to its default. */
export function configSchema(form: 'whole' | 'patch', section = ''): TSchema {
  const fields = [...childrenOf(section)].map(([name, setting]): [string, TSchema] => {
    const schema = setting ? fieldSchema(setting, form) : configSchema(form, keyBelow(section, name))
    return [name, form === 'patch' ? Type.Optional(schema) : schema]
  })
  return Type.Object(Object.fromEntries(fields))
}

function fieldSchema({ schema, secret, meaning }: Setting, form: 'whole' | 'patch'): TSchema {
  const field = { ...schema, ...(secret ? marked(schema) : {}), description: meaning }
  return form === 'patch' ? Type.Union([field, Type.Null()]) : field
}

/** Secrets carry the mark by which the agent redacts; in a list each item does. */
function marked(schema: TSchema): object {
  const mark = { format: 'password', 'x-secret': true }
  const { items } = schema as { items?: object }
  return items ? { items: { ...items, ...mark } } : mark
}

/** Whether a setting takes this value, by its schema. */
export function fits({ schema }: Setting, value: unknown): boolean {
  const { type, enum: words, items, minimum = 0, maximum = 0, minLength = 0 } = schema as Described
  const isText = (text: unknown, shortest = 0) => typeof text === 'string' && [...text].length >= shortest
  if (words) return words.includes(value as string)
  if (type === 'boolean') return typeof value === 'boolean'
  if (type === 'array') return Array.isArray(value) && value.every(item => isText(item, items?.minLength))
  if (type === 'string') return isText(value, minLength)
  return Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum
}

/** What a setting takes, in words. */
export function expectation({ schema }: Setting): string {
  const { type, enum: words, minimum, maximum, minLength } = schema as Described
  if (words) return `one of ${words.join(', ')}`
  if (type === 'boolean') return 'true or false'
  if (type === 'array') return 'a list of texts'
  if (type === 'string') return minLength ? 'a text that is not empty' : 'a text'
  const bounds = maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`
  return `a whole number ${bounds}`
}

interface Described {
  type?: string
  enum?: string[]
  minimum?: number
  maximum?: number
  minLength?: number
  items?: { minLength?: number }
}
