// A proxy in front of the real engine that does on demand what the real one won't: go away, hang, or be newer than it is.

import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { type EngineAddress, parseAddress } from '../adapters/container-engine/address.ts'
import { compareApi } from '../adapters/container-engine/version.ts'

export type EngineProxy = {
  readonly address: string
  /** Every request line that came through, newest last. */
  readonly requests: string[]
  /** From now on the engine claims these versions and refuses all paths outside them. */
  claim(api: string, minApi: string): void
  /** While true, requests are taken and never answered. */
  hang(on: boolean): void
  /** Closes the socket and cuts every connection. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

export async function engineProxy(address: string): Promise<EngineProxy> {
  const target = targetOf(parseAddress(address))
  const folder = mkdtempSync(join(tmpdir(), 'fl-proxy-'))
  const socketPath = join(folder, 'engine.sock')
  const real = await realVersion(target)
  const sockets = new Set<Duplex>()
  const requests: string[] = []
  let claimed: { api: string; minApi: string } | undefined
  let hanging = false

  const pathOf = (url: string): string | undefined => {
    const version = /^\/v(\d+\.\d+)\//.exec(url)?.[1]
    if (!claimed || !version) return url
    if (compareApi(version, claimed.minApi) < 0 || compareApi(version, claimed.api) > 0) return undefined
    return url.replace(/^\/v[\d.]+/, `/v${real}`)
  }

  const server = http.createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (hanging) return
    const path = pathOf(request.url ?? '/')
    if (path === undefined) return refuse(response, request.url ?? '', claimed)
    const onward = http.request({ ...target, method: request.method, path, headers: request.headers, agent: false })
    onward.on('response', answer => {
      if (claimed && path === '/version') return void claimVersion(answer, response, claimed)
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      response.flushHeaders()
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    // In one piece: an engine that has answered and closed would make a later write, even an empty one, an error.
    bytesOf(request).then(
      body => onward.end(body),
      () => onward.destroy(),
    )
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (request, socket, head) => {
    requests.push(`${request.method} ${request.url}`)
    const onward = 'socketPath' in target ? connect(target.socketPath) : connect(target.port, target.host)
    const lines = request.rawHeaders.flatMap((value, i) => (i % 2 ? [] : [`${value}: ${request.rawHeaders[i + 1]}`]))
    onward.write(`${request.method} ${pathOf(request.url ?? '')} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    onward.write(head)
    socket.pipe(onward).pipe(socket)
    onward.on('error', () => socket.destroy())
    socket.on('error', () => onward.destroy())
  })

  const start = () => new Promise<void>(resolve => server.listen(socketPath, resolve))
  const stop = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  await start()
  return {
    address: `unix://${socketPath}`,
    requests,
    claim: (api, minApi) => {
      claimed = { api, minApi }
    },
    hang: on => {
      hanging = on
    },
    stop,
    start,
    async close() {
      if (server.listening) await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type Target = { socketPath: string } | { host: string; port: number }

const targetOf = (address: EngineAddress): Target =>
  address.kind === 'unix' ? { socketPath: address.path } : { host: address.host, port: address.port }

async function bytesOf(message: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function realVersion(target: Target): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>()
  http.get({ ...target, path: '/version', agent: false }, resolve).on('error', reject)
  return JSON.parse((await bytesOf(await promise)).toString()).ApiVersion
}

async function claimVersion(
  answer: http.IncomingMessage,
  response: http.ServerResponse,
  claimed: { api: string; minApi: string },
) {
  const body = JSON.parse((await bytesOf(answer)).toString())
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ ...body, ApiVersion: claimed.api, MinAPIVersion: claimed.minApi }))
}

function refuse(
  response: http.ServerResponse,
  url: string,
  claimed: { api: string; minApi: string } | undefined,
): void {
  const version = /^\/v([\d.]+)/.exec(url)?.[1] ?? ''
  const old = compareApi(version, claimed?.minApi ?? '') < 0
  const limits = old
    ? `Minimum supported API version is ${claimed?.minApi}`
    : `Maximum supported API version is ${claimed?.api}`
  response.writeHead(400, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ message: `client version ${version} is too ${old ? 'old' : 'new'}. ${limits}` }))
}
