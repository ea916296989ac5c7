// Changing the text of the configuration file, and showing a configuration without its secrets.

import { isDeepStrictEqual } from 'node:util'
import { parse } from 'yaml'
import { editYaml, redactYaml } from '../lib/yaml-edit.ts'
import { ConfigError, suggestion } from './parse.ts'
import type { Config, Setting } from './settings.ts'
import { allSettings, childrenOf, keyBelow, nestedConfig, settingOf, settingsByKey } from './shape.ts'

/**
 * The text with a partial, nested patch written into it; comments, order and blank lines stay. null takes a key out
 * (back to its default), "[redacted]" keeps what is stored, in a list item by item. What equals `current` is not
 * written, so that a whole configuration sent back writes only what was changed. The values are not checked: parse the
 * result before it is kept.
 */
export function editConfig(text: string, patch: object, current?: Config): string {
  const stored = storedValues(text)
  return leavesOf('', patch).reduce((edited, { key, value, setting }) => {
    const path = key.split('.')
    if (value === null) return editYaml(edited, path, undefined)
    const kept = setting ? keepRedacted(key, value, current ? settingOf(current, key) : at(stored, path)) : value
    if (kept === undefined || (current && isDeepStrictEqual(settingOf(current, key), kept))) return edited
    return editYaml(edited, path, kept)
  }, text)
}

/** The text with every secret hidden, and whatever no setting is known for. */
export function redactConfigText(text: string): string {
  const hidden = redactYaml(text, path => {
    const setting = settingsByKey.get(path.filter(part => typeof part === 'string').join('.'))
    return setting === undefined || setting.secret === true
  })
  return hidden.replace(/\bfl_[A-Za-z0-9]{40}\b/g, REDACTED)
}

/** The configuration as it may be shown: secrets say "[redacted]", empty ones stay empty. */
export function publicConfig(config: Config): Config {
  return nestedConfig(({ key, secret }) => {
    const value = settingOf(config, key)
    if (!secret || value === '') return value
    return Array.isArray(value) ? value.map(() => REDACTED) : REDACTED
  })
}

/** The keys whose change is in force only after a restart. */
export function restartRequired(before: Config, after: Config): string[] {
  const differs = ({ key }: Setting) => !isDeepStrictEqual(settingOf(before, key), settingOf(after, key))
  return allSettings.filter(setting => setting.restart && differs(setting)).map(({ key }) => key)
}

const REDACTED = '[redacted]'

interface Leaf {
  key: string
  value: unknown
  setting: Setting | undefined
}

function leavesOf(section: string, patch: object): Leaf[] {
  const children = childrenOf(section)
  return Object.entries(patch).flatMap(([name, value]): Leaf[] => {
    const key = keyBelow(section, name)
    const setting = children.get(name)
    if (value === undefined) return []
    if (!children.has(name)) throw problem(key, `${key}: this key is not known${suggestion(section, name)}`)
    if (setting || value === null) return [{ key, value, setting }]
    if (typeof value === 'object' && !Array.isArray(value)) return leavesOf(key, value)
    throw problem(key, `${key}: expected a section with ${[...childrenOf(key).keys()].join(', ')}`)
  })
}

/** The value to write, or undefined when the stored one stays. */
function keepRedacted(key: string, value: unknown, stored: unknown): unknown {
  if (value === REDACTED) return undefined
  if (!Array.isArray(value) || !value.includes(REDACTED)) return value
  const old = Array.isArray(stored) ? stored : []
  if (value.lastIndexOf(REDACTED) < old.length)
    return value.map((item, index) => (item === REDACTED ? old[index] : item))
  throw problem(
    key,
    `${key}: "${REDACTED}" keeps the item stored at its place in the list, and only ${old.length} are stored`,
  )
}

function storedValues(text: string): unknown {
  try {
    return parse(text, { prettyErrors: false })
  } catch {
    throw problem('', 'The configuration file is not valid YAML: mend it by hand before it can be changed here.')
  }
}

const at = (root: unknown, path: string[]) =>
  path.reduce<unknown>(
    (inner, part) =>
      inner !== null && typeof inner === 'object' ? (inner as Record<string, unknown>)[part] : undefined,
    root,
  )

const problem = (key: string, message: string) => new ConfigError([{ key, message }])
