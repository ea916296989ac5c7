// Questions on a terminal. What is typed for a secret is never shown.

import { isatty, type ReadStream } from 'node:tty'

export interface Prompt {
  /** Standard input and standard error are terminals: somebody can be asked. */
  possible: boolean
  ask(question: string): Promise<string>
  askHidden(question: string): Promise<string>
}

/** Standard input is opened by the first question, not before: a run that asks nothing leaves it alone. */
export function openPrompt(stdio: { stdin: ReadStream; stderr: NodeJS.WriteStream }): Prompt {
  const keys = new Keys(() => stdio.stdin)
  const asked = async (question: string, show: boolean) => {
    // First the terminal's own echo goes, then the question comes: the answer may be typed at once.
    keys.hold()
    stdio.stderr.write(question)
    const line = await keys.line(text => show && stdio.stderr.write(text))
    stdio.stderr.write('\n')
    keys.release()
    return line
  }
  return {
    possible: isatty(0) && isatty(2),
    ask: question => asked(question, true),
    askHidden: question => asked(question, false),
  }
}

/** A terminal read key by key, with its own echo off. */
class Keys {
  readonly #stdin: () => ReadStream
  /** What was typed ahead belongs to the next question. */
  #ahead = ''
  #releasing: NodeJS.Immediate | undefined

  constructor(stdin: () => ReadStream) {
    this.#stdin = stdin
  }

  hold(): void {
    clearImmediate(this.#releasing)
    this.#stdin().setRawMode(true)
  }

  /** A moment later, so that nothing is shown between one question and the next. */
  release(): void {
    this.#releasing = setImmediate(() => this.#stdin().setRawMode(false))
  }

  line(echo: (text: string) => void): Promise<string> {
    const stdin = this.#stdin().setEncoding('utf8')
    const { promise, resolve } = Promise.withResolvers<string>()
    let line = ''
    const take = (typed: string) => {
      const keys = [...typed]
      for (const [index, key] of keys.entries()) {
        if (key === INTERRUPT) interrupt()
        if (ENDS.includes(key) || (key === END_OF_INPUT && line === '')) {
          this.#ahead = keys.slice(index + 1).join('')
          stdin.off('data', take).pause()
          return resolve(line)
        }
        const next = edited(line, key)
        echo(next.length < line.length ? '\b \b'.repeat([...line].length - [...next].length) : next.slice(line.length))
        line = next
      }
    }
    stdin.on('data', take).resume()
    const ahead = this.#ahead
    this.#ahead = ''
    if (ahead !== '') take(ahead)
    return promise
  }
}

const INTERRUPT = '\x03'
const END_OF_INPUT = '\x04'
const ENDS = ['\r', '\n']
const BACKSPACES = ['\x7f', '\b']
const ERASE_LINE = '\x15'

function edited(line: string, key: string): string {
  if (BACKSPACES.includes(key)) return [...line].slice(0, -1).join('')
  if (key === ERASE_LINE) return ''
  return key < ' ' ? line : line + key
}

function interrupt(): never {
  process.stderr.write('\n')
  process.exit(130)
}
