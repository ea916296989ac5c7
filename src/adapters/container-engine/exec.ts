// Runs a command inside a container.

import type { Duplex } from 'node:stream'
import { Failure } from '../../core/failure.ts'
import type { EngineClient } from './client.ts'
import type { CallLimit } from './containers.ts'
import { type Frame, frames } from './frames.ts'
import { Limit } from './limit.ts'

export type ExecSpec = {
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly user?: string
  readonly folder?: string
}

export type ExecOutput = {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly truncated: boolean
}

/** A command under way: bytes in, frames out, and its exit code once `output` has ended. */
export type ExecSession = {
  readonly input: Duplex
  readonly output: AsyncGenerator<Frame[]>
  code(): Promise<number>
}

export type ExecCalls = ReturnType<typeof execCalls>

export function execCalls(client: EngineClient) {
  return {
    /** Cancelling closes the connection; the engine has no way to end the command itself, the container goes on with it. */
    open: (container: string, spec: ExecSpec, limit: OpenLimit = {}): Promise<ExecSession> =>
      open(client, container, spec, limit),

    /** Runs to the end within `deadlineMs` and gathers what it printed, up to `maxOutput` bytes of each stream. */
    run: async (
      container: string,
      spec: ExecSpec,
      {
        input,
        maxOutput = 1024 * 1024,
        deadlineMs = 60_000,
        signal,
      }: CallLimit & { input?: string; maxOutput?: number } = {},
    ): Promise<ExecOutput> => {
      const sentence = `The command in the container did not end within ${Math.ceil(deadlineMs / 1000)} s.`
      const limit = new Limit(deadlineMs, () => new Failure('TIMEOUT', sentence), signal)
      try {
        const session = await open(client, container, spec, { signal: limit.signal, input: input !== undefined })
        if (input !== undefined) session.input.end(input)
        return await gather(session, maxOutput, limit.signal)
      } catch (error) {
        throw client.explain(limit.cause(error))
      } finally {
        limit.release()
      }
    },
  }
}

type OpenLimit = CallLimit & { readonly input?: boolean }

async function open(client: EngineClient, container: string, spec: ExecSpec, limit: OpenLimit): Promise<ExecSession> {
  const id = await create(client, container, spec, limit)
  const body = { Detach: false, Tty: false }
  const socket = await client.hijack(`/exec/${id}/start`, { signal: limit.signal, deadlineMs: limit.deadlineMs, body })
  return { input: socket, output: frames(socket), code: () => exitCode(client, id, limit.signal) }
}

async function create(
  client: EngineClient,
  container: string,
  spec: ExecSpec,
  limit: CallLimit & { input?: boolean },
): Promise<string> {
  const body = {
    Cmd: spec.command,
    Env: Object.entries(spec.env ?? {}).map(([key, value]) => `${key}=${value}`),
    AttachStdin: limit.input ?? false,
    AttachStdout: true,
    AttachStderr: true,
    ...(spec.user === undefined ? {} : { User: spec.user }),
    ...(spec.folder === undefined ? {} : { WorkingDir: spec.folder }),
  }
  const options = { signal: limit.signal, deadlineMs: limit.deadlineMs, body }
  return (await client.json<{ Id: string }>('POST', `/containers/${encodeURIComponent(container)}/exec`, options)).Id
}

/** The output may end a moment before the engine has noted the code. */
async function exitCode(client: EngineClient, id: string, signal: AbortSignal | undefined): Promise<number> {
  for (;;) {
    const { Running, ExitCode } = await client.json<{ Running: boolean; ExitCode: number | null }>(
      'GET',
      `/exec/${id}/json`,
      { signal },
    )
    if (!Running && ExitCode !== null) return ExitCode
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

async function gather(session: ExecSession, maxOutput: number, signal: AbortSignal): Promise<ExecOutput> {
  const kept = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
  const size = { stdout: 0, stderr: 0 }
  for await (const batch of session.output) {
    for (const { stream, data } of batch) {
      const room = Math.max(0, maxOutput - size[stream])
      // A copy, so that a small frame does not keep the whole chunk it came in.
      if (room) kept[stream].push(Buffer.from(data.subarray(0, room)))
      size[stream] += data.length
    }
  }
  signal.throwIfAborted()
  const text = (chunks: Buffer[]) => Buffer.concat(chunks).toString()
  const truncated = Math.max(size.stdout, size.stderr) > maxOutput
  return { code: await session.code(), stdout: text(kept.stdout), stderr: text(kept.stderr), truncated }
}
