import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../core/failure.ts'
import { neededVariables, templateOf } from './template.ts'

const head = 'name: A\ndescription: b\ncategory: web\nversion: "1"\n'
const compose = 'services:\n  web:\n    image: a:1\n    ports: ["$PORT:80"]\n'
const withVariable = (text: string) => `${head}variables:\n  - key: PORT\n${text.replace(/^/gm, '    ')}\n`

test('a template is what its two files say, with all that was left out filled in', () => {
  const template = templateOf('a', 'local', withVariable('type: port\ndefault: 80'), compose)
  assert.deepEqual(template, {
    id: 'a',
    source: 'local',
    name: 'A',
    description: 'b',
    category: 'web',
    icon: '',
    tags: [],
    version: '1',
    composeText: compose,
    variables: [
      {
        key: 'PORT',
        label: 'PORT',
        description: '',
        type: 'port',
        default: 80,
        required: false,
        secret: false,
        generate: null,
        options: [],
      },
    ],
  })
  const [made] = templateOf('a', 'local', withVariable('generate: true'), compose).variables
  assert.deepEqual(made?.generate, { format: 'text', length: 32 })
  assert.equal(made?.secret, true)
})

const broken: Record<string, [templateText: string, expected: RegExp, composeText?: string]> = {
  'text that is not YAML': ['name: [', /^template\.yml is not valid YAML: .* at line 1, column \d+\.$/],
  'no name': [head.replace('name: A\n', ''), /^template\.yml is not valid: `name` is required\.$/],
  'an unknown field': [`${head}licence: MIT\n`, /`licence` is not known/],
  'a version that is a number': [head.replace('"1"', '1.0'), /`version` must be text: put it in quotes/],
  'a category of two words': [head.replace('web', 'My Web'), /`category` must be a word of a-z, 0-9 and -/],
  'an unknown type': [withVariable('type: int'), /`variables\.0\.type` must be one of string, password/],
  'an unknown field of a variable': [withVariable('hint: x'), /`variables\.0\.hint` is not known/],
  'a name no variable can have': [
    `${head}variables:\n  - key: A-B\n`,
    /`variables\.0\.key` must be a variable name: letters, digits and _/,
  ],
  'a generator that is a word': [withVariable('generate: please'), /`variables\.0\.generate` must be true, or say/],
  'a generator of three letters': [withVariable('generate: { length: 3 }'), /`variables\.0\.generate` must be true/],
  'a variable declared twice': [
    `${head}variables:\n  - key: PORT\n  - key: PORT\n`,
    /the variable PORT is declared twice\.$/,
  ],
  'a secret with a default': [
    withVariable('type: password\ndefault: admin'),
    /PORT is a secret and must have no default/,
  ],
  'a secret that is shown': [withVariable('secret: false\ngenerate: true'), /PORT is generated, so it cannot be/],
  'a generated number': [withVariable('type: number\ngenerate: true'), /PORT is generated, so its type must be/],
  'a choice of nothing': [withVariable('type: choice'), /PORT is a choice and needs `options`/],
  'options of a text': [withVariable('options: [a]'), /PORT has `options`, but is not of type choice/],
  'a default outside the choice': [
    withVariable('type: choice\noptions: [a, b]\ndefault: c'),
    /PORT has a default that must be one of a, b\.$/,
  ],
  'a default that is no port': [withVariable('type: port\ndefault: 70000'), /PORT has a default that must be a port/],
  'a name Compose obeys': [
    `${head}variables:\n  - key: COMPOSE_FILE\n`,
    /COMPOSE_FILE has a name that Compose itself obeys/,
  ],
  'a compose file without services': [head, /^compose\.yml is not valid: it has no services\.$/, 'volumes:\n'],
  'a compose file that is not YAML': [head, /^compose\.yml is not valid YAML:/, 'services: {'],
  'a compose file with a variable of nobody': [
    head,
    /^compose\.yml refers to \$\{PORT\}, which is not a variable of template\.yml\.$/,
  ],
  'aliases that explode': [
    head,
    /^compose\.yml is not valid YAML: Excessive alias count/,
    `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'.replace(/./g, (l, i) => `${l}: &${l} [${`*${'abcdefg'[i]},`.repeat(9)}]\n`)}`,
  ],
}
for (const [what, [templateText, expected, composeText = compose]] of Object.entries(broken)) {
  test(`${what} is refused with a sentence about it`, () => {
    assert.throws(
      () => templateOf('a', 'local', templateText, composeText),
      thrown => thrown instanceof Failure && expected.test(thrown.message),
    )
  })
}

test('the variables a compose file needs are found in every spelling, and not those with a default in place', () => {
  const text = '$A ${B} ${C:?} ${D?say} ${E:-x} ${F-${G}} ${H:+x} $$I $${J} ${K:-$L}'
  assert.deepEqual([...neededVariables({ services: { web: { command: [text] } } })], ['A', 'B', 'C', 'D', 'G', 'L'])
})
