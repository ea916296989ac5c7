// Logging in: what is kept, what is shown, and what is said when it does not work.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { API_KEY, PASSWORD, type TestAgent, testAgent } from '../../src/testing/agent.ts'
import { CERTIFICATE, PRIVATE_KEY } from './certificate.ts'
import { Client } from './client.ts'

let agent: TestAgent
let url: string
let client: Client
before(async () => {
  agent = await testAgent()
  url = await agent.app.listen({ port: 0 })
})
after(() => agent.stop())
beforeEach(() => {
  client = new Client()
})
afterEach(() => client.remove())

const profileFile = (name = 'default') => join(client.home, '.config/fairlead/profiles', `${name}.json`)
const profileOf = async (name?: string) =>
  JSON.parse(await readFile(profileFile(name), 'utf8')) as Record<string, string>

test('a key on standard input logs in; it is kept for its owner only and never shown', async () => {
  const { stdout, stderr } = await client.ok(['login', url], { input: `${API_KEY}\n` })
  assert.match(stderr, new RegExp(`You are logged in to ${url} as configured key \\w+ \\(admin\\)\\. Profile: default`))
  assert.equal((await stat(profileFile())).mode & 0o777, 0o600)
  assert.equal((await stat(join(client.home, '.config/fairlead'))).mode & 0o077, 0)
  assert.equal((await profileOf()).api_key, API_KEY)
  const shown = [
    await client.ok(['profiles']),
    await client.ok(['profiles', '--json']),
    await client.ok(['users', 'me', '--json']),
  ]
  for (const text of [stdout, stderr, ...shown.flatMap(one => [one.stdout, one.stderr])]) {
    assert.ok(!text.includes(API_KEY) && !text.includes((await profileOf()).token as string))
  }
})

test('XDG_CONFIG_HOME and XDG_CACHE_HOME say where things are kept', async () => {
  const env = { XDG_CONFIG_HOME: join(client.home, 'c'), XDG_CACHE_HOME: join(client.home, 'k') }
  await client.ok(['login', url], { input: API_KEY, env })
  assert.deepEqual((await readdir(client.home)).sort(), ['c', 'k'])
  assert.match((await client.ok(['users', 'list', '-q'], { env })).stdout, /^1\n/)
})

test('on a terminal the key is asked for without showing it', async () => {
  const terminal = client.terminal(['login', url])
  await terminal.until('API key')
  terminal.type(`${API_KEY}\r`)
  const { code, text } = await terminal.end()
  assert.equal(code, 0, text)
  assert.ok(!text.includes(API_KEY))
  assert.match(text, /You are logged in/)
})

test('an empty key asks for a name and a password, of which the password is neither shown nor kept', async () => {
  const terminal = client.terminal(['login', url])
  await terminal.until('API key')
  terminal.type('\r')
  await terminal.until('Username: ')
  terminal.type('alicx\x7fe\r')
  await terminal.until('Password: ')
  terminal.type(`${PASSWORD}\r`)
  const { code, text } = await terminal.end()
  assert.equal(code, 0, text)
  assert.ok(!text.includes(PASSWORD))
  assert.match(text, /as alice \(admin\)/)
  const profile = await readFile(profileFile(), 'utf8')
  assert.ok(!profile.includes(PASSWORD))
  assert.equal((await profileOf()).username, 'alice')
})

test('Ctrl-C at a question leaves nothing behind', async () => {
  const terminal = client.terminal(['login', url])
  await terminal.until('API key')
  terminal.type('\x03')
  assert.equal((await terminal.end()).code, 130)
  assert.ok(!existsSync(profileFile()))
})

test('a wrong key or password is refused in the words of the server, and nothing is kept', async () => {
  const key = await client.run(['login', url], { input: 'fl_wrong' })
  assert.deepEqual([key.code, key.stderr], [1, 'fairlead: Invalid API key\n'])
  const user = await client.run(['login', url, '--username', 'alice', '--password-file', '-'], { input: 'wrong' })
  assert.deepEqual([user.code, user.stderr], [1, 'fairlead: Invalid username or password\n'])
  assert.ok(!existsSync(profileFile()))
})

test('a key on the command line works, with a warning about the list of processes', async () => {
  const { stderr } = await client.ok(['login', url, `--api-key=${API_KEY}`])
  assert.match(stderr, /list of processes/)
  assert.ok(!stderr.includes(API_KEY))
})

test('a token that has run out or is refused is renewed with the key, and the new one is kept', async () => {
  await client.ok(['login', url], { input: API_KEY })
  const first = await profileOf()
  for (const spoiled of [{ token: 'x.y.z' }, { expires_at: '2020-01-01T00:00:00Z' }]) {
    await writeFile(profileFile(), JSON.stringify({ ...first, ...spoiled }))
    await client.ok(['users', 'list'])
    assert.notEqual((await profileOf()).token, first.token)
    assert.equal((await stat(profileFile())).mode & 0o777, 0o600)
  }
})

test('a login by password that has ended says how to log in again', async () => {
  await client.ok(['login', url, '--username', 'alice', '--password-file', '-'], { input: PASSWORD })
  await writeFile(profileFile(), JSON.stringify({ ...(await profileOf()), token: 'x.y.z' }), { mode: 0o600 })
  const { code, stderr } = await client.run(['users', 'list'])
  assert.deepEqual(
    [code, stderr],
    [1, `fairlead: Your login at ${url} has ended. Log in again: fairlead login ${url} --username alice\n`],
  )
})

test('a revoked key is refused with what to do', async () => {
  const { key, id } = (await agent.request('POST /api/apikeys', { body: { name: 'short', role: 'viewer' } })).json()
  await client.ok(['login', url], { input: key })
  await agent.request(`POST /api/apikeys/${id}/revoke`)
  const { code, stderr } = await client.run(['plans', 'list'])
  assert.equal(code, 1)
  assert.match(stderr, /refuses the API key of profile default.*fairlead login/)
  assert.ok(!stderr.includes(key))
})

test('FAIRLEAD_URL and FAIRLEAD_API_KEY need no profile and leave none', async () => {
  const env = { FAIRLEAD_URL: url, FAIRLEAD_API_KEY: API_KEY }
  assert.equal((await client.ok(['users', 'list', '-q'], { env })).stdout, '1\n2\n3\n4\n')
  assert.ok(!existsSync(join(client.home, '.config')))
  const wrong = await client.run(['users', 'list'], { env: { ...env, FAIRLEAD_API_KEY: 'fl_wrong' } })
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /refuses the API key in FAIRLEAD_API_KEY/)
})

test('without a home that can be written, the environment is enough', async () => {
  const env = { FAIRLEAD_URL: url, FAIRLEAD_API_KEY: API_KEY, HOME: '/dev/null' }
  assert.equal((await client.ok(['users', 'get', '1', '--columns', 'username'], { env })).stdout, 'alice\n')
})

test('the key of a profile goes only to its own server', async () => {
  const seen: string[] = []
  const thief = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers.authorization ?? 'nobody'}`)
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"Authorization header required"}')
  }).listen(0)
  try {
    await client.ok(['login', url], { input: API_KEY })
    const FAIRLEAD_URL = `http://127.0.0.1:${(thief.address() as AddressInfo).port}`
    const { code, stderr } = await client.run(['users', 'list'], { env: { FAIRLEAD_URL } })
    assert.deepEqual([code, seen], [1, ['/api/openapi.json nobody']])
    assert.match(stderr, /wants to know who you are/)
  } finally {
    thief.close()
  }
})

test('profiles are listed, chosen, named for one run, and removed', async () => {
  await client.ok(['login', url], { input: API_KEY })
  await client.ok(['login', url, '--profile', 'bob', '--username', 'bob', '--password-file', '-'], { input: PASSWORD })
  assert.match((await client.ok(['profiles'])).stdout, /^NAME .*\nbob .* bob +yes\ndefault .* API key fl_012… +no\n$/)
  assert.equal((await client.ok(['users', 'me', '--columns', 'username'])).stdout, 'bob\n')
  assert.match((await client.ok(['--profile', 'default', 'users', 'me'])).stdout, /configured key/)
  assert.match((await client.ok(['users', 'me', '--profile=default'])).stdout, /configured key/)
  await client.ok(['profiles', 'use', 'default'])
  assert.match((await client.ok(['users', 'me'])).stdout, /configured key/)
  assert.match((await client.ok(['logout', '--profile', 'bob'])).stderr, /Profile bob is forgotten/)
  const unknown = await client.run(['users', 'me', '--profile', 'bob'])
  assert.deepEqual([unknown.code, /no profile "bob"/.test(unknown.stderr)], [2, true])
  await client.ok(['profiles', 'remove', 'default'])
  assert.match((await client.ok(['profiles'])).stderr, /No profiles/)
  assert.equal((await client.run(['login', url, '--profile', '../x'], { input: API_KEY })).code, 2)
})

test('a profile that others can read is warned about', async () => {
  await client.ok(['login', url], { input: API_KEY })
  await writeFile(profileFile('open'), JSON.stringify(await profileOf()), { mode: 0o644 })
  assert.match(
    (await client.ok(['users', 'list', '--profile', 'open'])).stderr,
    /open\.json can be read by others: chmod 600/,
  )
})

test('nobody logged in: it says how, and exits 1', async () => {
  const { code, stderr } = await client.run(['users', 'list'])
  assert.equal(code, 1)
  assert.match(stderr, /You are not logged in\. Log in with: fairlead login URL/)
})

test('an agent that does not run, a host that does not exist and another program are told apart', async () => {
  const other = createServer((_request, response) =>
    response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>no'),
  ).listen(0)
  try {
    const closed = await client.run(['login', 'http://127.0.0.1:1'], { input: API_KEY })
    assert.match(closed.stderr, /http:\/\/127\.0\.0\.1:1 can't be reached: nothing listens there\. Check/)
    const page = await client.run(['login', `127.0.0.1:${(other.address() as AddressInfo).port}`], { input: API_KEY })
    assert.match(page.stderr, /no words of a Fairlead agent/)
    const unencrypted = await client.run(['login', url.replace('http', 'https')], { input: API_KEY })
    assert.match(unencrypted.stderr, /does not speak HTTPS/)
    const nonsense = await client.run(['login', 'ftp://x'], { input: API_KEY })
    assert.match(nonsense.stderr, /"ftp:\/\/x" is not an address/)
    for (const { code } of [closed, page, unencrypted, nonsense]) assert.equal(code, 1)
  } finally {
    other.close()
  }
})

test('a certificate nobody vouches for is refused, and taken when it is trusted by name', async () => {
  const [cert, key] = [join(client.home, 'cert.pem'), join(client.home, 'key.pem')]
  await writeFile(cert, CERTIFICATE)
  await writeFile(key, PRIVATE_KEY)
  const secure = await testAgent({ empty: true, config: `api:\n  tls:\n    cert: ${cert}\n    key: ${key}\n` })
  try {
    const address = (await secure.app.listen({ port: 0, host: '127.0.0.1' })).replace('http:', 'https:')
    const refused = await client.run(['login', address], { input: API_KEY })
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /The certificate of https:.* is not trusted: it is signed by itself.*--ca-file/)
    await client.ok(['login', address, '--ca-file', cert], { input: API_KEY })
    assert.match((await client.ok(['users', 'me'])).stdout, /configured key/)
    assert.match((await client.ok(['--version'])).stdout, /^server \d+\.\d+\.\d+ \(https:/m)
    const following = await client.run(['system', 'logs', '--follow', '--source', 'nowhere'])
    assert.match(following.stderr, /nowhere/, 'websockets trust it too')
  } finally {
    await secure.stop()
  }
})

test('with authentication off no login is needed', async () => {
  const open = await testAgent({ empty: true, config: '  enabled: false\n' })
  try {
    const address = await open.app.listen({ port: 0 })
    assert.match((await client.ok(['login', address])).stderr, /You are logged in/)
    assert.equal((await profileOf()).api_key, undefined)
    assert.match((await client.ok(['users', 'list'])).stderr, /No users/)
    assert.match((await client.ok(['users', 'list'], { env: { FAIRLEAD_URL: address } })).stderr, /No users/)
  } finally {
    await open.stop()
  }
})

test('the version of the client and of the server', async () => {
  assert.match((await client.ok(['--version'])).stdout, /^client \d+\.\d+\.\d+\n$/)
  await client.ok(['login', url], { input: API_KEY })
  assert.match((await client.ok(['--version'])).stdout, /^client (\S+)\nserver \1 \(http/)
})
