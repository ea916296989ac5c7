// The first deployment of the README, done as it is written there.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { API_KEY, type TestAgent, testAgent } from '../src/testing/agent.ts'
import { standIns } from '../src/testing/images.ts'
import { freePort } from '../src/testing/port.ts'

const ROOT = new URL('..', import.meta.url).pathname

let agent: TestAgent
let home: string
let lines: string[]
let removeImages: () => Promise<void>
const ports: Record<string, number> = {}
before(async () => {
  agent = await testAgent({ empty: true })
  home = await mkdtemp(join(tmpdir(), 'fairlead-readme-'))
  ports['8090'] = Number(new URL(await agent.app.listen({ port: 0 })).port)
  ports['8080'] = await freePort()
  ports['8081'] = await freePort()
  const section = /## Your first deployment\n(.*?)\nThe same over HTTP/s.exec(
    await readFile(`${ROOT}README.md`, 'utf8'),
  )
  const blocks = [...(section?.[1] ?? '').matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block)
  const script = blocks.join('').replace(/\b80(90|80|81)\b/g, port => String(ports[port]))
  lines = script.replace('"$PWD/bin', `"${ROOT}bin`).match(/^cat .*?^EOF\n|^[^\n]+\n/gms) ?? []
  removeImages = await standIns({ nginx: /image: (\S+)/.exec(script)?.[1] as string })
})
after(async () => {
  await shell('fairlead deployments delete hello --remove-files').catch(() => {})
  await agent.stop()
  await removeImages()
  await rm(home, { recursive: true, force: true })
})

/** A line at a time, as somebody at a prompt; the environment of the first is that of all. */
async function shell(line: string): Promise<string> {
  const { DOCKER_HOST: _, ...env } = process.env
  const child = spawn('bash', ['-ec', `${lines[0]}\n${line}`], { cwd: home, env: { ...env, HOME: home } })
  child.stdin.end(line.startsWith('fairlead login') ? `${API_KEY}\n` : '')
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  assert.equal(code, 0, `${line}${stdout}${stderr}`)
  return stdout
}

test('created after a plan, opened, changed after a plan, rolled back, read and deleted, line by line', async () => {
  const seen: string[] = []
  for (const line of lines.slice(1)) {
    const id = /plans apply (\S+)\s*$/.exec(seen.at(-1) ?? '')?.[1] ?? ''
    seen.push(await shell(line.replace(/^(fairlead plans apply) ID/, `$1 ${id}`)))
  }
  const saidBy = (start: string) => seen.filter((_, index) => lines[index + 1]?.startsWith(start))
  assert.equal(saidBy('curl').length, 3)
  for (const page of saidBy('curl')) assert.match(page, /nginx/)
  const [planned, created, changing, rolledBack] = saidBy('fairlead deployments').map(String)
  assert.match(planned ?? '', /create container hello-web-1/)
  assert.match(created ?? '', /running/)
  assert.match(changing ?? '', new RegExp(`-.*${ports['8080']}:80.*\\n.*\\+.*${ports['8081']}:80`))
  assert.match(changing ?? '', /replace container hello-web-1/)
  assert.match(rolledBack ?? '', /running/)
  assert.match(String(saidBy('fairlead deployments list')), /hello .*running/)
  assert.match(String(saidBy('fairlead deployments logs')), /web \| .*GET \//)
  assert.deepEqual((await agent.request('GET /api/deployments')).json(), [])
})
