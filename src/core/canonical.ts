// One text for one value, whatever the order of its keys: what digests and ETags are made from.

import { hash } from 'node:crypto'

export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return `{${entries
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`)
    .join(',')}}`
}

/** `"revision.state"`: `If-None-Match` compares the whole, `If-Match` the part before the dot. */
export function etagOf(body: string, revision?: string): string {
  const state = hash('sha1', body, 'hex')
  return revision === undefined ? `"${state}"` : `"${revision}.${state}"`
}

/** True when one of the listed tags names this version. */
export function matches(header: string, etag: string): boolean {
  const version = (tag: string) => tag.trim().replace(/^W\//, '').replaceAll('"', '').split('.')[0]
  return header.split(',').some(tag => tag.trim() === '*' || version(tag) === version(etag))
}

export const revisionOf = (value: unknown): string => hash('sha1', canonical(value), 'hex')
