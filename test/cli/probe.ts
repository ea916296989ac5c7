// A feature beside those of the product: fields of every shape, long work, files and a stream, for the client to meet.

import { setTimeout as pause } from 'node:timers/promises'
import { fail } from '../../src/core/failure.ts'
import { command, download, follow, type Operation, query } from '../../src/core/operation.ts'
import { Nullable, Paged, Secret, Type, Words } from '../../src/core/schema.ts'
import { stepKind } from '../../src/core/step.ts'

const work = stepKind<{ name: string; ms: number; fails?: boolean | undefined }>('probe.work', {
  describe: ({ name }) => ({ type: 'process', id: name, action: 'run', reason: 'it was asked for' }),
  async perform(_world, { name, ms, fails }, { progress, signal }) {
    for (let percent = 0; percent < 100; percent += 25) {
      progress(percent, `polishing ${name}`)
      await pause(ms / 4, undefined, { signal })
    }
    if (fails) fail('UPSTREAM_FAILED', `The polish for ${name} is used up.`)
  },
  end: 'harmless',
})

const receive = stepKind<object, undefined, { bytes: number }>('probe.receive', {
  describe: () => ({ type: 'object', id: 'upload', action: 'create' }),
  async perform(_world, _data, { upload }) {
    let bytes = 0
    for await (const chunk of upload ?? []) bytes += (chunk as Buffer).length
    return { bytes }
  },
  end: 'harmless',
})

const resource = { type: 'probe' }
const Entry = Type.Object({ time: Type.String(), service: Type.String(), stream: Type.String(), line: Type.String() })
const entries = [1, 2, 3].map(number => ({
  time: `2026-01-01T00:00:0${number}.000Z`,
  service: 'web',
  stream: 'stdout',
  line: `line ${number}`,
}))

/** Answers what it was sent; of a secret only its length. */
const shapes = command('probe.shapes', {
  summary: 'Take fields of every shape',
  http: { method: 'POST', path: '/api/probe/:id/shapes' },
  permission: 'authenticated',
  resource,
  input: Type.Object({
    id: Type.String(),
    name: Type.String(),
    count: Type.Optional(Type.Integer()),
    ratio: Type.Optional(Type.Number()),
    is_on: Type.Optional(Type.Boolean()),
    words: Type.Optional(Type.Array(Words(['red', 'green', 'blue']))),
    labels: Type.Optional(Type.Record(Type.String(), Type.String())),
    limits: Type.Optional(
      Type.Object({
        per_second: Type.Optional(Type.Integer()),
        burst: Type.Optional(Type.Object({ on: Type.Boolean() })),
      }),
    ),
    env_vars: Type.Optional(Type.Array(Type.Object({ key: Type.String(), value: Type.String() }))),
    targets: Type.Optional(Type.Array(Type.Object({ host: Type.String(), port: Type.Integer() }))),
    page_content: Type.Optional(Type.String()),
    note: Type.Optional(Nullable(Type.String())),
    pass_phrase: Type.Optional(Secret(Type.String({ minLength: 4 }))),
    output: Type.Optional(Type.String({ description: 'Named like a flag of the client' })),
    json: Type.Optional(Type.String()),
  }),
  output: Type.Object({ sent: Type.Unknown() }),
  example: {
    id: '1',
    name: 'x',
    count: 3,
    words: ['red', 'blue'],
    limits: { per_second: 5 },
    env_vars: [{ key: 'A', value: 'b c' }],
  },
  decide: () => [],
  reply: (_ask, { pass_phrase, ...rest }) => ({
    sent: { ...rest, ...(pass_phrase ? { secret_length: pass_phrase.length } : {}) },
  }),
  message: 'Taken.',
})

const polish = command('probe.polish', {
  summary: 'Work for a while',
  http: { method: 'POST', path: '/api/probe/polish' },
  permission: 'authenticated',
  resource,
  input: Type.Object({ what: Type.String(), ms: Type.Integer({ default: 0 }), fails: Type.Optional(Type.Boolean()) }),
  output: Type.Object({ shine: Type.Integer() }),
  example: { what: 'lamp', ms: 0 },
  fails: ['UPSTREAM_FAILED'],
  decide: (_ask, { what, ms, fails }) => [work({ name: `${what} one`, ms }), work({ name: `${what} two`, ms, fails })],
  reply: () => ({ shine: 100 }),
  message: 'It shines.',
})

const put = command('probe.put', {
  summary: 'Take a file',
  http: { method: 'POST', path: '/api/probe/files', upload: true },
  permission: 'authenticated',
  resource,
  input: Type.Object({ key: Type.String() }),
  output: Type.Object({ key: Type.String(), bytes: Type.Integer() }),
  example: { key: 'a.bin' },
  decide: (_ask, { key }) => {
    if (key === 'forbidden') fail('CONFLICT', 'Nothing is kept under this name.')
    return [receive({}, { as: 'received' })]
  },
  reply: (_ask, { key }, { received }) => ({ key, bytes: (received as { bytes: number }).bytes }),
})

const take = download('probe.take', {
  summary: 'Give a file',
  http: { method: 'GET', path: '/api/probe/files/:key' },
  permission: 'authenticated',
  mediaTypes: ['application/octet-stream'],
  input: Type.Object({
    key: Type.String(),
    size: Type.Integer({ default: 1000 }),
    breaks: Type.Optional(Type.Boolean()),
  }),
  example: { key: 'a.bin', size: 1000 },
  open: (_ask, { key, size, breaks }) => ({
    mediaType: 'application/octet-stream',
    filename: key,
    chunks: bytes(size, breaks ?? false),
  }),
})

const lines = query('probe.lines', {
  summary: 'Read lines',
  http: { method: 'GET', path: '/api/probe/lines' },
  permission: 'authenticated',
  input: Type.Object({ tail: Type.Integer({ default: 100 }) }),
  output: Type.Array(Entry),
  example: { tail: 2 },
  read: (_ask, { tail }) => entries.slice(-tail),
})

const linesStream = follow('probe.lines_stream', {
  summary: 'Follow lines',
  http: { method: 'GET', path: '/api/probe/lines/stream' },
  permission: 'authenticated',
  input: Type.Object({ tail: Type.Integer({ default: 100 }), endless: Type.Optional(Type.Boolean()) }),
  example: { tail: 2 },
  open: ({ signal }, { tail, endless }) => frames(tail, endless ? signal : undefined),
})

const nothing = query('probe.nothing', {
  summary: 'List nothing',
  http: { method: 'GET', path: '/api/probe/nothing' },
  permission: 'authenticated',
  input: Type.Object({ limit: Type.Integer({ default: 50 }), offset: Type.Integer({ default: 0 }) }),
  output: Paged(Type.Object({ id: Type.Integer() })),
  example: { limit: 50, offset: 0 },
  read: (_ask, { limit, offset }) => ({ data: [], total: 0, limit, offset }),
})

export const probe = {
  operations: [shapes, polish, put, take, lines, linesStream, nothing] as readonly Operation[],
  kinds: [work, receive] as readonly unknown[],
}

async function* bytes(size: number, breaks: boolean): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < size; sent += 65_536) {
    yield Buffer.alloc(Math.min(65_536, size - sent), 'fairlead')
    if (breaks) throw new Error('the disk broke')
  }
}

async function* frames(tail: number, until: AbortSignal | undefined): AsyncGenerator<object> {
  for (const entry of entries.slice(-tail)) yield { type: 'log', ...entry }
  await pause(50)
  yield { type: 'log', ...entries[0], line: 'a new line' }
  while (until && !until.aborted) await pause(20)
}
