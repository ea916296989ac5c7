import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../core/failure.ts'
import { freshFrom } from '../../core/fresh.ts'
import { isValid, redact } from '../../core/schema.ts'
import { previewTemplate, renderTemplate, TemplateValues } from './render.ts'
import { templateOf } from './template.ts'

const composeText = '# ours\nservices:\n  web:\n    image: a:1\n'
const template = templateOf(
  'shop',
  'local',
  `name: Shop
description: all kinds of variables
category: web
version: '1'
variables:
  - { key: TITLE, default: Hello }
  - { key: OWNER, required: true }
  - { key: PORT, type: port, default: 8080 }
  - { key: SHARE, type: number, default: 0.5 }
  - { key: OPEN, type: boolean, default: false }
  - { key: MODE, type: choice, options: [fast, safe], default: safe }
  - { key: NOTE }
  - { key: TOKEN, type: password, required: true }
  - { key: PASSWORD, type: password, generate: true }
  - { key: SEED, generate: { format: hex, length: 16 } }
  - { key: KEY, generate: { format: base64, length: 32 } }
`,
  composeText,
)
const fresh = freshFrom(Buffer.from('one seed'))
const given = { OWNER: 'ann', TOKEN: 'my own token' }
const rendered = (values: TemplateValues) =>
  Object.fromEntries(renderTemplate(template, values, fresh).envVars.map(({ key, value }) => [key, value]))
const faultsOf = (values: TemplateValues, render: () => unknown = () => renderTemplate(template, values, fresh)) => {
  try {
    render()
  } catch (thrown) {
    assert.ok(thrown instanceof Failure && thrown.code === 'VALIDATION_FAILED')
    return thrown.details
  }
  return assert.fail('it was not refused')
}

test('values become the variables of a deployment, in the order of the template, and the text stays to the letter', () => {
  const { envVars, composeText: text } = renderTemplate(template, given, fresh)
  assert.equal(text, composeText)
  assert.deepEqual(
    envVars.map(({ key }) => key),
    template.variables.map(({ key }) => key),
  )
  const { PASSWORD, SEED, KEY, ...others } = rendered(given)
  assert.deepEqual(others, {
    TITLE: 'Hello',
    OWNER: 'ann',
    PORT: '8080',
    SHARE: '0.5',
    OPEN: 'false',
    MODE: 'safe',
    NOTE: '',
    TOKEN: 'my own token',
  })
  assert.match(PASSWORD ?? '', /^[A-Za-z0-9]{32}$/)
  assert.match(SEED ?? '', /^[0-9a-f]{32}$/)
  assert.equal(Buffer.from(KEY ?? '', 'base64').length, 32)
})

test('a value of another spelling counts, as a form or a command line sends it', () => {
  const { PORT, OPEN, SHARE, TITLE } = rendered({ ...given, PORT: '81', OPEN: 'true', SHARE: '2', TITLE: '' })
  assert.deepEqual({ PORT, OPEN, SHARE, TITLE }, { PORT: '81', OPEN: 'true', SHARE: '2', TITLE: '' })
  assert.equal(rendered({ ...given, PORT: '' }).PORT, '8080')
})

test('generated secrets are the same for the same seed, and differ from each other and from those of another one', () => {
  assert.deepEqual(rendered(given), rendered(given))
  const other = renderTemplate(template, given, freshFrom(Buffer.from('another seed'))).envVars
  const secrets = [...Object.values(rendered(given)).slice(-3), ...other.slice(-3).map(({ value }) => value)]
  assert.equal(new Set(secrets).size, 6)
})

test('a secret that was given is taken; left out, empty or redacted, it is generated', () => {
  const { PASSWORD } = rendered(given)
  assert.equal(rendered({ ...given, PASSWORD: 'mine' }).PASSWORD, 'mine')
  assert.equal(rendered({ ...given, PASSWORD: '' }).PASSWORD, PASSWORD)
  assert.equal(rendered({ ...given, PASSWORD: '[redacted]' }).PASSWORD, PASSWORD)
})

test('what is missing, of a wrong type or unknown is refused, each by its name', () => {
  const values = JSON.parse(
    `{"OWNER": "", "TOKEN": "[redacted]", "TITLE": 5, "NOTE": "two\\nlines", "PORT": 0, "SHARE": "much", "OPEN": "yes", "MODE": "slow", "PRT": 1, "__proto__": "x"}`,
  )
  assert.deepEqual(faultsOf(values), [
    { path: 'values.PRT', message: 'is not a variable of this template' },
    { path: 'values.__proto__', message: 'is not a variable of this template' },
    { path: 'values.TITLE', message: 'must be text' },
    { path: 'values.OWNER', message: 'is required' },
    { path: 'values.PORT', message: 'must be a port: 1 to 65535' },
    { path: 'values.SHARE', message: 'must be a number' },
    { path: 'values.OPEN', message: 'must be true or false' },
    { path: 'values.MODE', message: 'must be one of fast, safe' },
    { path: 'values.NOTE', message: 'must be one line without control characters' },
    { path: 'values.TOKEN', message: 'is required' },
  ])
})

test('a preview shows no secret, given or generated, and does without what is missing', () => {
  const shown = (values: TemplateValues) =>
    Object.fromEntries(previewTemplate(template, values).envVars.map(({ key, value }) => [key, value]))
  const { OWNER, TOKEN, PASSWORD, SEED } = shown({ PASSWORD: 'canary' })
  assert.deepEqual([OWNER, TOKEN, PASSWORD, SEED], ['', '', '[redacted]', '[redacted]'])
  assert.equal(shown({ OWNER: 'ann' }).OWNER, 'ann')
  const values = { PORT: 'x' }
  assert.deepEqual(
    faultsOf(values, () => previewTemplate(template, values)),
    [{ path: 'values.PORT', message: 'must be a port: 1 to 65535' }],
  )
})

test('no value shows in what is stored of a request, because only the template knows which are secret', () => {
  assert.ok(isValid(TemplateValues, { A: 'x', B: 1, C: true }))
  assert.ok(!isValid(TemplateValues, { A: ['x'] }))
  assert.deepEqual(redact(TemplateValues, { A: 'canary', B: 1 }), { A: '[redacted]', B: '[redacted]' })
})
