// Completion, as bash really asks for it; from what is kept, without a server.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { API_KEY, type TestAgent, testAgent } from '../../src/testing/agent.ts'
import { Client } from './client.ts'

const client = new Client()
let agent: TestAgent
before(async () => {
  agent = await testAgent({ empty: true })
  await client.ok(['login', await agent.app.listen({ port: 0 })], { input: API_KEY })
  // What is completed must not need the server.
  await agent.stop()
  await mkdir(join(client.home, 'bin'))
  await symlink(process.execPath, join(client.home, 'bin/node'))
  const main = new URL('../../src/cli/main.ts', import.meta.url).pathname
  await writeFile(join(client.home, 'bin/fairlead'), `#!/bin/sh\nexec node ${main} "$@"\n`, { mode: 0o755 })
})
after(() => client.remove())

/** What bash offers for each line; words are broken at = and : as bash does it. */
async function offered(lines: string[][]): Promise<string[]> {
  const script = [
    'source <(fairlead completion bash)',
    ...lines.map(
      words =>
        `COMP_WORDS=(fairlead ${words.map(word => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _fairlead; echo "\${COMPREPLY[*]}"`,
    ),
  ].join('\n')
  const env = {
    PATH: `${client.home}/bin:/usr/bin:/bin`,
    HOME: client.home,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  }
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], { env, cwd: client.home })
  return stdout.trimEnd().split('\n')
}

test('bash offers areas, operations, flags, words and files', async () => {
  await writeFile(join(client.home, 'compose.yml'), '')
  const lines: [string[], string | RegExp][] = [
    [['us'], 'users'],
    [['log'], 'login logout'],
    [['users', 'cr'], 'create'],
    [['users', ''], /assign .* update-me/],
    [['users', 'create', 'carol', '--ro'], '--role'],
    [['users', 'create', 'carol', '--role', ''], 'admin operator viewer'],
    [['users', 'create', 'carol', '--role', '=', 'ad'], 'admin'],
    [['users', 'create', 'carol', '--permissions', 'plans', ':', 'r'], 'read'],
    [['users', 'create', 'carol', '--permissions', 'plans', ':', 'read,dns'], 'read,dns:read read,dns:write'],
    [['users', 'assign', '1', 'blog', ''], 'read write admin'],
    [['users', 'update', '1', '--no-is'], '--no-is-active'],
    [['users', 'create', 'x', '--password'], '--password-file'],
    [['--profile', ''], 'default'],
    [['--profile', 'default', 'plans', 'ap'], 'apply'],
    [['jobs', 'w'], 'wait'],
    [['completion', ''], 'bash zsh fish'],
    [['deployments', 'create', 'blog', '--compose-file', 'comp'], 'compose.yml'],
    [['nonsense', ''], ''],
  ]
  const offers = await offered(lines.map(([words]) => words))
  for (const [index, [words, expected]] of lines.entries()) {
    if (typeof expected === 'string') assert.equal(offers[index] ?? '', expected, words.join(' '))
    else assert.match(offers[index] ?? '', expected, words.join(' '))
  }
})

test('every shell gets values with what they mean', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    assert.match((await client.ok(['completion', shell])).stdout, new RegExp(`__complete ${shell} `))
    assert.equal((await client.ok(['__complete', shell, 'users', 'cr'])).stdout, 'create\tCreate a user\n')
    assert.equal(
      (await client.ok(['__complete', shell, 'deployments', 'create', '--compose-file', ''])).stdout,
      ':files\n',
    )
  }
})

test('somebody who never logged in is offered what the client itself can do', async () => {
  const fresh = new Client()
  assert.match((await fresh.ok(['__complete', 'bash', 'l'])).stdout, /^login\t.*\nlogout\t.*\n$/)
  fresh.remove()
})
