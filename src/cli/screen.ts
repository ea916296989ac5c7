// Where the client writes: results to standard output, everything about them to standard error.

export interface Screen {
  /** People look at standard output: fit it to their window, in colour, with times as they speak of them. */
  people: boolean
  /** Standard output and standard error are both a terminal: progress may be drawn. */
  live: boolean
  columns: number
  paint(colour: Colour, text: string): string
  print(text: string): void
  note(text: string): void
}

export type Colour = keyof typeof CODES

export function openScreen(
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
  env: Record<string, string | undefined>,
): Screen {
  const people = stdout.isTTY === true
  const colours = people && !env.NO_COLOR && env.TERM !== 'dumb'
  return {
    people,
    live: people && stderr.isTTY === true && env.TERM !== 'dumb',
    columns: people ? stdout.columns || 80 : Number.POSITIVE_INFINITY,
    paint: (colour, text) => (colours && text !== '' ? `\x1b[${CODES[colour]}m${text}\x1b[0m` : text),
    print: text => void stdout.write(`${text}\n`),
    note: text => void stderr.write(`${text}\n`),
  }
}

/** Text of others must not steer the terminal: control characters become visible, and one line stays one line. */
export function printable(text: string): string {
  return text.replace(/\r?\n/g, ' ').replace(CONTROLS, shown)
}

/** The same for a line of a log, whose colours people want to see. */
export function printableLog(text: string): string {
  return text.replace(NOT_COLOURS, shown)
}

/** How many places a text takes on a terminal. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const character of text.replace(COLOURS, ''))
    width += NO_PLACE.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}

export function shortened(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  for (const character of text) {
    if (widthOf(kept + character) > width - 1) break
    kept += character
  }
  return `${kept}…`
}

const CODES = { red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36, dim: 2, bold: 1 }

const shown = (control: string): string =>
  control === '\t' ? '  ' : `\\x${control.charCodeAt(0).toString(16).padStart(2, '0')}`
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\x00-\x1f\x7f-\x9f]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const COLOURS = /\x1b\[[\d;]*m/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape is fine only as the start of a colour
const NOT_COLOURS = /\x1b(?!\[[\d;]*m)|[\x00-\x1a\x1c-\x1f\x7f-\x9f]/g
const NO_PLACE = /[\p{Mn}\p{Me}\p{Cf}]/u
const WIDE =
  /[\p{Extended_Pictographic}\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]/u
