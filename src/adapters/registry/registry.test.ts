import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { silentServer, type TestRegistry, testRegistry } from '../../testing/registry.ts'
import { apiBases, parseAddress, type RegistryAddress } from './address.ts'
import { isForbidden, requireFetchable } from './guard.ts'
import { registryLogin } from './login.ts'
import { parseReference } from './reference.ts'

let registry: TestRegistry
before(async () => {
  registry = await testRegistry()
})
after(() => registry.stop())

const at = (host: string): RegistryAddress => parseAddress(host) as RegistryAddress

test('the right password logs in at a real registry, a wrong one is refused in words', async () => {
  const { host, username, password } = registry
  const login = { address: at(host), insecure: false, username }
  assert.deepEqual(await registryLogin({ ...login, password }), { success: true })
  assert.deepEqual(await registryLogin({ ...login, password: 'wrong' }), {
    success: false,
    error: `${host} refused the username or password.`,
  })
})

test('a registry that takes the connection and says nothing is given up in time', async () => {
  const silent = await silentServer()
  const startedAt = performance.now()
  const outcome = await registryLogin({
    address: at(silent.host),
    insecure: true,
    username: 'a',
    password: 'b',
    deadlineMs: 300,
  })
  assert.ok(performance.now() - startedAt < 1500)
  assert.deepEqual(outcome, { success: false, error: `${silent.host} did not answer within 1 s.` })
  await silent.close()
})

test('what does not listen, is no registry, or sends without end is told apart', async () => {
  const login = { insecure: true, username: 'a', password: 'b' }
  assert.match(error(await registryLogin({ ...login, address: at('127.0.0.1:1') })), /Nothing listens/)
  const web = await serve((_request, response) => response.end('hello'))
  assert.match(error(await registryLogin({ ...login, address: at(web.host) })), /asks for no login/)
  await web.close()
  const endless = await serve((_request, response) => {
    response.writeHead(401)
    response.write('x'.repeat(200_000))
  })
  assert.match(
    error(await registryLogin({ ...login, address: at(endless.host), deadlineMs: 2000 })),
    /more than an answer/,
  )
  await endless.close()
})

test('with a token, the password goes only to the server of tokens, and the token to the registry', async () => {
  const seen: string[] = []
  const server = await serve((request, response) => {
    const { url = '', headers } = request
    seen.push(`${url} ${headers.authorization ?? '-'}`)
    const basic = `Basic ${Buffer.from('me:secret').toString('base64')}`
    if (url.startsWith('/token')) {
      response.writeHead(headers.authorization === basic ? 200 : 401)
      return response.end(JSON.stringify({ token: 'T' }))
    }
    if (headers.authorization === 'Bearer T') return response.end('{}')
    response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${server.host}/token",service="reg"` })
    return response.end()
  })
  const login = { address: at(server.host), insecure: true, username: 'me' }
  assert.deepEqual(await registryLogin({ ...login, password: 'secret' }), { success: true })
  assert.deepEqual(
    seen.map(line => line.split(' ')[0]),
    ['/v2/', '/token?account=me&client_id=fairlead&service=reg', '/v2/'],
  )
  assert.ok(seen.filter(line => line.startsWith('/v2/')).every(line => !line.includes('Basic')))
  assert.match(error(await registryLogin({ ...login, password: 'other' })), /refused the username or password/)
  await server.close()
})

test('a server of tokens at a metadata address, or a redirect, never gets the password', async () => {
  const server = await serve((_request, response) => {
    response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://169.254.169.254/token"' })
    response.end()
  })
  const login = { insecure: true, username: 'me', password: 'secret' }
  assert.match(error(await registryLogin({ ...login, address: at(server.host) })), /link-local or metadata/)
  await server.close()
  let asked = 0
  const moved = await serve((_request, response) => {
    asked++
    response.writeHead(302, { location: `http://${registry.host}/v2/` })
    response.end()
  })
  assert.match(error(await registryLogin({ ...login, address: at(moved.host) })), /answered 302/)
  assert.equal(asked, 1)
  await moved.close()
})

test('link-local and metadata addresses are refused in every spelling, loopback is not', async () => {
  const bad = [
    '169.254.169.254', '169.254.0.1', '::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '[fe80::1]', 'fe80::1%eth0', 'fd00:ec2::254',
    '100.100.100.200', '64:ff9b::a9fe:a9fe',
  ] // biome-ignore format: a table of words
  for (const address of bad) assert.equal(isForbidden(address), true, address)
  for (const address of ['127.0.0.1', '::1', '10.0.0.1', 'example.com', '169.253.1.1'])
    assert.equal(isForbidden(address), false, address)
  await assert.rejects(requireFetchable('169.254.169.254:80'), /link-local/)
  await assert.rejects(requireFetchable('[fe80::1]:5000'), /link-local/)
  await requireFetchable('localhost:5000')
  for (const url of ['http://2852039166', 'http://0xa9fea9fe/', 'http://169.254.43518']) {
    assert.equal(isForbidden(at(url).host), true, url)
  }
})

test('the names of images are taken apart as an engine does', () => {
  const host = (image: string) => parseReference(image)?.registry
  assert.equal(host('redis'), 'docker.io')
  assert.equal(host('library/redis:7'), 'docker.io')
  assert.equal(host('index.docker.io/library/redis'), 'docker.io')
  assert.equal(host('127.0.0.1:5000/team/app:1'), '127.0.0.1:5000')
  assert.equal(host('localhost/app'), 'localhost')
  assert.equal(host('Registry.Example.com/a/b_c.d-e'), 'registry.example.com')
  assert.deepEqual(parseReference(`ghcr.io/a/b:v1@sha256:${'a'.repeat(64)}`), {
    registry: 'ghcr.io',
    path: 'a/b',
    tag: 'v1',
    digest: `sha256:${'a'.repeat(64)}`,
  })
  const bad = [
    '',
    ' redis',
    'Redis',
    'a//b',
    '/a',
    'a:',
    'a:b:c',
    'a@sha256:1',
    'a;b',
    '$(x)',
    'a b',
    '../a',
    'a/../b',
    'a\n',
    `a:${'x'.repeat(129)}`,
    '-a',
  ]
  for (const image of bad) assert.equal(parseReference(image), undefined, image)
})

test('the address of a registry is read as people write it', () => {
  assert.deepEqual(parseAddress('https://Registry.Example.com/team/'), {
    scheme: 'https',
    host: 'registry.example.com',
    path: 'team',
  })
  assert.deepEqual(parseAddress('127.0.0.1:5000'), { scheme: null, host: '127.0.0.1:5000', path: '' })
  assert.deepEqual(parseAddress('https://index.docker.io/v1/'), { scheme: 'https', host: 'docker.io', path: '' })
  for (const text of ['', 'ftp://x', 'file:///etc/passwd', 'https://a:b@c', 'https://x?y', 'a b', 'https://']) {
    assert.equal(parseAddress(text), undefined, text)
  }
  assert.deepEqual(apiBases(at('registry.example.com'), false), ['https://registry.example.com'])
  assert.deepEqual(apiBases(at('registry.example.com'), true), [
    'https://registry.example.com',
    'http://registry.example.com',
  ])
  assert.deepEqual(apiBases(at('docker.io'), true), ['https://registry-1.docker.io'])
})

const error = (outcome: { success: boolean; error?: string }): string => outcome.error ?? ''

async function serve(listener: http.RequestListener): Promise<{ host: string; close(): Promise<void> }> {
  const server = http.createServer(listener)
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () =>
    new Promise<void>(done => {
      server.close(() => done())
      server.closeAllConnections()
    })
  return { host, close }
}
