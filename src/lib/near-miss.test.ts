// Which word was meant.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearMiss } from './near-miss.ts'

test('a mistyped word finds the one that was meant', () => {
  const words = ['enabled', 'api_keys', 'jwt_secret', 'token_ttl']
  assert.equal(nearMiss('enabeld', words), 'enabled')
  assert.equal(nearMiss('apikeys', words), 'api_keys')
  assert.equal(nearMiss('JWT_SECRET', words), 'jwt_secret')
})

test('of two near words the nearer one is taken', () => {
  assert.equal(nearMiss('hosts', ['ports', 'host']), 'host')
})

test('a word that resembles nothing has no near miss', () => {
  assert.equal(nearMiss('colour', ['enabled', 'port']), undefined)
  assert.equal(nearMiss('x', ['enabled']), undefined)
  assert.equal(nearMiss('anything', []), undefined)
})
