// The line that shows how far long work has come, and with what it is busy.

import { printable, shortened } from './screen.ts'

/** What the agent tells while it works. */
export type WorkEvent =
  | { type: 'step'; step: number; of: number; status: string; what: string }
  | { type: 'progress'; step: number; percent: number; phase: string }

/** Quick work shows nothing. */
const SHOWN_AFTER_MS = 250
const REDRAW_MS = 120
const BAR = 24

export class Progress {
  readonly #stream: NodeJS.WriteStream
  readonly #started = performance.now()
  readonly #timer: NodeJS.Timeout
  #share: number | undefined
  #what: string
  #of = 1
  #drawn = false

  constructor(stream: NodeJS.WriteStream, what: string) {
    this.#stream = stream
    this.#what = what
    this.#timer = setInterval(() => this.#draw(), REDRAW_MS)
  }

  event(event: WorkEvent): void {
    if (event.type === 'progress') {
      this.at((event.step + event.percent / 100) / this.#of, event.phase)
    } else {
      this.#of = Math.max(1, event.of)
      const share = (event.step + (event.status === 'done' ? 1 : 0)) / this.#of
      this.at(share, [WORDS[event.status] ?? '', event.what].join(' ').trim())
    }
  }

  /** From 0 to 1. */
  at(share: number, what: string): void {
    this.#share = Math.min(1, Math.max(0, share))
    this.#what = what
  }

  /** Takes the line away again. */
  end(): void {
    clearInterval(this.#timer)
    if (this.#drawn) this.#stream.write('\r\x1b[K')
  }

  #draw(): void {
    const elapsed = performance.now() - this.#started
    if (elapsed < SHOWN_AFTER_MS) return
    this.#drawn = true
    const frame = FRAMES[Math.floor(elapsed / REDRAW_MS) % FRAMES.length]
    const bar =
      this.#share === undefined ? '' : ` ${barOf(this.#share)} ${String(Math.floor(this.#share * 100)).padStart(3)} %`
    const seconds = elapsed < 2000 ? '' : `  ${Math.floor(elapsed / 1000)} s`
    const line = `${frame}${bar}  ${printable(this.#what)}${seconds}`
    this.#stream.write(`\r${shortened(line, (this.#stream.columns || 80) - 1)}\x1b[K`)
  }
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const WORDS: Record<string, string> = { failed: 'failed:', undone: 'undone:', undo_failed: 'could not undo:' }

function barOf(share: number): string {
  const full = Math.round(share * BAR)
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`
}
