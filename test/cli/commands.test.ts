// Every operation as a command: its example, its help and its flags come out of the document alone.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { parseArguments } from '../../src/cli/arguments.ts'
import { type Command, commandsOf } from '../../src/cli/document.ts'
import { exampleOf } from '../../src/cli/example.ts'
import { findCommand } from '../../src/cli/find.ts'
import { flagsOf } from '../../src/cli/flags.ts'
import { commandHelp } from '../../src/cli/help.ts'
import { inputOf } from '../../src/cli/input.ts'
import { isSecret } from '../../src/cli/schema.ts'
import type { Screen } from '../../src/cli/screen.ts'
import { type TestAgent, testAgent } from '../../src/testing/agent.ts'
import { probe } from './probe.ts'

let agent: TestAgent
let commands: Command[]
before(async () => {
  agent = await testAgent({ extra: probe, empty: true })
  commands = commandsOf((await agent.request('GET /api/openapi.json')).body)
})
after(() => agent.stop())

const sources = { env: {}, read: async () => '[redacted]', ask: async () => '[redacted]', warn: () => {} }

test('there is a command for every operation, and its words lead back to it', () => {
  assert.deepEqual(
    [...agent.door.operations.keys()].filter(id => !commands.some(command => command.id === id)),
    [],
  )
  for (const command of commands) {
    const found = findCommand(commands, command.words)
    assert.ok('command' in found && found.command === command, command.id)
  }
})

test('the example of a command, typed, sends the example of its operation', async () => {
  for (const command of commands) {
    const line = exampleOf(command)
    const words = shellSplit(line).slice(1 + command.words.length)
    const args = parseArguments(words, flagsOf(command), command.id)
    const { path, query, body } = await inputOf(command, args, sources)
    for (const { name, where, example, schema } of command.fields) {
      if (example === undefined || isSecret(schema)) continue
      const sent = { path, query, body }[where][name]
      const same = JSON.stringify(sent) === JSON.stringify(example) || String(sent) === String(example)
      const left = sent === undefined && JSON.stringify(example) === JSON.stringify(schema.default)
      const content = name.endsWith('_content') && sent === '[redacted]'
      const empty = sent === undefined && Array.isArray(example) && example.length === 0
      assert.ok(
        same || left || content || empty,
        `${line}: ${name} is ${JSON.stringify(sent)}, not ${JSON.stringify(example)}`,
      )
    }
  }
})

test('help of every command names its arguments and flags, and no secret to be typed', () => {
  for (const command of commands) {
    const text = helpOf(command)
    assert.match(text, new RegExp(`^Usage: fairlead ${command.words.join(' ')}`, 'm'))
    assert.match(text, /^Needs: /m)
    for (const field of command.fields) {
      const shown = field.name.replaceAll('_', '-').replace(/-(vars|content)$/, '')
      assert.ok(
        text.includes(shown) || text.includes(field.name.toUpperCase()),
        `${command.id}: ${field.name} is not in its help`,
      )
      if (isSecret(field.schema)) assert.doesNotMatch(text, new RegExp(`--${shown} [A-Z]`), command.id)
    }
  }
})

test('no two flags of a command have the same name', () => {
  for (const command of commands) {
    const names = flagsOf(command).map(flag => flag.name)
    assert.deepEqual(
      names.filter((name, index) => names.indexOf(name) !== index),
      [],
      command.id,
    )
  }
})

function helpOf(command: Command): string {
  const lines: string[] = []
  const screen: Screen = {
    people: false,
    live: false,
    columns: 200,
    paint: (_colour, text) => text,
    print: text => void lines.push(text),
    note: () => {},
  }
  commandHelp(screen, command)
  return lines.join('\n')
}

/** As a shell takes single quotes apart. */
function shellSplit(line: string): string[] {
  return [...line.matchAll(/(?:[^\s']+|'[^']*')+/g)].map(([word]) =>
    word.replaceAll("'\\''", '\0').replaceAll("'", '').replaceAll('\0', "'"),
  )
}
