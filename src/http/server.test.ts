import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { type TestAgent, testAgent } from '../testing/agent.ts'

let agent: TestAgent
let port: number
before(async () => {
  agent = await testAgent()
  port = await listening(agent)
})
after(() => agent.stop())

async function listening(one: TestAgent): Promise<number> {
  await one.app.listen({ host: '127.0.0.1', port: 0 })
  return (one.app.server.address() as { port: number }).port
}

/** Sends bytes as they are and gives what comes back within a moment, or until the other side closes. */
async function raw(text: string, to = port): Promise<string> {
  const socket = connect(to, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', chunk => chunks.push(chunk)).on('error', () => {})
  socket.write(text)
  await Promise.race([
    once(socket, 'close'),
    once(socket, 'data').then(() => wait(50)),
    wait(3000, undefined, { ref: false }),
  ])
  socket.destroy()
  return Buffer.concat(chunks).toString()
}

test('what is not HTTP is refused in the form of every other error', async () => {
  for (const text of [
    'GARBAGE\r\n\r\n',
    'GET /api/health HTTP/9.9\r\n\r\n',
    'GET /api/health HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: a\r\nX-Big: ${'x'.repeat(40_000)}\r\n\r\n`,
  ]) {
    const answer = await raw(text)
    assert.match(answer, /^HTTP\/1\.1 400 /, text.slice(0, 40))
    const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
    assert.equal(body.code, 'VALIDATION_FAILED')
    assert.match(answer, /x-content-type-options: nosniff/i)
  }
  assert.match(await raw('GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n'), /^HTTP\/1\.1 200 /)
})

test('who has no token is refused before his body is waited for', async () => {
  const head =
    'POST /api/users HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n'
  assert.match(await raw(head), /^HTTP\/1\.1 401 /)
  const none = 'POST /api/none HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n'
  assert.match(await raw(none), /^HTTP\/1\.1 404 /)
})

test('a body that says it is too large is refused before it is sent', async () => {
  const head = `POST /api/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${11 * 1024 ** 2}\r\n\r\n`
  assert.match(await raw(head), /^HTTP\/1\.1 413 /)
})

test('a body of 10 MiB is taken by default, and not a byte more', async () => {
  const bodyOf = (length: number) => `{"username":"${'x'.repeat(length - 15)}"}`
  const send = (length: number) =>
    agent.request('POST /api/users', { payload: bodyOf(length), headers: { 'content-type': 'application/json' } })
  assert.equal((await send(10 * 1024 ** 2)).statusCode, 400)
  assert.equal((await send(10 * 1024 ** 2 + 1)).statusCode, 413)
})

test('the address of the caller is that of the connection, whatever he says about himself', async () => {
  const { token } = (
    await agent.request('POST /api/auth/login', { as: 'nobody', body: { api_key: agent.apiKey } })
  ).json()
  const put = (to: number, forwarded: string) =>
    fetch(`http://127.0.0.1:${to}/api/users/4`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-forwarded-for': forwarded },
      body: '{}',
    })
  assert.equal((await put(port, '203.0.113.7')).status, 200)
  const seen = async (one: TestAgent) =>
    (await one.request('GET /api/audit/events?action=user.update&limit=1')).json().data[0].client_ip
  assert.equal(await seen(agent), '127.0.0.1')
})

test('behind a proxy that is trusted it is the address that proxy tells', async t => {
  const proxied = await testAgent({ config: 'api:\n  trust_proxy: true\n' })
  t.after(() => proxied.stop())
  await proxied.request('PUT /api/users/4', { body: {}, headers: { 'x-forwarded-for': '203.0.113.7' } })
  const { data } = (await proxied.request('GET /api/audit/events?action=user.update&limit=1')).json()
  assert.equal(data[0].client_ip, '203.0.113.7')
})

test('a parameter with a slash, a percent or another script in it is one parameter', async () => {
  for (const id of ['a/b', '50%', 'юникод', 'a?b', 'a#b']) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/plans/${encodeURIComponent(id)}`, {
      headers: { authorization: `Bearer ${await agent.tokenOf('key')}` },
    })
    assert.equal(answer.status, 404, id)
    assert.equal(((await answer.json()) as { error: string }).error, `There is no plan "${id}".`)
  }
})

test('over HTTPS everything is the same, with HSTS, and so are websockets', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'fairlead-tls-'))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  execFileSync('openssl', [...made, ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const secure = await testAgent({ config: `api:\n  tls: { cert: ${cert}, key: ${key} }\n` })
  t.after(async () => {
    await secure.stop()
    await rm(folder, { recursive: true })
  })
  const to = await listening(secure)
  const asked = httpsRequest({ host: '127.0.0.1', port: to, path: '/api/health', rejectUnauthorized: false }).end()
  const [answer] = await once(asked, 'response')
  answer.resume()
  assert.equal(answer.statusCode, 200)
  assert.equal(answer.headers['strict-transport-security'], 'max-age=31536000')
  assert.equal(await raw('GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n', to), '', 'plain HTTP is not answered')

  const socket = new WebSocket(`wss://127.0.0.1:${to}/api/system/logs/stream?source=agent&tail=1`, {
    rejectUnauthorized: false,
  })
  socket.on('open', () => socket.send('no token'))
  const [code] = await once(socket, 'close')
  assert.equal(code, 4401)
})
