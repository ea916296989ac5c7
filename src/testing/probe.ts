// A feature for the tests of the mechanism: steps of every kind that act on the files of one folder, and that can be
// made to fail, wait or die at each of their points.

import { createWriteStream, existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import type { AgentOptions } from '../agent.ts'
import { revisionOf } from '../core/canonical.ts'
import { type Code, Failure, notFound } from '../core/failure.ts'
import { type Ask, command, follow, query } from '../core/operation.ts'
import { type AnyTable, deleteRecord, putRecord } from '../core/record.ts'
import { Nothing, Secret, type Static, Type, Words } from '../core/schema.ts'
import { each, resultOf, type Step, stepKind } from '../core/step.ts'
import type { Database } from '../store/database.ts'
import { table } from '../store/table.ts'
import { type TestAgent, type TestAgentOptions, testAgent } from './agent.ts'

export interface Probe {
  folder: string
  extra: NonNullable<AgentOptions['extra']>
  /** What happens when a step comes to a point, such as `a:half`. Points of a record must not wait. */
  at: Map<string, () => void | Promise<void>>
  /** The points that were reached, in order. */
  reached: string[]
  /** The frames a follow sends are made by this. */
  frames(signal: AbortSignal): AsyncIterable<object>
  attach(db: Database): void
  /** The files of the folder with their content. */
  files(): Promise<Record<string, string>>
}

export interface ProbeAgent extends TestAgent {
  probe: Probe
}

export interface ProbeOptions extends TestAgentOptions {
  probeFolder?: string
  /** What happens at a point, from the start on: a recovery comes to points too. */
  at?: Record<string, () => void | Promise<void>>
}

/** A test agent with the probe feature beside those of the product. */
export async function probeAgent(options: ProbeOptions = {}): Promise<ProbeAgent> {
  const { probeFolder, at, ...rest } = options
  const folder = probeFolder ?? (await mkdtemp(join(tmpdir(), 'fairlead-probe-')))
  await mkdir(folder, { recursive: true })
  const made = probe(folder)
  for (const [point, what] of Object.entries(at ?? {})) made.at.set(point, what)
  const agent = await testAgent({ ...rest, extra: made.extra })
  made.attach(agent.db)
  const stop = async (keep?: 'keep') => {
    await agent.stop(keep)
    if (!keep) await rm(folder, { recursive: true, force: true })
  }
  return { ...agent, stop, probe: made }
}

/** Makes a step fail at a point. */
export const failing =
  (code: Code = 'UPSTREAM_FAILED', sentence = 'It broke.') =>
  () => {
    throw new Failure(code, sentence)
  }

/** Holds a step at a point until it is let go. */
export function gate(): { reached: Promise<void>; open(): void; hold(): Promise<void> } {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  return {
    reached: reached.promise,
    open: () => opened.resolve(),
    hold: () => {
      reached.resolve()
      return opened.promise
    },
  }
}

interface NoteRow {
  name: string
  text: string
  token: string
  seen: number
}

const FileName = Type.String({ pattern: '^[a-z][a-z0-9-]{0,30}$' })
const StepInput = Type.Object({
  do: Words(['write', 'look', 'burn', 'tidy', 'work', 'note', 'each']),
  file: Type.Optional(FileName),
  text: Type.Optional(Type.String()),
  /** Writes what this earlier step returned. */
  from: Type.Optional(Type.String()),
  as: Type.Optional(Type.String()),
  seconds: Type.Optional(Type.Number()),
  each: Type.Optional(Type.Array(Type.Unknown())),
})
type StepInput = Static<typeof StepInput>

export function probe(folder: string): Probe {
  const at: Probe['at'] = new Map()
  const reached: string[] = []
  let db: Database | undefined
  const come = (point: string): void | Promise<void> => {
    reached.push(point)
    return at.get(point)?.()
  }
  const pathOf = (file: string) => join(folder, file)
  const contentOf = (file: string) => readFile(pathOf(file), 'utf8').catch(() => null)
  const restore = async (file: string, content: string | null) => {
    await come(`${file}:undo`)
    if (content === null) await rm(pathOf(file), { force: true })
    else await writeFile(pathOf(file), content)
    await come(`${file}:undone`)
  }
  const keepOld = async (file: string) => {
    await come(`${file}:before`)
    return { content: await contentOf(file) }
  }

  const write = stepKind<
    { file: string; text: string; secret?: boolean },
    { content: string | null },
    { size: number; text: string }
  >('probe.write', {
    describe: ({ file, text, secret }) => ({
      type: 'file',
      id: file,
      action: 'create',
      after: secret ? '[redacted]' : text,
      ...(secret ? { sensitive: true } : {}),
    }),
    before: (_world, { file }) => keepOld(file),
    async perform(_world, { file, text }) {
      await come(`${file}:begin`)
      await writeFile(pathOf(file), text.slice(0, text.length / 2))
      await come(`${file}:half`)
      await writeFile(pathOf(file), text)
      await come(`${file}:done`)
      return { size: text.length, text }
    },
    end: { undo: (_world, { file }, { content }) => restore(file, content) },
  })

  const look = stepKind<{ file: string }, undefined, { text: string }>('probe.look', {
    describe: ({ file }) => ({ type: 'process', id: file, action: 'run' }),
    async before(_world, { file }) {
      await come(`${file}:before`)
      return undefined
    },
    async perform(_world, { file }) {
      await come(`${file}:begin`)
      const text = (await contentOf(file)) ?? ''
      await come(`${file}:half`)
      await come(`${file}:done`)
      return { text }
    },
    end: 'harmless',
  })

  const burn = stepKind<{ file: string }>('probe.burn', {
    describe: ({ file }) => ({ type: 'file', id: file, action: 'delete' }),
    async before(_world, { file }) {
      await come(`${file}:before`)
      return undefined
    },
    async perform(_world, { file }) {
      await come(`${file}:begin`)
      await writeFile(pathOf(file), '')
      await come(`${file}:half`)
      await unlink(pathOf(file))
      await come(`${file}:done`)
    },
    end: 'final',
  })

  const tidy = stepKind<{ file: string; text: string }, undefined, { text: string }>('probe.tidy', {
    describe: ({ file }) => ({ type: 'file', id: file, action: 'replace' }),
    async before(_world, { file }) {
      await come(`${file}:before`)
      return undefined
    },
    async perform(_world, { file, text }) {
      await come(`${file}:begin`)
      await writeFile(pathOf(file), '')
      await come(`${file}:half`)
      await writeFile(pathOf(file), text)
      await come(`${file}:done`)
      return { text }
    },
    end: 'repeatable',
  })

  const work = stepKind<{ file: string; seconds: number }, { content: string | null }>('probe.work', {
    describe: ({ file, seconds }) => ({ type: 'process', id: file, action: 'run', reason: `takes ${seconds} s` }),
    before: (_world, { file }) => keepOld(file),
    async perform(_world, { file, seconds }, { signal, progress }) {
      const began = performance.now()
      for (let done = 0; done < 1; ) {
        await writeFile(pathOf(file), `${Math.round(done * 100)} %`)
        await come(`${file}:half`)
        await wait(20, undefined, { signal })
        done = Math.min(1, (performance.now() - began) / (seconds * 1000))
        progress(done * 100, `${Math.round(done * 100)} % of ${file}`)
      }
    },
    end: { undo: (_world, { file }, { content }) => restore(file, content) },
  })

  const receive = stepKind<{ file: string; size: number }, { content: string | null }, { size: number }>(
    'probe.receive',
    {
      describe: ({ file, size }) => ({ type: 'object', id: file, action: 'create', after: `${size} bytes` }),
      before: async (_world, { file }) => keepOld(file),
      async perform(_world, { file, size }, { upload, signal, progress }) {
        let got = 0
        async function* counted(chunks: AsyncIterable<Uint8Array>) {
          for await (const chunk of chunks) {
            got += chunk.length
            progress((got / size) * 100)
            yield chunk
          }
        }
        await pipeline(upload ?? Readable.from([]), counted, createWriteStream(pathOf(file)), { signal })
        await come(`${file}:done`)
        return { size: got }
      },
      end: { undo: (_world, { file }, { content }) => restore(file, content) },
    },
  )

  const plain = table<NoteRow>('probe_notes', {
    noun: 'note',
    key: ['name'],
    columns: ['name', 'text', 'token', 'seen'],
    secret: ['token'],
    volatile: ['seen'],
    label: note => note.name,
  })
  const notes: typeof plain = {
    ...plain,
    put(db, note) {
      void come(`${note.name}:record`)
      return plain.put(db, note)
    },
  }
  const noteRow = (name: string) => (db && notes.get(db, { name })) ?? undefined

  const stepsOf = (given: readonly StepInput[], secret: string | undefined, { fresh }: Ask): Step[] => {
    const named = new Map<string, Step<{ text: string }>>()
    const stepOf = (input: StepInput): Step => {
      const { file = 'x', as, from } = input
      const source = from === undefined ? undefined : named.get(from)
      const text = source ? resultOf(source, 'text') : (input.text ?? secret ?? fresh.text(file, 24))
      const step = {
        write: () =>
          write(
            { file, text, ...(input.text === undefined && secret !== undefined ? { secret: true } : {}) },
            { ...(as ? { as } : {}) },
          ),
        look: () => look({ file }, { ...(as ? { as } : {}) }),
        burn: () => burn({ file }, { cause: 'asked for by name' }),
        tidy: () => tidy({ file, text }, { ...(as ? { as } : {}) }),
        work: () => work({ file, seconds: input.seconds ?? 1 }),
        note: () =>
          putRecord(notes, noteRow(file), {
            ...(noteRow(file) ?? { token: fresh.text('token', 24), seen: 0 }),
            name: file,
            text,
          }),
        each: () => each((input.each as StepInput[]).map(stepOf), { ...(as ? { as } : {}) }),
      }[input.do]()
      if (as) named.set(as, step as Step<{ text: string }>)
      return step
    }
    return given.map(stepOf)
  }

  const run = command('probe.run', {
    summary: 'Do what the test says',
    http: { method: 'POST', path: '/api/probe/:name/run' },
    permission: 'deployments:write',
    resource: { type: 'probe', id: ({ name }) => name },
    scope: ({ deployment }) => (deployment === undefined ? [] : [{ deployment, level: 'write' }]),
    locks: ({ locks = [] }) => locks,
    input: Type.Object({
      name: FileName,
      deployment: Type.Optional(Type.String()),
      locks: Type.Optional(Type.Array(Type.String())),
      secret: Type.Optional(Secret(Type.String())),
      steps: Type.Array(StepInput),
    }),
    output: Type.Object({ name: Type.String(), results: Type.Unknown(), secret: Type.Optional(Secret(Type.String())) }),
    example: { name: 'a', steps: [] },
    fails: ['UPSTREAM_FAILED'],
    async decide(ask, { name, steps, secret }) {
      await come(`${name}:decide`)
      return stepsOf(steps, secret, ask)
    },
    async reply(_ask, { name, secret }, results) {
      await come(`${name}:reply`)
      return { name, results, ...(secret === undefined ? {} : { secret }) }
    },
    message: 'It was done.',
  })

  const sweep = command('probe.sweep', {
    summary: 'Remove every file there is',
    http: { method: 'POST', path: '/api/probe/sweep' },
    permission: 'deployments:write',
    resource: { type: 'probe', id: () => null },
    input: Type.Object({}),
    output: Nothing,
    example: {},
    async decide() {
      return (await readdir(folder)).sort().map(file => burn({ file }))
    },
  })

  const Note = Type.Object({ name: Type.String(), text: Type.String(), seen: Type.Integer() })
  const shown = (name: string) => {
    const { token: _, ...note } = noteRow(name) ?? notFound('note', name)
    return note
  }

  const makeNote = command('probe.make_note', {
    summary: 'Make a note',
    http: { method: 'POST', path: '/api/probe/notes', status: 201 },
    permission: 'deployments:write',
    resource: { type: 'note', id: ({ name }) => name },
    input: Type.Object({ name: FileName, text: Type.String(), token: Type.Optional(Secret(Type.String())) }),
    output: Type.Object({ name: Type.String(), token: Secret(Type.String()) }),
    example: { name: 'a', text: 'b' },
    fails: ['ALREADY_EXISTS'],
    decide({ fresh }, { name, text, token = fresh.text('token', 24) }) {
      if (noteRow(name)) throw new Failure('ALREADY_EXISTS', `There is a note "${name}" already.`)
      return [putRecord(notes, null, { name, text, token, seen: 0 })]
    },
    async reply(_ask, { name }) {
      await come(`${name}:reply`)
      return { name, token: (noteRow(name) as NoteRow).token }
    },
  })

  const oneNote = {
    permission: 'deployments:write',
    resource: { type: 'note', id: ({ name }: { name: string }) => name },
  } as const

  const getNote = query('probe.get_note', {
    summary: 'Show a note',
    http: { method: 'GET', path: '/api/probe/notes/:name' },
    permission: 'deployments:read',
    input: Type.Object({ name: FileName }),
    output: Note,
    example: { name: 'a' },
    read: (_ask, { name }) => shown(name),
    revision: ({ seen: _, ...note }) => revisionOf(note),
  })

  const changeNote = command('probe.change_note', {
    ...oneNote,
    summary: 'Change a note',
    http: { method: 'PUT', path: '/api/probe/notes/:name' },
    input: Type.Object({ name: FileName, text: Type.String() }),
    output: Note,
    example: { name: 'a', text: 'b' },
    async decide(_ask, { name, text }) {
      const before = noteRow(name) ?? notFound('note', name)
      await come(`${name}:decide`)
      return [putRecord(notes, before, { ...before, text })]
    },
    reply: (_ask, { name }) => shown(name),
  })

  const deleteNote = command('probe.delete_note', {
    ...oneNote,
    summary: 'Delete a note',
    http: { method: 'DELETE', path: '/api/probe/notes/:name' },
    input: Type.Object({ name: FileName }),
    output: Nothing,
    example: { name: 'a' },
    decide: (_ask, { name }) => [deleteRecord(notes, noteRow(name) ?? notFound('note', name))],
  })

  const upload = command('probe.upload', {
    summary: 'Take a file',
    http: { method: 'PUT', path: '/api/probe/files/:file', upload: true },
    permission: 'deployments:write',
    resource: { type: 'object', id: ({ file }) => file },
    input: Type.Object({ file: FileName, size: Type.Integer() }),
    output: Type.Object({ size: Type.Integer() }),
    example: { file: 'a', size: 1 },
    decide: (_ask, { file, size }) => [receive({ file, size }, { as: 'received' })],
    reply: (_ask, _input, { received }) => received as { size: number },
  })

  const watch = follow('probe.follow', {
    summary: 'Follow what happens',
    http: { method: 'GET', path: '/api/probe/:deployment/follow' },
    permission: 'deployments:read',
    scope: ({ deployment }) => [{ deployment, level: 'read' }],
    input: Type.Object({ deployment: FileName, tail: Type.Optional(Type.Integer()) }),
    example: { deployment: 'shop' },
    open: ({ signal }) => made.frames(signal),
  })

  const made: Probe = {
    folder,
    at,
    reached,
    extra: {
      operations: [run, sweep, makeNote, getNote, changeNote, deleteNote, upload, watch],
      kinds: [write, look, burn, tidy, work, receive],
      tables: [notes as unknown as AnyTable],
    },
    async *frames() {},
    attach(given) {
      db = given
      db.run(
        'CREATE TABLE IF NOT EXISTS probe_notes (name TEXT PRIMARY KEY, text TEXT NOT NULL, token TEXT NOT NULL, seen INTEGER NOT NULL DEFAULT 0) STRICT',
      )
    },
    async files() {
      const names = existsSync(folder) ? (await readdir(folder)).sort() : []
      const found = await Promise.all(
        names.map(async name => [
          name,
          (await stat(pathOf(name))).size < 10_000 ? await readFile(pathOf(name), 'utf8') : '…',
        ]),
      )
      return Object.fromEntries(found)
    },
  }
  return made
}
