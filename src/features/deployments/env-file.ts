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

/** In both sorts of quotes a backslash before the quote keeps it from ending the value. */
function closed(raw: string, quote: string): boolean {
  return body(raw.trim(), quote) !== undefined
}

function body(text: string, quote: string): string | undefined {
  const inner = quote === "'" ? /^'((?:[^'\\]|\\[\s\S])*)'/ : /^"((?:[^"\\]|\\[\s\S])*)"/
  return inner.exec(text)?.[1]
}

function unquoted(raw: string): string {
  const text = raw.trim()
  const single = body(text, "'")
  if (single !== undefined) return single.replaceAll("\\'", "'")
  const double = body(text, '"')
  if (double !== undefined)
    return double.replace(/\\([nrtabfv$"\\])/g, (_all, letter: string) => ESCAPES[letter] ?? letter)
  return text.replace(/\s+#.*$/, '')
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b', f: '\f', v: '\v' }

/** Plain where that is safe, in single quotes where Compose would otherwise change it, in double quotes where those can't hold it. */
function quoted(value: string): string {
  if (value === '' || /^[A-Za-z0-9_./:@%+,=-]+$/.test(value)) return value
  if (!/['\\\r\n]/.test(value)) return `'${value}'`
  const escaped = value
    .replace(/[\\"$]/g, letter => `\\${letter}`)
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t')
  return `"${escaped}"`
}
