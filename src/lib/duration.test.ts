// Spans, points in time and uptime.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatUptime, parseSince, parseSpan, parseTimestamp } from './duration.ts'

const now = new Date('2026-03-01T12:00:00Z')

test('a span is a whole number and one unit', () => {
  assert.equal(parseSpan('30s'), 30_000)
  assert.equal(parseSpan('15m'), 900_000)
  assert.equal(parseSpan('24h'), 86_400_000)
  assert.equal(parseSpan('7d'), 604_800_000)
  assert.equal(parseSpan('2w'), 1_209_600_000)
})

test('anything else is not a span', () => {
  for (const text of ['', 'm', '15', '15 m', '-15m', '1.5h', '15M', '1h30m', '15m ', '١٥m', '9999999999d'])
    assert.equal(parseSpan(text), undefined, text)
})

test('since counts a span back from now', () => {
  assert.equal(parseSince('24h', now)?.toISOString(), '2026-02-28T12:00:00.000Z')
})

test('since refuses a span that leads before all dates', () => {
  assert.equal(parseSince('999999999w', now), undefined)
})

test('since takes RFC 3339 with any offset and fraction', () => {
  assert.equal(parseSince('2026-02-01T10:00:00Z', now)?.toISOString(), '2026-02-01T10:00:00.000Z')
  assert.equal(parseSince('2026-02-01t10:00:00.250z', now)?.toISOString(), '2026-02-01T10:00:00.250Z')
  assert.equal(parseSince('2026-02-01T10:00:00+02:30', now)?.toISOString(), '2026-02-01T07:30:00.000Z')
  assert.equal(parseTimestamp('2028-02-29T00:00:00.123456789Z')?.toISOString(), '2028-02-29T00:00:00.123Z')
})

test('since refuses dates that do not exist and other spellings', () => {
  const wrong = ['2026-02-30T10:00:00Z', '2026-13-01T10:00:00Z', '2026-02-01T24:00:00Z', '2026-02-01T10:60:00Z']
  const loose = [
    '2026-02-01',
    '2026-02-01 10:00:00Z',
    '2026-02-01T10:00:00',
    '2026-02-01T10:00Z',
    'yesterday',
    '1767225600',
  ]
  const offsets = ['2026-02-01T10:00:00+24:00', '2026-02-01T10:00:00+0200', ' 2026-02-01T10:00:00Z']
  for (const text of [...wrong, ...loose, ...offsets]) assert.equal(parseSince(text, now), undefined, text)
})

test('uptime leaves out leading units and never goes negative', () => {
  assert.equal(formatUptime(0), '0s')
  assert.equal(formatUptime(59.9), '59s')
  assert.equal(formatUptime(65), '1m5s')
  assert.equal(formatUptime(3 * 3600 + 12 * 60 + 5), '3h12m5s')
  assert.equal(formatUptime(3600), '1h0m0s')
  assert.equal(formatUptime(100 * 3600), '100h0m0s')
  assert.equal(formatUptime(-5), '0s')
})
