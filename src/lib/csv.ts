// Lines of CSV that a spreadsheet reads as text: quoted where needed, and never as a formula.

export function csvLine(values: readonly unknown[]): string {
  return `${values.map(csvField).join(',')}\r\n`
}

function csvField(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (!SUSPECT.test(text)) return text
  // A cell that begins like a formula would be run by the program that opens the file.
  const harmless = /^[\s]*[=+\-@|%]/.test(text) || /^[\t\r\n]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** What needs a second look. */
const SUSPECT = /[",\r\n]|^\s*[=+\-@|%]|^\t/
