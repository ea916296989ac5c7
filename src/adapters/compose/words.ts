// Compose's own words: progress lines for programs, and errors for people, without noise and without foreign paths.

import { realpathSync } from 'node:fs'

/** `id` is what it is about (`Container blog-web-1`), `status` what became of it (`Started`), `text` the whole line. */
export type ComposeProgress = { readonly id: string; readonly status: string; readonly text: string }

/** A line of `--progress json` or `--progress plain`; undefined when it is none. */
export function progressOf(line: string): ComposeProgress | undefined {
  const json = jsonLine(line)
  if (json) {
    if (typeof json.id !== 'string' || !json.id) return undefined
    const status = [json.status, json.text].filter(part => typeof part === 'string' && part !== '').join(' ')
    return { id: json.id, status, text: `${json.id} ${status}` }
  }
  const plain = /^ (\S+) "?(\S+?)"? {2}(\S.*)$/.exec(line)
  if (!plain) return undefined
  const [, kind, name, status = ''] = plain
  return { id: `${kind} ${name}`, status: status.trim(), text: `${kind} ${name} ${status.trim()}` }
}

/** What of the complaints of a failed run is the error: without progress, without warnings. */
export function errorOf(stderr: string): string {
  const lines = stderr.split('\n').flatMap(line => {
    const json = jsonLine(line)
    if (json) return json.error === true ? [String(json.message)] : []
    return progressOf(line) ? [] : [line]
  })
  return lines.join('\n')
}

/** Compose's words as one would quote them: no log prefixes, and no path but those of the deployment, told from its folder. */
export function composeWords(said: string, folder: string): string {
  const lines = said
    .split('\n')
    .filter(line => !logLine.test(line) || /level="?(?:error|fatal)/.test(line))
    .map(line => logLine.exec(line)?.groups?.message ?? line)
    .map(line => withoutPaths(line, folder).trim())
    .filter(line => line !== '')
  return lines.join('\n').slice(-maxWords) || 'it failed without saying why'
}

/** The warnings among the complaints, such as a variable that is not set. */
export function warningsOf(stderr: string, folder: string): string[] {
  return stderr.split('\n').flatMap(line => {
    if (!/level="?warning/.test(line)) return []
    const message = logLine.exec(line)?.groups?.message
    return message ? [withoutPaths(message.replaceAll('\\"', '"'), folder)] : []
  })
}

const maxWords = 2000
const logLine = /^time="[^"]*" level=\S+ msg="?(?<message>.*?)"?$/
const outside = '(a path outside the deployment)'

function jsonLine(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function withoutPaths(line: string, folder: string): string {
  const inside = [...new Set([folder, realPath(folder)])]
  const relative = inside.reduce((text, path) => text.replaceAll(`${path}/`, '').replaceAll(path, '.'), line)
  return relative
    .replaceAll(/^validating (\S+): /g, '$1: ')
    .replaceAll(/(?<=^|[\s"'`(=:,[])\/(?!\/)[^\s"'`:,)\]]+/g, outside)
    .replaceAll(/(?<=^|[\s"'`(=:,[])(?:\.\.\/)+[^\s"'`:,)\]]*/g, outside)
}

function realPath(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
