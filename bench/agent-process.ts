// The agent as its launcher runs it: a process of its own, on a folder of its own.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const API_KEY = 'fl_0123456789012345678901234567890123456789'

export interface AgentProcess {
  url: string
  pid: number
  folder: string
  /** From the spawning to the first healthy answer. */
  startMs: number
  /** Resident memory, in bytes. */
  resident(): Promise<number>
  /** A token for the key of the configuration, or for a user made for the purpose. */
  token(as?: 'user'): Promise<string>
  /** Stops it and, unless it is to be started again, removes its folder. */
  stop(keep?: 'keep'): Promise<void>
}

export async function agentFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fairlead-bench-'))
  await writeFile(join(folder, 'config.yml'), `auth:\n  api_keys: [${API_KEY}]\n`, { mode: 0o600 })
  return folder
}

let ports = 18_400

export async function startAgent(
  folder: string,
  nodeOptions: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<AgentProcess> {
  const port = ports++
  const url = `http://127.0.0.1:${port}`
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
  const began = performance.now()
  const child = spawn(
    process.execPath,
    [...(await launcherOptions()), ...nodeOptions, main, '--config', join(folder, 'config.yml')],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...env, FAIRLEAD_API_PORT: String(port) },
    },
  )
  await healthy(url, child)
  const startMs = performance.now() - began
  return {
    url,
    pid: child.pid as number,
    folder,
    startMs,
    resident: () => residentOf(child.pid as number),
    token: as => tokenOf(url, as),
    async stop(keep) {
      child.kill()
      await once(child, 'exit')
      if (!keep) await rm(folder, { recursive: true, force: true })
    },
  }
}

export async function residentOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}

/** The most resident memory, in bytes, until it is stopped. */
export function watchResident(pid: number) {
  let most = 0
  const looking = setInterval(async () => {
    most = Math.max(most, await residentOf(pid))
  }, 50)
  return {
    stop() {
      clearInterval(looking)
      return most
    },
  }
}

/** The options that `npm start` gives to Node. */
async function launcherOptions(): Promise<string[]> {
  const launcher = await readFile(new URL('../setup/start.sh', import.meta.url), 'utf8')
  return /^exec "\$NODE" (.*)"\$ROOT\/src\/main\.ts"/m.exec(launcher)?.[1]?.split(' ').filter(Boolean) ?? []
}

async function healthy(url: string, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 10_000; tries++) {
    if (child.exitCode !== null) throw new Error('the agent did not start')
    const answer = await fetch(`${url}/api/health`).then(
      response => response.json() as Promise<{ status: string }>,
      () => undefined,
    )
    if (answer?.status === 'healthy') return
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  throw new Error('the agent is not healthy')
}

async function tokenOf(url: string, as?: 'user'): Promise<string> {
  const post = async (path: string, body: object, token?: string) => {
    const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) }
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
    return (await answer.json()) as { token: string }
  }
  const { token } = await post('/api/auth/login', { api_key: API_KEY })
  if (!as) return token
  const user = { username: 'bench', password: 'a word for the bench' }
  await post('/api/users', { ...user, role: 'operator' }, token)
  return (await post('/api/auth/login', user)).token
}
