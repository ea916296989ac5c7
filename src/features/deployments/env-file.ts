// Editing `.env`: the whole set of variables becomes what was asked for, while comments and kept lines stay as a person wrote them.

export interface EnvVar {
  key: string
  value: string
}

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=(.*)$/s

/** The variables of an env file, as Compose reads them: the last of a name counts. */
export function envVars(text: string | null): EnvVar[] {
  const found = new Map<string, string>()
  for (const { key, raw } of entries(text ?? '')) if (key !== undefined) found.set(key, unquoted(raw))
  return [...found].map(([key, value]) => ({ key, value }))
}

/** The text with exactly these variables. A variable that keeps its value keeps its line, to the letter. */
export function withEnvVars(text: string | null, wanted: readonly EnvVar[]): string {
  const open = new Map(wanted.map(({ key, value }) => [key, value]))
  const lines: string[] = []
  for (const { key, line, raw } of entries(text ?? '')) {
    if (key === undefined) lines.push(line)
    else if (open.has(key)) {
      const value = open.get(key) as string
      lines.push(unquoted(raw) === value ? line : `${key}=${quoted(value)}`)
      open.delete(key)
    }
  }
  while (lines.at(-1) === '') lines.pop()
  const added = [...open].map(([key, value]) => `${key}=${quoted(value)}`)
  const all = [...lines, ...added]
  return all.length === 0 ? '' : `${all.join('\n')}\n`
}

interface Entry {
  key: string | undefined
  line: string
  raw: string
}

/** A line each; a quoted value may go over several. */
function entries(text: string): Entry[] {
  const found: Entry[] = []
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  while (lines.length > 0) {
    let line = lines.shift() as string
    const match = /^\s*#/.test(line) ? null : ASSIGNMENT.exec(line)
    if (!match) {
      found.push({ key: undefined, line, raw: '' })
      continue
    }
    const quote = /^\s*(["'])/.exec(match[2] as string)?.[1]
    while (quote && !closed((ASSIGNMENT.exec(line) as RegExpExecArray)[2] as string, quote) && lines.length > 0)
      line += `\n${lines.shift()}`
    found.push({ key: match[1], line, raw: (ASSIGNMENT.exec(line) as RegExpExecArray)[2] as string })
  }
  return found
}

function closed(raw: string, quote: string): boolean {
  const body = raw.trim().slice(1)
  return quote === "'" ? body.includes("'") : /(^|[^\\])(\\\\)*"/.test(body)
}

function unquoted(raw: string): string {
  const text = raw.trim()
  if (text.startsWith("'")) return text.slice(1, text.indexOf("'", 1))
  if (text.startsWith('"')) {
    const body = /^"((?:[^"\\]|\\.)*)"/s.exec(text)?.[1] ?? text.slice(1)
    return body.replace(/\\(.)/gs, (_all, letter: string) => ({ n: '\n', r: '\r', t: '\t' })[letter] ?? letter)
  }
  return text.replace(/\s+#.*$/, '')
}

/** Plain where that is safe, in single quotes where Compose would otherwise change it. */
function quoted(value: string): string {
  if (value === '' || /^[A-Za-z0-9_./:@%+,=-]+$/.test(value)) return value
  if (!value.includes("'")) return `'${value}'`
  const escaped = value
    .replace(/[\\"$]/g, letter => `\\${letter}`)
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t')
  return `"${escaped}"`
}
