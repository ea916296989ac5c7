// From the text of the configuration file and the environment to a checked configuration, or to what is wrong with them.

import { dirname, resolve } from 'node:path'
import { isAlias, isMap, isScalar, LineCounter, type Node, parseDocument, type YAMLMap } from 'yaml'
import { nearMiss } from '../lib/near-miss.ts'
import type { Config, Setting } from './settings.ts'
import {
  allSettings,
  childrenOf,
  environmentName,
  expectation,
  fits,
  keyBelow,
  nestedConfig,
  otherVariables,
  settingsByKey,
} from './shape.ts'

export interface ParsedConfig {
  config: Config
  /** The keys that an environment variable sets. */
  fromEnv: string[]
  warnings: string[]
  /** Whether the text itself holds a secret. */
  holdsSecrets: boolean
}

export interface ConfigProblem {
  /** The setting, or the unknown key as it was written. */
  key: string
  line?: number
  message: string
}

/** The configuration cannot be used; the message is one line for a person, `problems` has each by its key. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    const [first, ...others] = problems
    const more = others.length > 0 ? ` (and ${others.length} more: ${others.map(({ key }) => key).join(', ')})` : ''
    super(`${first?.message ?? 'The configuration is not valid.'}${more}`)
    this.name = 'ConfigError'
    this.problems = problems
  }
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The environment wins over the file, the file over the defaults. Relative paths start at the folder of `file`. */
export function parseConfig(text: string, { file, env }: { file: string; env: Environment }): ParsedConfig {
  const problems: ConfigProblem[] = []
  const inFile = valuesOfText(text, file, problems)
  const inEnv = valuesOfEnvironment(env, problems)
  const folder = dirname(resolve(file))
  const config = nestedConfig(setting => {
    const value = inEnv.get(setting.key) ?? inFile.get(setting.key) ?? setting.default
    return setting.path && value !== '' ? resolve(folder, String(value)) : value
  })
  problems.push(...contradictions(config, file))
  if (problems.length > 0) throw new ConfigError(problems)
  const holdsSecrets = allSettings.some(({ key, secret }) => secret && !isEmpty(inFile.get(key)))
  return { config, fromEnv: [...inEnv.keys()], warnings: doubts(config), holdsSecrets }
}

/** What a key that does not exist was most likely meant to be, as the end of a sentence. */
export function suggestion(section: string, name: string): string {
  if (section === '' && settingsByKey.has(name))
    return `; write it nested, as "${name.replaceAll('.', ': ')}: …" on lines of their own`
  const sibling = nearMiss(name, childrenOf(section).keys())
  const elsewhere = allSettings.find(({ key }) => key.endsWith(`.${name}`))?.key
  const meant = sibling === undefined ? elsewhere : keyBelow(section, sibling)
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

function valuesOfText(text: string, file: string, problems: ConfigProblem[]): Map<string, unknown> {
  const lines = new LineCounter()
  const lineOf = (at: number | undefined) => lines.linePos(at ?? 0).line
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const values = new Map<string, unknown>()
  const [broken] = document.errors
  if (broken) {
    const line = lineOf(broken.pos[0])
    // Some of the parser's sentences end with the text at that place, which may be a secret.
    const words = broken.message.replace(/: ".*$/s, '')
    problems.push({ key: '', line, message: `${file}:${line}: this is not valid YAML: ${words}` })
    return values
  }

  const problem = (key: string, at: Node | null | undefined, message: string) => {
    const line = lineOf(at?.range?.[0])
    problems.push({ key, line, message: `${file}:${line}: ${key === '' ? '' : `${key}: `}${message}` })
  }

  const readSection = (section: string, map: YAMLMap): void => {
    const children = childrenOf(section)
    for (const { key: keyNode, value } of map.items as { key: Node; value: Node | null }[]) {
      const name = isScalar(keyNode) ? String(keyNode.value) : String(keyNode)
      const key = keyBelow(section, name)
      const setting = children.get(name)
      const node = isAlias(value) ? value.resolve(document) : value
      if (!children.has(name)) problem(key, keyNode, `this key is not known${suggestion(section, name)}`)
      else if (!node) value && problem(key, value, 'this alias leads nowhere')
      else if (isScalar(node) && node.value === null) continue
      else if (setting) readValue(setting, node)
      else if (isMap(node)) readSection(key, node)
      else problem(key, value, `expected a section with ${[...childrenOf(key).keys()].join(', ')}`)
    }
  }

  const readValue = (setting: Setting, node: Node): void => {
    try {
      const value: unknown = node.toJS(document)
      const wrong = faultOf(setting, value)
      if (wrong) problem(setting.key, node, wrong)
      else values.set(setting.key, value)
    } catch {
      problem(setting.key, node, 'an alias in it leads nowhere')
    }
  }

  const { contents } = document
  if (isMap(contents)) readSection('', contents)
  else if (contents !== null && !(isScalar(contents) && contents.value === null)) {
    problem('', contents, 'expected sections such as "api:", each with its keys')
  }
  return values
}

function valuesOfEnvironment(env: Environment, problems: ConfigProblem[]): Map<string, unknown> {
  const names = new Map(allSettings.map(setting => [environmentName(setting.key), setting]))
  const values = new Map<string, unknown>()
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('FAIRLEAD_') || text === undefined || otherVariables.includes(name)) continue
    const setting = names.get(name)
    if (!setting) {
      const meant = nearMiss(name, [...names.keys(), ...otherVariables])
      problems.push({
        key: name,
        message: `The environment variable ${name} sets nothing${meant ? `; did you mean ${meant}?` : '; take it away.'}`,
      })
      continue
    }
    const value = fromText(setting, text)
    const wrong = faultOf(setting, value)
    if (wrong)
      problems.push({ key: setting.key, message: `The environment variable ${name} (${setting.key}): ${wrong}` })
    else values.set(setting.key, value)
  }
  return values
}

function fromText({ schema }: Setting, text: string): unknown {
  const { type } = schema as { type?: string }
  if (type === 'array') return text.trim() === '' ? [] : text.split(',').map(item => item.trim())
  if (type === 'integer') return /^-?\d{1,16}$/.test(text) ? Number(text) : text
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  return text
}

/** What is wrong with a value, or undefined. The value of a secret is never quoted. */
function faultOf(setting: Setting, value: unknown): string | undefined {
  const check = setting.check as ((value: unknown) => string | undefined) | undefined
  const wanted = fits(setting, value) ? check?.(value) : expectation(setting)
  if (wanted === undefined) return undefined
  const quotes =
    wanted.startsWith('a text') && ['number', 'boolean'].includes(typeof value) ? ' (put it in quotes)' : ''
  return `expected ${wanted}${quotes}${setting.secret ? '' : `, found ${shortened(JSON.stringify(value))}`}`
}

/** Settings that are fine alone and impossible together. */
function contradictions({ api }: Config, file: string): ConfigProblem[] {
  if ((api.tls.cert === '') === (api.tls.key === '')) return []
  const key = api.tls.cert === '' ? 'api.tls.cert' : 'api.tls.key'
  return [{ key, message: `${file}: ${key}: expected a file, because api.tls.cert and api.tls.key belong together` }]
}

/** What works, but is likely a mistake. */
function doubts({ auth, api }: Config): string[] {
  const found: string[] = []
  if (!auth.enabled && !LOOPBACK.test(api.host)) {
    found.push(`auth.enabled is false and api.host is ${api.host}: whoever reaches this address is an administrator.`)
  }
  if (auth.jwt_secret !== '' && auth.jwt_secret.length < 32) {
    found.push('auth.jwt_secret is short enough to be guessed: take at least 32 random characters.')
  }
  if (auth.api_keys.some(key => key.length < 16)) {
    found.push('auth.api_keys holds a key short enough to be guessed: take at least 16 random characters.')
  }
  if (api.enable_cors && api.allowed_origins.length === 0) {
    found.push('api.enable_cors is true, but api.allowed_origins lists no origin: no browser is answered.')
  }
  return found
}

const LOOPBACK = /^(127\.[\d.]+|::1|localhost)$/

const shortened = (text = 'nothing') => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
const isEmpty = (value: unknown) => value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
