// A real registry with a password, on a free port of loopback; and a server that takes connections and says nothing.

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineClient } from '../adapters/container-engine/client.ts'
import { jsonLines } from '../adapters/container-engine/frames.ts'
import { freePort } from './port.ts'

export interface TestRegistry {
  /** Host and port, as in the name of an image. */
  readonly host: string
  readonly username: string
  readonly password: string
  /** Pushes an image of the engine; `path` as in `team/app:1`. Returns its full name, which the engine no longer has. */
  push(engineAddress: string, image: string, path: string): Promise<string>
  stop(): Promise<void>
}

const USERNAME = 'deployer'
const PASSWORD = 'registry horse battery'
/** The bcrypt hash of that password; the registry takes no other kind. */
const HTPASSWD = `${USERNAME}:$2b$05$fairleadfairleadfairleyOs6WEFF1UX0LoMgGiqUQiNuwIxWlai\n`

export async function testRegistry(): Promise<TestRegistry> {
  const folder = await mkdtemp(join(tmpdir(), 'fairlead-registry-'))
  const host = `127.0.0.1:${await freePort()}`
  await writeFile(join(folder, 'htpasswd'), HTPASSWD)
  await writeFile(join(folder, 'config.yml'), configuration(folder, host))
  const child = spawn('docker-registry', ['serve', join(folder, 'config.yml')], { stdio: 'ignore' })
  // A test that fails before it stops the registry must end all the same.
  child.unref()
  process.once('exit', () => child.kill('SIGKILL'))
  const ended = new Promise<void>(done => child.once('close', () => done()))
  const failed = new Promise<never>((_done, reject) => child.once('error', reject))
  await Promise.race([untilAnswering(host), failed])
  return {
    host,
    username: USERNAME,
    password: PASSWORD,
    async push(engineAddress, image, path) {
      const client = new EngineClient(engineAddress)
      try {
        return await push(client, image, `${host}/${path}`)
      } finally {
        client.close()
      }
    },
    async stop() {
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Where nothing ever comes back. */
export async function silentServer(): Promise<{ host: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    close: () =>
      new Promise(done => {
        server.close(() => done())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

async function push(client: EngineClient, image: string, name: string): Promise<string> {
  const [repository = '', tag = ''] = name.split(/:(?=[^/]*$)/)
  const at = (one: string) => `/images/${one.split('/').map(encodeURIComponent).join('/')}`
  await client.json('POST', `${at(image)}/tag`, { query: { repo: repository, tag } })
  // The alphabet for URLs, with padding, as Docker wants it; this text has no character that would need another.
  const auth = Buffer.from(JSON.stringify({ username: USERNAME, password: PASSWORD })).toString('base64')
  const response = await client.stream('POST', `${at(repository)}/push`, {
    query: { tag },
    headers: { 'x-registry-auth': auth },
  })
  for await (const line of jsonLines(response)) {
    const { error } = line as { error?: string }
    if (error) throw new Error(`${name} could not be pushed: ${error}`)
  }
  await client.json('DELETE', at(name))
  return name
}

const configuration = (folder: string, host: string) => `version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: ${folder}/data}}
http: {addr: '${host}', secret: only-for-tests}
auth: {htpasswd: {realm: tests, path: ${folder}/htpasswd}}
`

async function untilAnswering(host: string): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const answer = await fetch(`http://${host}/v2/`).catch(() => undefined)
    if (answer?.status === 401) return
    await sleep(50)
  }
  throw new Error(`The registry at ${host} does not answer.`)
}
