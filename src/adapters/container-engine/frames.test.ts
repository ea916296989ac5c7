import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { frames, jsonLines, type LogLine, logLines, longestLine } from './frames.ts'

const at = '2026-11-15T01:45:12.123456789Z'
const later = '2026-11-15T01:45:13.000000001Z'

const frame = (stream: 1 | 2, text: string | Buffer): Buffer => {
  const data = Buffer.from(text)
  const header = Buffer.alloc(8)
  header[0] = stream
  header.writeUInt32BE(data.length, 4)
  return Buffer.concat([header, data])
}

async function* chunked(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let from = 0
  for (let i = 0; from < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? bytes.length
    yield bytes.subarray(from, from + size)
    from += size
  }
}

const lines = async (bytes: Buffer, tty = false, sizes = [bytes.length]): Promise<LogLine[]> => {
  const all: LogLine[] = []
  for await (const batch of logLines(chunked(bytes, sizes), tty)) all.push(...batch)
  return all
}

test('frames come out whole, however the bytes are cut', async () => {
  const any = fc.array(fc.tuple(fc.constantFrom<1 | 2>(1, 2), fc.string({ unit: 'binary', maxLength: 40 })), {
    maxLength: 30,
  })
  const cuts = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 })
  const property = fc.asyncProperty(any, cuts, async (wanted, sizes) => {
    const bytes = Buffer.concat(wanted.map(([stream, text]) => frame(stream, text)))
    const found: [number, string][] = []
    for await (const batch of frames(chunked(bytes, sizes))) {
      for (const { stream, data } of batch) found.push([stream === 'stderr' ? 2 : 1, data.toString()])
    }
    assert.deepEqual(
      found,
      wanted.map(([stream, text]) => [stream, Buffer.from(text).toString()]),
    )
  })
  await fc.assert(property, { numRuns: 50 })
})

test('lines of both streams keep their time and their order', async () => {
  const bytes = Buffer.concat([frame(1, `${at} one\n`), frame(2, `${later} two\r\n`), frame(1, `${later} \n`)])
  assert.deepEqual(await lines(bytes, false, [7]), [
    { time: at, stream: 'stdout', line: 'one' },
    { time: later, stream: 'stderr', line: 'two' },
    { time: later, stream: 'stdout', line: '' },
  ])
})

test('a line that the engine cut into messages is one line with its first time, also inside a character', async () => {
  const euro = Buffer.from('€')
  const first = Buffer.concat([Buffer.from(`${at} aaa`), euro.subarray(0, 1)])
  const second = Buffer.concat([Buffer.from(`${later} `), euro.subarray(1), Buffer.from('bbb\n')])
  const bytes = Buffer.concat([frame(1, first), frame(2, `${later} other\n`), frame(1, second)])
  assert.deepEqual(await lines(bytes), [
    { time: later, stream: 'stderr', line: 'other' },
    { time: at, stream: 'stdout', line: 'aaa€bbb' },
  ])
})

test('the log of a terminal is raw', async () => {
  const bytes = Buffer.from(`${at} one\r\n${later} two €\r\n`)
  for (const size of [1, 5, 33, bytes.length]) {
    assert.deepEqual(await lines(bytes, true, [size]), [
      { time: at, stream: 'stdout', line: 'one' },
      { time: later, stream: 'stdout', line: 'two €' },
    ])
  }
})

test('times of another zone or with fewer decimals become UTC with nine', async () => {
  const bytes = Buffer.concat([frame(1, '2026-11-15T03:45:12.5+02:00 x\n'), frame(1, '2026-11-15T01:45:12Z y\n')])
  assert.deepEqual(
    (await lines(bytes)).map(({ time }) => time),
    ['2026-11-15T01:45:12.500000000Z', '2026-11-15T01:45:12.000000000Z'],
  )
})

test('a line without end is cut, and the last line needs no end', async () => {
  const found = await lines(
    Buffer.concat([frame(1, `${at} ${'x'.repeat(longestLine + 10)}`), frame(1, `${later} end`)]),
  )
  assert.deepEqual(
    found.map(({ line }) => line.length),
    [longestLine + 10, 3],
  )
})

test('a million short lines are taken apart in flat memory', async () => {
  const block = Buffer.concat(Array.from({ length: 1000 }, (_, i) => frame(i % 2 ? 1 : 2, `${at} line number ${i}\n`)))
  async function* source() {
    for (let i = 0; i < 1000; i++) yield block
  }
  const before = process.memoryUsage().rss
  let count = 0
  for await (const batch of logLines(source(), false)) count += batch.length
  assert.equal(count, 1_000_000)
  assert.ok(process.memoryUsage().rss - before < 64 * 1024 * 1024)
})

test('JSON lines are read one by one, whatever the chunks', async () => {
  const found: unknown[] = []
  for await (const value of jsonLines(chunked(Buffer.from('{"a":"€"}\r\n\n{"b":2}'), [3]))) found.push(value)
  assert.deepEqual(found, [{ a: '€' }, { b: 2 }])
})
