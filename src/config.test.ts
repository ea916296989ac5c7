// The configuration: found, checked, made, changed and shown.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { Check } from 'typebox/value'
import { parse } from 'yaml'
import { fits } from './config/shape.ts'
import {
  type Config,
  ConfigError,
  configSchema,
  configurationReference,
  editConfig,
  environmentName,
  loadConfig,
  parseConfig,
  publicConfig,
  redactConfigText,
  restartRequired,
  settings,
} from './config.ts'

const world = mkdtempSync(join(tmpdir(), 'fairlead-config-'))
after(() => rmSync(world, { recursive: true }))

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(world, 'case-'))
})

const FILE = '/srv/fairlead/config.yml'
const read = (text: string, env: Record<string, string> = {}) => parseConfig(text, { file: FILE, env })
const load = (options: { file?: string; env?: Record<string, string> } = {}) =>
  loadConfig({ env: {}, cwd, machine: join(cwd, 'etc/config.yml'), ...options })

function faultOf(work: () => unknown): ConfigError {
  try {
    work()
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error
  }
  return assert.fail('it was accepted')
}

test('nothing set gives the defaults, with paths beside the file', () => {
  const { config, fromEnv, warnings } = read('')
  assert.equal(config.auth.enabled, true)
  assert.deepEqual(config.auth.api_keys, [])
  assert.equal(config.api.port, 8090)
  assert.equal(config.api.max_body_bytes, 10_485_760)
  assert.equal(config.deployments_path, '/srv/fairlead/deployments')
  assert.equal(config.data_path, '/srv/fairlead/data')
  assert.equal(config.api.tls.cert, '')
  assert.equal(config.security.thresholds.requests, 300)
  assert.deepEqual([fromEnv, warnings], [[], []])
})

test('the defaults pass their own checks', () => {
  for (const { key, schema, default: value } of settings) assert.ok(Check(schema, value), key)
  assert.ok(Check(configSchema('whole'), read('').config))
})

test('a setting takes exactly what its schema says', () => {
  const values = [true, 'true', '', 'a', 'info', 'json', 0, 1, -1, 1.5, 8090, 70_000, 2 ** 53, Number.NaN, null]
  const lists = [[], [''], ['a'], ['a', 1], {}, undefined]
  for (const setting of settings) {
    for (const value of [...values, ...lists]) {
      assert.equal(fits(setting, value), Check(setting.schema, value), `${setting.key}: ${JSON.stringify(value)}`)
    }
  }
})

test('the file sets values, absolute and relative paths, and empty keys count as not there', () => {
  const { config } = read(
    'api:\n  port: 1\n  host:\nlog:\ndata_path: ../data\ntemplates_path: /t\nauth:\n  api_keys: [a, b]\n',
  )
  assert.equal(config.api.port, 1)
  assert.equal(config.api.host, '127.0.0.1')
  assert.equal(config.data_path, '/srv/data')
  assert.equal(config.templates_path, '/t')
  assert.deepEqual(config.auth.api_keys, ['a', 'b'])
})

test('each key can be set by an environment variable, which wins', () => {
  const env = {
    FAIRLEAD_API_PORT: '81',
    FAIRLEAD_AUTH_API_KEYS: 'one, two',
    FAIRLEAD_AUTH_ENABLED: 'false',
    FAIRLEAD_API_DOMAIN: '',
    FAIRLEAD_SECURITY_AUTO_BLOCK_WINDOW_SECONDS: '5',
    FAIRLEAD_DATA_PATH: 'other',
  }
  const { config, fromEnv } = read('api: {port: 80, domain: a.example.com}\n', env)
  assert.equal(config.api.port, 81)
  assert.deepEqual(config.auth.api_keys, ['one', 'two'])
  assert.equal(config.auth.enabled, false)
  assert.equal(config.api.domain, '')
  assert.equal(config.security.auto_block.window_seconds, 5)
  assert.equal(config.data_path, '/srv/fairlead/other')
  assert.deepEqual(fromEnv.sort(), [
    'api.domain',
    'api.port',
    'auth.api_keys',
    'auth.enabled',
    'data_path',
    'security.auto_block.window_seconds',
  ])
})

test('no two keys share the name of a variable', () => {
  assert.equal(new Set(settings.map(({ key }) => environmentName(key))).size, settings.length)
})

test('every wrong line is refused with file, line, key and what is expected', () => {
  const wrong: [text: string, message: string][] = [
    ['api:\n  prot: 80\n', `${FILE}:2: api.prot: this key is not known; did you mean api.port?`],
    ['# x\n\nlgo:\n  level: info\n', `${FILE}:3: lgo: this key is not known; did you mean log?`],
    ['port: 80\n', `${FILE}:1: port: this key is not known; did you mean api.port?`],
    ['colour: red\n', `${FILE}:1: colour: this key is not known`],
    ['__proto__: {}\n', `${FILE}:1: __proto__: this key is not known`],
    [
      'api.port: 80\n',
      `${FILE}:1: api.port: this key is not known; write it nested, as "api: port: …" on lines of their own`,
    ],
    ['api:\n  port: http\n', `${FILE}:2: api.port: expected a whole number from 0 to 65535, found "http"`],
    ['api:\n  port: 70000\n', `${FILE}:2: api.port: expected a whole number from 0 to 65535, found 70000`],
    ['api:\n  port: 80.5\n', `${FILE}:2: api.port: expected a whole number from 0 to 65535, found 80.5`],
    [
      'plans:\n  ttl_seconds: 0\n',
      `${FILE}:2: plans.ttl_seconds: expected a whole number from 1 to 3153600000, found 0`,
    ],
    ['auth:\n  enabled: yes\n', `${FILE}:2: auth.enabled: expected true or false, found "yes"`],
    ['log:\n  level: loud\n', `${FILE}:2: log.level: expected one of trace, debug, info, warn, error, found "loud"`],
    ['api:\n  domain: 12\n', `${FILE}:2: api.domain: expected a text (put it in quotes), found 12`],
    [
      'api:\n  domain: http://x\n',
      `${FILE}:2: api.domain: expected a domain such as agent.example.com, found "http://x"`,
    ],
    ['api:\n  host: ""\n', `${FILE}:2: api.host: expected an IP address or a host name, found ""`],
    ['data_path: ""\n', `${FILE}:1: data_path: expected a text that is not empty, found ""`],
    [
      'api: 8090\n',
      `${FILE}:1: api: expected a section with host, port, max_body_bytes, trust_proxy, enable_cors, allowed_origins, domain, tls`,
    ],
    ['api:\n  port: [1]\n', `${FILE}:2: api.port: expected a whole number from 0 to 65535, found [1]`],
    ['api:\n  port: *none\n', `${FILE}:2: api.port: this alias leads nowhere`],
    [
      'engine:\n  socket: docker.sock\n',
      `${FILE}:2: engine.socket: expected an absolute path, or an address with unix://, tcp:// or ssh://, found "docker.sock"`,
    ],
    ['- a\n', `${FILE}:1: expected sections such as "api:", each with its keys`],
    ['api:\n  port: 1\n  port: 2\n', `${FILE}:3: this is not valid YAML: Map keys must be unique`],
    ['api:\n\tport: 1\n', `${FILE}:2: this is not valid YAML: Tabs are not allowed as indentation`],
    [
      'api:\n  tls:\n    cert: a.pem\n',
      `${FILE}: api.tls.key: expected a file, because api.tls.cert and api.tls.key belong together`,
    ],
  ]
  for (const [text, message] of wrong) assert.equal(faultOf(() => read(text)).message, message)
})

test('several faults are one line, and each is in the list', () => {
  const error = faultOf(() => read('api:\n  port: x\nlog:\n  level: y\n', { FAIRLEAD_API_HOTS: 'z' }))
  assert.match(error.message, /api\.port: expected.*\(and 2 more: log\.level, FAIRLEAD_API_HOTS\)$/)
  assert.deepEqual(
    error.problems.map(({ key, line }) => [key, line]),
    [
      ['api.port', 2],
      ['log.level', 4],
      ['FAIRLEAD_API_HOTS', undefined],
    ],
  )
})

test('origins are origins, and the star is refused', () => {
  const origins = (...list: string[]) =>
    read(`api:\n  allowed_origins: ${JSON.stringify(list)}\n`).config.api.allowed_origins
  assert.deepEqual(origins('https://a.example.com', 'http://localhost:5173'), [
    'https://a.example.com',
    'http://localhost:5173',
  ])
  for (const wrong of [
    '*',
    'null',
    'a.example.com',
    'https://a.example.com/',
    'https://A.example.com',
    'ftp://a',
    'https://*.x.org',
    'https://u@x.org',
    'file:///',
  ]) {
    assert.match(
      faultOf(() => origins('https://ok.example.com', wrong)).message,
      /allowed_origins: expected origins such as/,
      wrong,
    )
  }
})

test('wrong and unknown variables are refused by name', () => {
  const refused: [string, string, RegExp][] = [
    ['FAIRLEAD_API_PORT', '8o', /FAIRLEAD_API_PORT \(api\.port\): expected a whole number from 0 to 65535, found "8o"/],
    ['FAIRLEAD_AUTH_ENABLED', 'yes', /FAIRLEAD_AUTH_ENABLED \(auth\.enabled\): expected true or false, found "yes"/],
    ['FAIRLEAD_AUTH_ENABLED', 'TRUE', /expected true or false/],
    ['FAIRLEAD_AUTH_API_KEYS', 'a,,b', /FAIRLEAD_AUTH_API_KEYS \(auth\.api_keys\): expected a list of texts$/],
    ['FAIRLEAD_API_PROT', '80', /FAIRLEAD_API_PROT sets nothing; did you mean FAIRLEAD_API_PORT\?/],
    ['FAIRLEAD_WHATEVER', '1', /FAIRLEAD_WHATEVER sets nothing; take it away/],
  ]
  for (const [name, value, message] of refused)
    assert.match(faultOf(() => read('', { [name]: value })).message, message)
})

test('variables of other use and other programs are left alone', () => {
  const env = {
    FAIRLEAD_URL: 'x',
    FAIRLEAD_API_KEY: 'x',
    FAIRLEAD_CONFIG: 'x',
    FAIRLEAD_NO_INSTALL: '1',
    PATH: '/bin',
    FAIRLEADX: '1',
  }
  assert.deepEqual(read('', env).fromEnv, [])
})

test('no fault quotes a secret', () => {
  const texts = [
    'auth:\n  jwt_secret: [canary]\n',
    'auth:\n  api_keys: canary\n',
    'auth:\n  api_keys: [canary, {canary: canary}]\n',
    'auth:\n  jwt_secret: canary: canary\n',
    'auth:\n  jwt_secret: "canary\n',
    '- a\nauth: canary\n',
    'auth: {jwt_secret: a}} canary\n',
    'auth:\n  api_keys: [*canary]\n',
  ]
  for (const text of texts) {
    const error = faultOf(() => read(text))
    assert.doesNotMatch(error.message + JSON.stringify(error.problems), /canary/, text)
  }
  assert.doesNotMatch(faultOf(() => read('', { FAIRLEAD_AUTH_API_KEYS: 'canary,,' })).message, /canary/)
})

test('what is likely a mistake is warned about', () => {
  const { warnings } = read(
    'auth: {enabled: false, jwt_secret: short, api_keys: [short]}\napi: {host: 0.0.0.0, enable_cors: true}\n',
  )
  assert.equal(warnings.length, 4)
  assert.doesNotMatch(warnings.join(), /: short/)
})

test('the first start makes a configuration with secrets of its own', async () => {
  const { config, file, created, text, warnings } = await load()
  assert.equal(created, true)
  assert.equal(file, join(cwd, '.fairlead/config.yml'))
  assert.match(config.auth.api_keys[0] ?? '', /^fl_[A-Za-z0-9]{40}$/)
  assert.ok(config.auth.jwt_secret.length >= 43)
  assert.deepEqual(warnings, [])
  assert.equal(text, readFileSync(file, 'utf8'))
  assert.equal(statSync(join(cwd, '.fairlead')).mode & 0o777, 0o700)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(join(cwd, '.fairlead')).sort(), ['config.yml', 'data', 'deployments', 'templates'])
  assert.equal(config.deployments_path, join(cwd, '.fairlead/deployments'))
})

test('the second start finds what the first made, and another checkout gets other secrets', async () => {
  const first = await load()
  const second = await load()
  assert.equal(second.created, false)
  assert.deepEqual(second.config, first.config)
  cwd = mkdtempSync(join(world, 'case-'))
  const other = await load()
  assert.notEqual(other.config.auth.jwt_secret, first.config.auth.jwt_secret)
  assert.notEqual(other.config.auth.api_keys[0], first.config.auth.api_keys[0])
})

test('two first starts at once agree on one configuration', async () => {
  const both = await Promise.all([load(), load(), load()])
  assert.equal(both.filter(({ created }) => created).length, 1)
  assert.equal(new Set(both.map(({ sha256 }) => sha256)).size, 1)
})

test('a disk without room for the first configuration is one clear line, and leaves no half of it', async () => {
  const limit = (size: string) => execFileSync('prlimit', ['--pid', `${process.pid}`, `--fsize=${size}:unlimited`])
  const ignore = () => {}
  process.on('SIGXFSZ', ignore)
  limit('100')
  try {
    await assert.rejects(load(), /^ConfigError: The configuration .*config\.yml: it was not made/)
  } finally {
    limit('unlimited')
    process.off('SIGXFSZ', ignore)
  }
  assert.deepEqual(readdirSync(join(cwd, '.fairlead')).sort(), ['data', 'deployments', 'templates'])
  assert.equal((await load()).created, true)
})

test('--config comes before FAIRLEAD_CONFIG, then the folder, then the machine', async () => {
  const place = (path: string, port: number) => {
    mkdirSync(join(cwd, path, '..'), { recursive: true })
    writeFileSync(join(cwd, path), `api: {port: ${port}}\n`)
  }
  place('etc/config.yml', 4)
  assert.equal((await load()).config.api.port, 4)
  place('.fairlead/config.yml', 3)
  assert.equal((await load()).config.api.port, 3)
  place('by-env.yml', 2)
  assert.equal((await load({ env: { FAIRLEAD_CONFIG: 'by-env.yml' } })).config.api.port, 2)
  place('sub/by-flag.yml', 1)
  const found = await load({ file: 'sub/by-flag.yml', env: { FAIRLEAD_CONFIG: 'by-env.yml' } })
  assert.equal(found.config.api.port, 1)
  assert.equal(found.config.data_path, join(cwd, 'sub/data'))
})

test('a named file that is missing or no file is refused, and none is made', async () => {
  await assert.rejects(load({ file: 'none.yml' }), /none\.yml: there is no such file/)
  await assert.rejects(load({ env: { FAIRLEAD_CONFIG: cwd } }), /it is a folder/)
  assert.deepEqual(readdirSync(cwd), [])
})

test('a file with secrets that others can read is warned about', async () => {
  const file = join(cwd, 'c.yml')
  writeFileSync(file, `auth: {jwt_secret: ${'x'.repeat(40)}}\n`)
  chmodSync(file, 0o640)
  assert.match((await load({ file })).warnings.join(), /can be read by others: run chmod 600/)
  chmodSync(file, 0o600)
  assert.deepEqual((await load({ file })).warnings, [])
  writeFileSync(file, 'api: {port: 1}\n')
  chmodSync(file, 0o644)
  assert.deepEqual((await load({ file })).warnings, [])
})

const TEXT = `# Ours
auth:
  jwt_secret: "stored-secret-stored-secret-stored"   # rotate in May
  api_keys:
    # CI
    - stored-key-number-one
    - stored-key-number-two

api:
  port: 8090   # behind the proxy
`

test('an edit writes what changed and leaves every other byte', () => {
  const edited = editConfig(TEXT, { api: { port: 9000, host: '0.0.0.0' }, log: { level: 'debug' } })
  assert.equal(edited, `${TEXT.replace('8090', '9000')}  host: 0.0.0.0\n\nlog:\n  level: debug\n`)
  assert.equal(read(edited).config.log.level, 'debug')
})

test('null puts a key or a section back to its default', () => {
  assert.equal(editConfig(TEXT, { api: { port: null } }), TEXT.replace('api:\n  port: 8090   # behind the proxy\n', ''))
  assert.equal(read(editConfig(TEXT, { auth: null })).config.auth.jwt_secret, '')
})

test('[redacted] keeps what is stored, in a list item by item', () => {
  assert.equal(editConfig(TEXT, { auth: { jwt_secret: '[redacted]', api_keys: ['[redacted]', '[redacted]'] } }), TEXT)
  assert.equal(editConfig(TEXT, { auth: { api_keys: '[redacted]' } }), TEXT)
  const more = editConfig(TEXT, { auth: { api_keys: ['[redacted]', '[redacted]', 'third'] } })
  assert.deepEqual(read(more).config.auth.api_keys, ['stored-key-number-one', 'stored-key-number-two', 'third'])
  assert.match(more, /# CI\n/)
  assert.throws(() => editConfig(TEXT, { auth: { api_keys: ['a', 'b', '[redacted]'] } }), /only 2 are stored/)
})

test('a whole configuration sent back as it was shown writes nothing', () => {
  const { config } = read(TEXT, { FAIRLEAD_API_HOST: '::1', FAIRLEAD_AUTH_API_KEYS: 'from-the-environment' })
  assert.equal(editConfig(TEXT, publicConfig(config), config), TEXT)
})

test('an unknown key and a section that is none are refused in an edit', () => {
  assert.throws(
    () => editConfig(TEXT, { api: { prot: 1 } }),
    /api\.prot: this key is not known; did you mean api\.port\?/,
  )
  assert.throws(() => editConfig(TEXT, { api: 5 }), /api: expected a section with host/)
  assert.throws(() => editConfig(TEXT, JSON.parse('{"__proto__": {"x": 1}}')), /__proto__: this key is not known/)
  assert.throws(() => editConfig('a: [', { api: { port: 1 } }), ConfigError)
})

test('an edit to an impossible value is refused when it is parsed, and names its line', () => {
  assert.match(faultOf(() => read(editConfig(TEXT, { api: { port: -1 } }))).message, /:10: api\.port: expected/)
})

test('no secret is left in the text or the form that is shown', () => {
  const shown = redactConfigText(`# old: fl_${'x'.repeat(40)}\n${TEXT}unknown: canary\n`)
  assert.doesNotMatch(shown, /stored-|canary|fl_/)
  assert.match(shown, /jwt_secret: "\[redacted\]" {3}# rotate in May/)
  assert.match(shown, /port: 8090 {3}# behind the proxy/)
  const { auth, api } = publicConfig(read(TEXT).config)
  assert.deepEqual([auth.jwt_secret, auth.api_keys, api.port], ['[redacted]', ['[redacted]', '[redacted]'], 8090])
  assert.equal(publicConfig(read('').config).auth.jwt_secret, '')
  assert.deepEqual(publicConfig(read('').config).auth.api_keys, [])
})

test('keys that need a restart are named when they differ', () => {
  const before: Config = read('').config
  const after = read('api: {port: 1, enable_cors: true}\ndata_path: /d\nlog: {level: warn}\n').config
  assert.deepEqual(restartRequired(before, after), ['api.port', 'data_path'])
  assert.deepEqual(restartRequired(before, before), [])
})

test('the schema of a patch takes parts and nulls, marks secrets and refuses other types', () => {
  const schema = configSchema('patch')
  assert.ok(Check(schema, {}))
  assert.ok(Check(schema, { api: { port: null }, auth: { api_keys: ['[redacted]'] } }))
  assert.ok(!Check(schema, { api: { port: 'x' } }))
  assert.equal(JSON.stringify(schema).match(/"x-secret":true/g)?.length, 2)
})

test('the reference lists every key with its variable and default', () => {
  const page = configurationReference()
  for (const { key } of settings)
    assert.ok(page.includes(`| \`${key}\``) && page.includes(`\`${environmentName(key)}\``), key)
  assert.match(page, /\| `api\.port` ↻ \| a whole number from 0 to 65535 \| `8090` \| `FAIRLEAD_API_PORT` \|/)
  assert.match(page, /\| `auth\.jwt_secret` \(secret\) \| a text \| empty \|/)
})

test('the file of a first start says what the catalogue says', async () => {
  const { text } = await load()
  const written = parse(text)
  delete written.auth.jwt_secret
  delete written.auth.api_keys
  for (const [section, values] of Object.entries(written)) {
    if (typeof values !== 'object') assert.equal(settings.find(({ key }) => key === section)?.default, values)
    else
      for (const [name, value] of Object.entries(values ?? {}))
        assert.equal(settings.find(({ key }) => key === `${section}.${name}`)?.default, value)
  }
})
