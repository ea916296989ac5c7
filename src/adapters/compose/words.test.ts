import assert from 'node:assert/strict'
import { test } from 'node:test'
import { composeWords, errorOf, progressOf, warningsOf } from './words.ts'

test('progress is read from plain and from JSON lines, and nothing else is progress', () => {
  assert.deepEqual(progressOf(' Container app-web-1  Started'), {
    id: 'Container app-web-1',
    status: 'Started',
    text: 'Container app-web-1 Started',
  })
  assert.deepEqual(progressOf(' Volume "app_data"  Created')?.id, 'Volume app_data')
  assert.deepEqual(progressOf('{"id":"Container app-web-1","status":"Creating"}'), {
    id: 'Container app-web-1',
    status: 'Creating',
    text: 'Container app-web-1 Creating',
  })
  for (const line of [
    '',
    'Error response from daemon: no',
    '{"error":true,"message":"no"}',
    '{broken',
    'time="x" level=info',
  ]) {
    assert.equal(progressOf(line), undefined)
  }
})

test('of the complaints of a failed run only the error is left', () => {
  const plain = ' Container a-b-1  Creating\nError response from daemon: No such image: x'
  assert.equal(errorOf(plain), 'Error response from daemon: No such image: x')
  const json = '{"id":"Container a-b-1","status":"Error"}\n{"error":true,"message":"port is taken"}'
  assert.equal(errorOf(json), 'port is taken')
})

test('paths of the deployment are told from its folder, and others are not told', () => {
  const words = (text: string) => composeWords(text, '/srv/apps/blog')
  assert.equal(words('validating /srv/apps/blog/compose.yaml: services.web no'), 'compose.yaml: services.web no')
  assert.equal(words('env file /etc/secret.env not found'), 'env file (a path outside the deployment) not found')
  assert.equal(words('open "/srv/apps/other/x": denied'), 'open "(a path outside the deployment)": denied')
  assert.equal(words('open ../other/x: denied'), 'open (a path outside the deployment): denied')
  assert.equal(words('Get "https://host/v2/": refused'), 'Get "https://host/v2/": refused')
  assert.equal(words('in /srv/apps/blog'), 'in .')
  assert.equal(words(''), 'it failed without saying why')
})

test('warnings are no errors, and can be had apart', () => {
  const said = [
    'time="2026-11-15T02:10:20Z" level=warning msg="The \\"UNSET\\" variable is not set. Defaulting to a blank string."',
    'service "web" depends on undefined service "nope": invalid compose project',
  ].join('\n')
  assert.equal(composeWords(said, '/x'), 'service "web" depends on undefined service "nope": invalid compose project')
  assert.deepEqual(warningsOf(said, '/x'), ['The "UNSET" variable is not set. Defaulting to a blank string.'])
})
