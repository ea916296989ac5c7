// Load by wrk: one thread, fifty connections.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Load {
  perSecond: number
  requests: number
  p99Ms: number
}

/** Anything but success is an error. */
export async function wrk(url: string, seconds: number, headers: Record<string, string> = {}): Promise<Load> {
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const { stdout } = await run('wrk', ['-t1', '-c50', `-d${seconds}s`, '--latency', ...given, url])
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`${url}\n${stdout}`)
  const [, p99, unit] = /99%\s+([\d.]+)(us|ms|s)/.exec(stdout) ?? []
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
    requests: Number(/(\d+) requests in/.exec(stdout)?.[1]),
    p99Ms: Number(p99) * (unit === 'us' ? 0.001 : unit === 'ms' ? 1 : 1000),
  }
}
