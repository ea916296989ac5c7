// What changed between two texts, as a unified diff; for env files with the keys shown and the values hidden.

import { type StructuredPatch, structuredPatch } from 'diff'

/** A unified diff with three lines around each change; undefined stands for a file that is not there. '' when equal. */
export function textDiff(path: string, before: string | undefined, after: string | undefined): string {
  if (before === after) return ''
  return unified(path, before, after, before?.split('\n') ?? [], after?.split('\n') ?? [])
}

/** The same for an env file: a changed value shows as a changed line whose value is `[redacted]`. */
export function envFileDiff(path: string, before: string | undefined, after: string | undefined): string {
  if (before === after) return ''
  return unified(path, before, after, hideEnvValues(before ?? ''), hideEnvValues(after ?? ''))
}

/** The lines of an env file with only comments and the names of variables left readable. */
export function hideEnvValues(text: string): string[] {
  let quote: string | undefined
  return text.split('\n').map(line => {
    if (quote !== undefined) {
      if (closes(line, quote)) quote = undefined
      return HIDDEN
    }
    if (line.trim() === '') return line
    if (/^\s*#/.test(line)) return line.replace(COMMENTED_OUT, `$1${HIDDEN}`)
    const [, name, value = ''] = ASSIGNMENT.exec(line) ?? []
    if (name === undefined) return HIDDEN
    const [, opened, rest = ''] = /^\s*(['"])(.*)$/s.exec(value) ?? []
    if (opened !== undefined && !closes(rest, opened)) quote = opened
    return value.trim() === '' ? line : `${name}${HIDDEN}`
  })
}

const HIDDEN = '[redacted]'
const ASSIGNMENT = /^(\s*(?:export\s+)?[A-Za-z_][\w.-]*\s*[=:])(.*)$/s
/** A comment is readable, but a variable in it may be one that was switched off, value and all. */
const COMMENTED_OUT = /^([^=]*=|\s*#\s*(?:export\s+)?[A-Z_][A-Z0-9_]*\s*:).+$/s

/** Two texts without a common line cost quadratic time; past this many edits the whole text is shown as replaced. */
const MOST_EDITS = 1000

function unified(
  path: string,
  before: string | undefined,
  after: string | undefined,
  old: string[],
  next: string[],
): string {
  const patch =
    structuredPatch(path, path, before ?? '', after ?? '', undefined, undefined, {
      context: 3,
      maxEditLength: MOST_EDITS,
    }) ?? replaced(before ?? '', after ?? '')
  const lines = [
    `--- ${before === undefined ? '/dev/null' : `a/${path}`}`,
    `+++ ${after === undefined ? '/dev/null' : `b/${path}`}`,
  ]
  for (const hunk of patch.hunks) {
    lines.push(`@@ -${span(hunk.oldStart, hunk.oldLines)} +${span(hunk.newStart, hunk.newLines)} @@`)
    let oldLine = hunk.oldStart - 1
    let newLine = hunk.newStart - 1
    for (const line of hunk.lines) {
      const mark = line[0]
      if (mark === '\\') lines.push(line)
      else if (mark === '-') lines.push(`-${old[oldLine++]}`)
      else if (mark === '+') lines.push(`+${next[newLine++]}`)
      else {
        lines.push(` ${old[oldLine++]}`)
        newLine++
      }
    }
  }
  return `${lines.join('\n')}\n`
}

function replaced(before: string, after: string): Pick<StructuredPatch, 'hunks'> {
  const gone = marked('-', before)
  const come = marked('+', after)
  const hunk = { oldStart: 1, oldLines: count(gone), newStart: 1, newLines: count(come), lines: [...gone, ...come] }
  return { hunks: [hunk] }
}

function marked(mark: string, text: string): string[] {
  if (text === '') return []
  const lines = text.split('\n').map(line => mark + line)
  if (text.endsWith('\n')) return lines.slice(0, -1)
  return [...lines, '\\ No newline at end of file']
}

const count = (lines: string[]) => lines.filter(line => !line.startsWith('\\')).length
/** As diff(1) writes it: an empty side starts one line earlier, a single line leaves its count out. */
const span = (start: number, lines: number) =>
  lines === 1 ? `${start}` : `${lines === 0 ? start - 1 : start},${lines}`
/** Doubtful escapes count as not closing: then more is hidden, never less. */
const closes = (text: string, quote: string) => new RegExp(`(?:^|[^\\\\])${quote}`).test(text)
