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
  // What was typed ahead belongs to the next question.
  const typed = { ahead: '' }
  const asked = async (question: string, show: boolean) => {
    stdio.stderr.write(question)
    const line = await rawLine(stdio.stdin, typed, text => show && stdio.stderr.write(text))
    stdio.stderr.write('\n')
    return line
  }
  return {
    possible: isatty(0) && isatty(2),
    ask: question => asked(question, true),
    askHidden: question => asked(question, false),
  }
}

/** One line, read key by key with the terminal's own echo off. */
function rawLine(stdin: ReadStream, typed: { ahead: string }, echo: (text: string) => void): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let line = ''
  const end = (ahead: string) => {
    typed.ahead = ahead
    stdin.off('data', take)
    stdin.setRawMode(false)
    stdin.pause()
    resolve(line)
  }
  const take = (chunk: Buffer | string) => {
    const keys = [...String(chunk)]
    for (const [index, key] of keys.entries()) {
      if (key === '\r' || key === '\n' || (key === '\x04' && line === '')) return end(keys.slice(index + 1).join(''))
      if (key === '\x03') {
        stdin.setRawMode(false)
        process.stderr.write('\n')
        process.exit(130)
      }
      if (key === '\x7f' || key === '\b') {
        if (line !== '') echo('\b \b')
        line = [...line].slice(0, -1).join('')
      } else if (key === '\x15') {
        echo('\b \b'.repeat([...line].length))
        line = ''
      } else if (key >= ' ') {
        line += key
        echo(key)
      }
    }
  }
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  stdin.on('data', take)
  stdin.resume()
  if (typed.ahead !== '') take(typed.ahead)
  return promise
}
