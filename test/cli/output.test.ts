// What is printed and sent: tables, JSON, plans, flags of every shape, and what is said about mistakes.

import assert from 'node:assert/strict'
import { readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { A_PLAN, API_KEY, PASSWORD, type TestAgent, testAgent } from '../../src/testing/agent.ts'
import { Client, type How } from './client.ts'
import { probe } from './probe.ts'

let agent: TestAgent
const client = new Client()
const log: string[] = []
before(async () => {
  agent = await testAgent({ extra: probe, log: { write: line => void log.push(line) } })
  await client.ok(['login', await agent.app.listen({ port: 0 })], { input: API_KEY })
})
after(async () => {
  await agent.stop()
  client.remove()
})

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are what is looked for
const COLOUR = /\x1b\[\d+m/g
const cacheFile = () => {
  const { port } = agent.app.server.address() as { port: number }
  return [`http://127.0.0.1:${port}`, `http://[::1]:${port}`].map(url =>
    join(client.home, '.cache/fairlead', `${encodeURIComponent(url)}.json`),
  )
}

test('a list is a table, without colour and with times as they are when nobody watches', async () => {
  const { stdout } = await client.ok(['users', 'list'])
  const [head = '', ...rows] = stdout.trimEnd().split('\n')
  assert.match(head, /^ID +USERNAME +EMAIL +ROLE +PERMISSIONS +IS ACTIVE +CREATED AT +LAST LOGIN AT +DEPLOYMENTS$/)
  assert.equal(rows.length, 4)
  assert.match(rows[1] ?? '', /^2 +bob +operator +yes +\d{4}-\d\d-\d\dT[\d:.]+Z +shop write$/)
  assert.ok(!stdout.includes('\x1b'))
})

test('on a terminal a table fits, is coloured, and says times as people do; NO_COLOR is heard', async () => {
  for (const command of [
    ['users', 'list'],
    ['audit', 'events'],
    ['plans', 'list'],
  ]) {
    const { text } = await client.terminal(command).end()
    for (const line of text.split('\r\n')) assert.ok(line.replaceAll(COLOUR, '').length <= 80, `${command}: ${line}`)
    assert.ok(text.includes('\x1b[1m'))
    assert.match(text, /ago|now/)
  }
  const plain = await client.terminal(['users', 'list'], { env: { NO_COLOR: '1' } }).end()
  assert.ok(!plain.text.includes('\x1b[1m'))
  assert.match((await client.terminal(['plans', 'list']).end()).text, new RegExp(A_PLAN), 'an id is never cut')
})

test('--json is the body of the server, of an answer and of an error', async () => {
  // One who never logs in: times of logins are written a moment later.
  const { stdout } = await client.ok(['users', 'get', '3', '--json'])
  assert.equal(stdout, `${(await agent.request('GET /api/users/3')).body}\n`)
  const missing = await client.run(['users', 'get', '99', '--json'])
  assert.deepEqual(
    [missing.code, missing.stdout, missing.stderr],
    [1, `${(await agent.request('GET /api/users/99')).body}\n`, 'fairlead: There is no user "99".\n'],
  )
  const refused = await client.run(['users', 'create', 'bob', '--password-file', '-', '--json'], { input: PASSWORD })
  assert.equal(JSON.parse(refused.stdout).code, 'ALREADY_EXISTS')
})

test('--quiet prints what addresses each thing, --columns what is asked for', async () => {
  assert.equal((await client.ok(['users', 'list', '--quiet'])).stdout, '1\n2\n3\n4\n')
  assert.equal((await client.ok(['deployments', 'list', '-q'])).stdout, 'blog\nshop\n')
  assert.equal(
    (await client.ok(['users', 'list', '--columns', 'username,is-active'])).stdout,
    'USERNAME  IS ACTIVE\nalice     yes\nbob       yes\nvera      yes\nnina      yes\n',
  )
  assert.equal((await client.ok(['system', 'health', '--columns', 'checks.store.status'])).stdout, 'ok\n')
  const wrong = await client.run(['users', 'list', '--columns', 'usrname'])
  assert.deepEqual([wrong.code, /no column usrname\. Did you mean username\?/.test(wrong.stderr)], [2, true])
})

test('one record is names and values; an empty list says so, beside standard output', async () => {
  const { stdout } = await client.ok(['users', 'get', '3'])
  assert.match(stdout, /^id: +3\nusername: +vera\nemail: +-\nrole: +viewer\n/)
  assert.match(stdout, /deployments:\n {2}DEPLOYMENT NAME {2}ACCESS LEVEL\n {2}shop +read\n$/)
  assert.deepEqual(await client.ok(['probe', 'nothing']), { code: 0, stdout: '', stderr: 'No nothing.\n' })
})

test('a login that is refused as an operation is an answer, not the end of the own login', async () => {
  const { code, stderr } = await client.run(['auth', 'login', '--username', 'bob', '--password-file', '-'], {
    input: 'wrong',
  })
  assert.deepEqual([code, stderr], [1, 'fairlead: Invalid username or password\n'])
})

test('a page that is not the last says how to go on', async () => {
  const { stdout, stderr } = await client.ok(['audit', 'events', '--limit', '2'])
  assert.equal(stdout.trimEnd().split('\n').length, 3)
  assert.match(stderr, /^1 to 2 of \d+; go on with --offset 2\n$/)
})

test('a long answer comes whole through a pipe, and a reader that leaves early is no failure', async () => {
  for (let count = 0; count < 60; count++)
    await agent.request('POST /api/apikeys', { body: { name: `key ${count} ${'x'.repeat(80)}` } })
  const { stdout } = await client.ok(['apikeys', 'list', '--json'])
  assert.equal(stdout.trimEnd(), (await agent.request('GET /api/apikeys')).body)
  const early = await client.piped(['apikeys', 'list', '--json'], 'head -c 10')
  assert.deepEqual(early, { code: 0, stdout: '{"data":[{', stderr: '' })
})

test('what others wrote cannot steer the terminal', async () => {
  await agent.request('POST /api/apikeys', { body: { name: 'evil', description: 'a\u001b]0;title\u0007b\nc' } })
  const { text } = await client.terminal(['apikeys', 'list', '--columns', 'description']).end()
  assert.match(text, /a\\x1b\]0;title\\x07b c/)
})

test('flags of every shape become the fields they are named for', async () => {
  const folder = client.home
  await writeFile(join(folder, 'page.html'), '<p>\n')
  await writeFile(join(folder, 'vars.env'), '# comment\nC="three 3"\nD=4\n')
  await writeFile(join(folder, 'limits.yml'), 'per_second: 9\nburst: { on: true }\n')
  const sent = async (args: string[], how: How = {}) => {
    const { stdout } = await client.ok(['probe', 'shapes', 'i/d', 'me', '--json', ...args], { cwd: folder, ...how })
    const { id, name, ...rest } = JSON.parse(stdout).data.sent
    assert.deepEqual([id, name], ['i/d', 'me'])
    return rest
  }
  const many = ['--count', '-3', '--ratio=0.5', '--is-on', '--words', 'red,green', '--words', 'blue', '--note', 'null']
  const nested = ['--labels', 'a=1', '--labels', 'b=x=y', '--limits.per-second', '5', '--limits.burst.on']
  const pairs = ['--env', 'A=1', '--env', 'B=x=y', '--env', 'TAKEN', '--env-file', 'vars.env']
  const objects = ['--targets', 'host=a,port=1', '--targets', '{"host":"b","port":2}']
  const named = ['--page-file', 'page.html', '--set-json', 'mine', '--output=x']
  const env = { TAKEN: 'from outside' }
  assert.deepEqual(await sent([...many, ...nested, ...pairs, ...objects, ...named], { env }), {
    count: -3,
    ratio: 0.5,
    is_on: true,
    words: ['red', 'green', 'blue'],
    note: null,
    labels: { a: '1', b: 'x=y' },
    limits: { per_second: 5, burst: { on: true } },
    env_vars: [
      { key: 'A', value: '1' },
      { key: 'B', value: 'x=y' },
      { key: 'TAKEN', value: 'from outside' },
      { key: 'C', value: 'three 3' },
      { key: 'D', value: '4' },
    ],
    targets: [
      { host: 'a', port: 1 },
      { host: 'b', port: 2 },
    ],
    page_content: '<p>\n',
    json: 'mine',
    output: 'x',
  })
  const json = ['--no-is-on', '--words', '["red"]', '--limits', '{"per_second":1}', '--page-file', '-']
  assert.deepEqual(await sent(json, { input: 'from a pipe\n' }), {
    is_on: false,
    words: ['red'],
    limits: { per_second: 1 },
    page_content: 'from a pipe\n',
  })
  assert.deepEqual(
    await sent(['--is-on=false', '--limits-file', 'limits.yml', '--note-file', '-'], { input: 'a line\n' }),
    {
      is_on: false,
      limits: { per_second: 9, burst: { on: true } },
      note: 'a line',
    },
  )
  assert.deepEqual(await sent(['--body', '{"count":1,"note":"n"}', '--count', '2']), { count: 2, note: 'n' })
  const yaml = 'count: 7\nwords: [red]\n'
  assert.deepEqual(await sent(['--body-file', '-'], { input: yaml }), { count: 7, words: ['red'] })
})

test('a required text is an argument or a flag', async () => {
  const { stdout } = await client.ok(['probe', 'shapes', '1', '--name', 'me', '--json'])
  assert.equal(JSON.parse(stdout).data.sent.name, 'me')
  const tooMany = await client.run(['probe', 'shapes', '1', '--name', 'me', 'you'])
  assert.deepEqual([tooMany.code, /Too many arguments.*shapes ID NAME/.test(tooMany.stderr)], [2, true])
})

test('a required secret is asked for twice on a terminal, and never shown', async () => {
  const secret = 'correct horse staple'
  const terminal = client.terminal(['users', 'create', 'carol', '--role', 'operator'])
  await terminal.until('Password: ')
  terminal.type(`${secret}\r`)
  await terminal.until('Once more: ')
  terminal.type(`${secret}\r`)
  const { code, text } = await terminal.end()
  assert.equal(code, 0, text)
  assert.match(text, /The user was created\./)
  assert.ok(!text.includes(secret))
  const differing = client.terminal(['users', 'create', 'dora'])
  await differing.until('Password: ')
  differing.type('one secret here\rother secret here\r')
  assert.equal((await differing.end()).code, 2)
  assert.equal(
    (await agent.request('POST /api/auth/login', { as: 'nobody', body: { username: 'carol', password: secret } }))
      .statusCode,
    200,
  )
})

test('an optional secret is asked for when its flag stands alone; without a terminal a file is the way', async () => {
  const terminal = client.terminal(['probe', 'shapes', '1', 'x', '--pass-phrase', '--json'])
  await terminal.until('Pass phrase: ')
  terminal.type('12345\r12345\r')
  assert.match((await terminal.end()).text, /"secret_length":5/)
  const nobody = await client.run(['users', 'create', 'erik'])
  assert.deepEqual([nobody.code, /users create needs --password-file FILE/.test(nobody.stderr)], [2, true])
  const typed = await client.ok(['probe', 'shapes', '1', 'x', '--pass-phrase=12345', '--json'])
  assert.match(typed.stderr, /list of processes/)
  assert.ok(!typed.stderr.includes('12345'))
})

test('--plan shows the changes, changes nothing, and names the command that applies it', async () => {
  const { stdout } = await client.ok(['users', 'update', '3', '--email', 'v@example.org', '--plan'])
  assert.match(
    stdout,
    /^Plan [\w-]+: user\.update 3\n\n {2}~ update user vera\n {6}email: "" → v@example\.org\n\n1 to update\.\n/,
  )
  assert.equal((await agent.request('GET /api/users/3')).json().data.email, '')
  const [, id = ''] = /Apply it .*:\n {2}fairlead plans apply ([\w-]+)\n$/.exec(stdout) ?? []
  const shown = await client.ok(['plans', 'show', id])
  assert.equal(shown.stdout, stdout, 'and it can be shown again')
  const applied = await client.ok(['plans', 'apply', id])
  assert.match(applied.stderr, /The user was changed\./)
  assert.match(applied.stdout, /~ update user vera\n.*\nid: +3\n/)
  const again = await client.run(['plans', 'apply', id])
  assert.deepEqual([again.code, /only an available plan/.test(again.stderr)], [1, true])
  assert.match((await client.ok(['plans', 'get', id])).stdout, /It is applied\.\n$/)
})

test('a plan is coloured like a diff on a terminal, and names the profile that was named', async () => {
  const { text } = await client
    .terminal(['settings', 'update', '--plans.ttl-seconds', '7200', '--plan', '--profile', 'default'])
    .end()
  assert.ok(text.includes('\x1b[33m~ update file config.yml\x1b[0m'), text)
  assert.ok(text.includes('\x1b[32m      +  ttl_seconds: 7200\x1b[0m'), text)
  assert.match(text, /fairlead --profile default plans apply/)
  const created = await client.ok(['users', 'create', 'zoe', '--password-file', '-', '--plan'], { input: PASSWORD })
  assert.match(created.stdout, /\+ create user zoe\n.*username: zoe\n/)
  assert.ok(!created.stdout.includes(PASSWORD))
  const deleted = await client.ok(['users', 'delete', '2', '--plan'])
  assert.match(deleted.stdout, /- delete .*shop.* \(its user goes\)\n.*- delete user bob\n.*2 to delete\.\n/s)
  assert.match((await client.ok(['users', 'update', '3', '--role', 'viewer', '--plan'])).stdout, /Nothing|1 to update/)
  assert.match((await client.ok(['users', 'update', '3', '--role', 'viewer', '--plan', '-q'])).stdout, /^[\w-]{36}\n$/)
})

test('--if-match takes what --etag printed, and holds', async () => {
  const { stdout: etag } = await client.ok(['users', 'get', '4', '--etag'])
  await client.ok(['users', 'update', '4', '--email', 'n@example.org', '--if-match', etag.trim()])
  const late = await client.run(['users', 'update', '4', '--email', 'm@example.org', '--if-match', etag.trim()])
  assert.deepEqual([late.code, /If-Match does not hold/.test(late.stderr)], [1, true])
})

test('--idempotency-key makes twice the same once', async () => {
  const create = ['apikeys', 'create', 'once', '--idempotency-key', 'k1', '--columns', 'id']
  const [first, second] = [await client.ok(create), await client.ok(create)]
  assert.equal(first.stdout, second.stdout)
  const other = await client.run(['apikeys', 'create', 'another', '--idempotency-key', 'k1'])
  assert.equal(other.code, 1)
})

test('mistakes on the command line are exit code 2, with what was probably meant', async () => {
  const says: [string[], RegExp][] = [
    [['usres', 'list'], /There is no command "usres"\. Did you mean: fairlead users\n/],
    [['health'], /Did you mean: fairlead system health/],
    [['users', 'crate'], /users has no operation "crate"\. Did you mean create\?/],
    [['users', 'create', 'x', '--rolle', 'admin'], /users create has no flag --rolle\. Did you mean --role\?/],
    [['users', 'get'], /users get needs ID\. Usage: fairlead users get ID/],
    [['users', 'list', '--plan'], /users list has no --plan/],
    [['users', 'list', '--columns'], /--columns needs a value/],
    [['audit', 'cleanup', '--older-than', 'soon'], /--older-than takes a whole number/],
    [['audit', 'cleanup'], /audit cleanup needs --older-than/],
    [['probe', 'shapes', '1', 'x', '--labels', 'nothing'], /--labels takes KEY=VALUE/],
    [['probe', 'shapes', '1', 'x', '--env', 'UNSET'], /no variable UNSET/],
    [['probe', 'shapes', '1', 'x', '--is-on=maybe'], /--is-on takes no value but true or false/],
    [['completion', 'tcsh'], /completion bash\|zsh\|fish/],
    [['profiles', 'drop'], /profiles has no operation "drop"/],
  ]
  for (const [args, words] of says) {
    const { code, stdout, stderr } = await client.run(args)
    assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, words)
  }
})

test('a refusal of the server is exit code 1, its sentence, and what its details add', async () => {
  const invalid = await client.run(['probe', 'shapes', '1', 'x', '--words', 'a,b,c,d,e'])
  assert.equal(invalid.code, 1)
  assert.match(
    invalid.stderr,
    /^fairlead: The request is not valid: `words\.0` must be one of red, green, blue;[^\n]*\n {2}`words\.3` must be/,
  )
  const id = (await client.ok(['users', 'update', '3', '--username', 'verena', '--plan', '-q'])).stdout.trim()
  await client.ok(['users', 'update', '3', '--username', 'veronika'])
  const stale = await client.run(['plans', 'apply', id])
  assert.deepEqual(
    [stale.code, /has changed since[^\n]*\n {2}record user vera/.test(stale.stderr)],
    [1, true],
    stale.stderr,
  )
  const missing = await client.run(['probe', 'shapes', '1', 'x', '--page-file', '/nowhere'])
  assert.deepEqual([missing.code, missing.stderr], [1, 'fairlead: /nowhere does not exist.\n'])
})

test('help shows the client, the areas, an area and a command', async () => {
  for (const args of [[], ['help'], ['--help']]) {
    const { stdout } = await client.ok(args)
    assert.match(stdout, /^ {2}login +Log in/m)
    assert.match(stdout, /^ {2}users +assign change-access/m)
  }
  assert.match((await client.ok(['users'])).stdout, /^ {2}create USERNAME +Create a user$/m)
  const { stdout } = await client.ok(['users', 'create', '--help'])
  assert.match(stdout, /^Create a user\n\nUsage: fairlead users create USERNAME \[flags\]$/m)
  assert.match(stdout, /^ {2}--role WORD +one of admin, operator, viewer$/m)
  assert.match(stdout, /^ {2}--password-file FILE +must have 10 to 1024 characters; asked for on a terminal$/m)
  assert.match(
    stdout,
    /^Needs: the role admin\nExample: fairlead users create carol --email carol@example\.org --role operator$/m,
  )
  assert.equal((await client.ok(['help', 'users', 'create'])).stdout, stdout)
  assert.match((await client.ok(['audit', 'events', '--help'])).stdout, /--limit NUMBER +from 1 to 1000; default 50/)
  assert.match((await client.ok(['login', '--help'])).stdout, /--api-key-file FILE/)
})

test('the document is asked for at most once a run, and again only when it may have changed', async () => {
  const file = (
    await Promise.all(
      cacheFile().map(path =>
        stat(path).then(
          () => path,
          () => '',
        ),
      ),
    )
  ).find(path => path !== '') as string
  const asked = () =>
    log.filter(line => line.includes('"path":"/api/openapi.json"')).map(line => JSON.parse(line).status as number)
  const askedBy = async (args: string[]) => {
    const before = asked().length
    const { code } = await client.run(args)
    return { code, statuses: asked().slice(before) }
  }
  assert.deepEqual(await askedBy(['users', 'list']), { code: 0, statuses: [] })
  assert.deepEqual(await askedBy(['users', 'nonsense']), { code: 2, statuses: [304] })
  const old = new Date(Date.now() - 3_600_000)
  await utimes(file, old, old)
  assert.deepEqual(await askedBy(['users', 'list']), { code: 0, statuses: [304] })
  assert.deepEqual(await askedBy(['users', 'list']), { code: 0, statuses: [] })
  // An older server knew fewer commands.
  const kept = JSON.parse(await readFile(file, 'utf8'))
  const fewer = kept.commands.filter(({ id }: { id: string }) => id !== 'users.list')
  await writeFile(file, JSON.stringify({ ...kept, etag: '"old"', commands: fewer }))
  assert.deepEqual(await askedBy(['users', 'list']), { code: 0, statuses: [200] })
  await writeFile(file, 'half a fi')
  assert.deepEqual(await askedBy(['users', 'list']), { code: 0, statuses: [200] })
})
