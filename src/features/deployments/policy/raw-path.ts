// A path as it stands in the raw text: what it says once its variables are filled in, or why that cannot be told.

import { isAbsolute, resolve } from 'node:path'
import { OUTSIDE } from './inside.ts'
import { plainVariable } from './raw-env.ts'

export type RawPath =
  | { readonly refused: string; readonly path?: undefined }
  | { readonly refused?: undefined; readonly path: string }

/** `envText` undefined: variables cannot be told here at all, because a file inside another has further sources. */
export function rawPath(text: string, base: string, envText: string | null | undefined): RawPath {
  const filled = text.includes('$') ? filledIn(text, envText) : text
  if (filled === undefined) return { refused: NOT_TOLD }
  if (isRemote(filled)) return { refused: REMOTE }
  if (filled.startsWith('~')) return { refused: OUTSIDE }
  if (!plain.test(filled)) return { refused: 'holds a character that no path needs here: rename the file' }
  return { path: isAbsolute(filled) ? resolve(filled) : resolve(base, filled) }
}

const NOT_TOLD =
  'holds a variable whose value cannot be told for certain before Compose runs: write the path out, or set it in .env as NAME=value'
const REMOTE = 'is not a path of the deployment: only its own files can be read'

/** Compose takes these for a repository or a registry before it looks for a file. */
const isRemote = (path: string): boolean => path.includes(':') || /^(?:github\.com|git@)/i.test(path)

const plain = /^[\p{L}\p{M}\p{N} _.,+@()=/-]*$/u

/** Only the plain forms: `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME-word}`. */
function filledIn(text: string, envText: string | null | undefined): string | undefined {
  if (envText === undefined) return undefined
  let isKnown = true
  const filled = text.replaceAll(variable, (_all, bare, braced, operator, word) => {
    const value = plainVariable(envText, bare ?? braced)
    if (value === undefined || (value === null && operator === undefined)) isKnown = false
    const isSet = operator === ':-' ? value !== null && value !== '' : value !== null
    return (isSet ? value : word) ?? ''
  })
  return isKnown && !filled.includes('$') ? filled : undefined
}

const variable = /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?-)([^${}]*))?\})/g
