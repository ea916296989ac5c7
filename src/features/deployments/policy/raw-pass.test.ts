import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { refuseRawOutside } from './index.ts'
import { CANARY, type Given, policyDesk, refusalsOf } from './testing.ts'

const desk = policyDesk()
after(() => desk.close())

/** A file outside of every folder, which must never be opened. */
const outside = join(desk.root, 'outside')
writeFileSync(outside, `CANARY=${CANARY}\n`)
/** Whoever opens this one waits for ever. */
const pipe = join(desk.root, 'pipe')
execFileSync('mkfifo', [pipe])

const web = (body: string, top = ''): string => `services:\n  web:\n    image: a\n    ${body}\n${top}`
const refusedAt = async (given: Given): Promise<string[]> => [
  ...new Set((await refusalsOf(desk.raw(given))).map(({ service, key }) => `${service} ${key}`)),
]

test('Compose itself reads a file outside and then says nothing about it, which is why the raw text is looked at first', async () => {
  const given = { text: web(`env_file: ${outside}`) }
  const { web: service } = (await desk.candidate(desk.folderFor(given), given)).services
  assert.deepEqual(service?.environment, { CANARY })
  assert.equal(service?.env_file, undefined)
})

/** Every spelling of a path that leaves, for each key that names one. */
const spellings = [
  '../../outside',
  outside,
  '/etc/passwd',
  './a/../../../outside',
  '~/outside',
  '~',
  'https://example.org/x.git',
  'git@example.org:x.git',
  'ssh://example.org/x',
  'oci://example.org/x',
  'github.com/a/b',
  'file:///etc/passwd',
  `\${ABSENT:-${outside}}`,
  `\${ABSENT-../../outside}`,
  `\${FROM_ENV}`,
  `$FROM_ENV`,
  `\${FROM_ENV:-x}/..`,
  `\${ABSENT}`,
  `\${FROM_ENV:?needed}`,
  `\${ABSENT:+x}`,
  `\${ABSENT:-\${FROM_ENV}}`,
  `\${HOME}/x`,
  `\${PWD}/x`,
  `\${COMPOSE_PROJECT_NAME:-x}`,
  'link/passwd',
  'link',
  'loop',
  'nowhere',
  'trap',
]
const links = (folder: string): void => {
  symlinkSync('/etc', join(folder, 'link'))
  symlinkSync('loop', join(folder, 'loop'))
  symlinkSync('not-there', join(folder, 'nowhere'))
  symlinkSync(pipe, join(folder, 'trap'))
}

const includes: ((path: string) => string)[] = [
  path => `include: ["${path}"]`,
  path => `include: "${path}"`,
  path => `include: [{path: "${path}"}]`,
  path => `include: [{path: [x.yaml, "${path}"]}]`,
  path => `include: [{path: x.yaml, project_directory: "${path}"}]`,
  path => `include: [{path: x.yaml, env_file: ["${path}"]}]`,
]

const places = (path: string): Record<string, string> => ({
  'extends.file': `{extends: {file: "${path}", service: x}}`,
  env_file: `{env_file: "${path}"}`,
  'env_file ': `{env_file: [x.env, "${path}"]}`,
  'env_file  ': `{env_file: [{path: "${path}", required: false, format: raw}]}`,
  label_file: `{label_file: "${path}"}`,
  'label_file ': `{label_file: ["${path}"]}`,
  'build.context': `{build: "${path}"}`,
  'build.context ': `{build: {context: "${path}"}}`,
  'build.dockerfile': `{build: {context: ., dockerfile: "${path}"}}`,
  'build.additional_contexts': `{build: {context: ., additional_contexts: {a: "${path}"}}}`,
  'build.additional_contexts ': `{build: {additional_contexts: ["a=${path}"]}}`,
})

test('a path that leaves is refused in every spelling and place, before anything outside is opened', async () => {
  const folder = desk.folderFor({ text: '', prepare: links })
  const env = `FROM_ENV=${outside}\n`
  const found = async (text: string) =>
    (await refusalsOf(desk.raw({ text, env }, folder)).catch(error => assert.fail(`${text}: ${error}`))).map(
      ({ service, key }) => `${service} ${key}`,
    )
  for (const spelling of spellings) {
    const services = Object.entries(places(spelling)).map(([at, body], index) => ({
      name: `s${index}`,
      at: at.trim(),
      body,
    }))
    const files = `{c: {file: "${spelling}"}}`
    const text = `services: {${services.map(({ name, body }) => `${name}: ${body}`)}}\nconfigs: ${files}\nsecrets: ${files}\n`
    const expected = services.map(({ name, at }) => `${name} ${at}`)
    assert.deepEqual(await found(text), [...expected, 'null configs.c.file', 'null secrets.c.file'], spelling)
    for (const include of includes) assert.ok((await found(include(spelling))).includes('null include.path'), spelling)
  }
})

test('a path that stays inside is allowed, with plain variables and links inside too', async () => {
  const folder = desk.folderFor({
    text: '',
    files: { 'sub/x': 'A=1', 'x.yaml': 'services: {x: {image: x}}' },
    prepare: folder => symlinkSync('sub', join(folder, 'alias')),
  })
  const env = `# a comment with a "quote"\nDIR=sub\nQUOTED='sub'\nDOUBLE="sub" # why\nOTHER=it's\nEMPTY=\n`
  const files = [
    'sub/x',
    './sub/x',
    'sub/../sub/x',
    'alias/x',
    `${folder}/sub/x`,
    'not-there-yet',
    `\${DIR}/x`,
    `$DIR/x`,
    `\${QUOTED}/x`,
    `\${DOUBLE}/x`,
    `\${ABSENT:-sub}/x`,
    `\${EMPTY:-sub}/x`,
    `\${ABSENT-sub/x}`,
  ]
  for (const path of files) {
    const text = `${web(`env_file: ["${path}"]\n    configs: [c]`, `configs: {c: {file: "${path}"}}\n`)}include: [x.yaml]\n`
    await desk.raw({ text, env }, folder).catch(error => assert.fail(`${path}: ${error}`))
  }
  const build = web(
    'build: {context: ., dockerfile: sub/x, additional_contexts: {a: ./sub, b: "docker-image://x:1", c: "service:web"}}',
  )
  await desk.raw({ text: build }, folder)
})

test('a variable in a path is only followed when every line of .env is beyond doubt', async () => {
  const text = web(`env_file: "\${DIR}/x"`)
  const doubtful = [
    `A="x\nDIR=sub\n"\n`,
    `A='a\\'\nDIR=sub\n`,
    'DIR=sub\nDIR=other\n',
    'DIR: sub\n',
    'DIR = sub\n',
    `DIR="su\\x62"\n`,
    `X=/etc\nDIR=\${X}\n`,
    'DIR=sub # comment\n',
    'DIR\n',
  ]
  for (const env of doubtful) assert.deepEqual(await refusedAt({ text, env }), ['web env_file'], env)
})

test('variables in .env that steer Compose are refused, wherever its parser would find them', async () => {
  const steering: [env: string, name: string][] = [
    [`COMPOSE_FILE=${outside}`, 'COMPOSE_FILE'],
    [`export COMPOSE_FILE=${outside}`, 'COMPOSE_FILE'],
    [`exportCOMPOSE_FILE=${outside}`, 'COMPOSE_FILE'],
    [`  COMPOSE_FILE : ${outside}`, 'COMPOSE_FILE'],
    [`COMPOSE_FILE\u00a0=${outside}`, 'COMPOSE_FILE'],
    [`A="x"COMPOSE_FILE=${outside}`, 'COMPOSE_FILE'],
    [`A='x' COMPOSE_FILE=${outside}`, 'COMPOSE_FILE'],
    [`A="x\n# "COMPOSE_FILE=${outside}`, 'COMPOSE_FILE'],
    [`COMPOSE_ENV_FILES=${outside}`, 'COMPOSE_ENV_FILES'],
    ['COMPOSE_PATH_SEPARATOR=,', 'COMPOSE_PATH_SEPARATOR'],
    ['COMPOSE_DISABLE_ENV_FILE=1', 'COMPOSE_DISABLE_ENV_FILE'],
    ['COMPOSE_CONVERT_WINDOWS_PATHS=1', 'COMPOSE_CONVERT_WINDOWS_PATHS'],
    ['COMPOSE_EXPERIMENTAL_GIT_REMOTE=1', 'COMPOSE_EXPERIMENTAL_GIT_REMOTE'],
    ['DOCKER_HOST=tcp://1.2.3.4', 'DOCKER_HOST'],
    ['DOCKER_CONFIG=./data', 'DOCKER_CONFIG'],
    ['DOCKER_CONTEXT=x', 'DOCKER_CONTEXT'],
    ['BUILDX_CONFIG=x', 'BUILDX_CONFIG'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT=http://1.2.3.4', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
    ['LD_PRELOAD=./data/x.so', 'LD_PRELOAD'],
    ['http_proxy=http://1.2.3.4', 'http_proxy'],
    ['PATH=./data', 'PATH'],
  ]
  for (const [env, name] of steering) assert.deepEqual(await refusedAt({ text: web(''), env }), [`null ${name}`], env)
  assert.deepEqual(await refusedAt({ text: web(''), env: 'A=1\u2028COMPOSE_FILE=x' }), [
    'null .env',
    'null COMPOSE_FILE',
  ])
  const fine = `# COMPOSE_FILE=x\nCOMPOSE_PROJECT_NAME=blog\nCOMPOSE_PROFILES=a\nTZ=Europe/Berlin\nMY_PATH=/x\nSSH_PORT=22\nA=\${COMPOSE_PROJECT_NAME:-x}\n`
  await desk.raw({ text: web(''), env: fine })
})

test('what Compose’s parser sees and another may not is refused: tags, directives, documents, line breaks, cases', async () => {
  const base64 = Buffer.from(outside).toString('base64')
  const tricks: [text: string, at: string][] = [
    [web(`env_file: !!binary ${base64}`), 'null compose_content'],
    [web(`env_file: !<tag:yaml.org,2002:binary> ${base64}`), 'null compose_content'],
    [`%TAG ! tag:yaml.org,2002:\n---\n${web(`env_file: !binary ${base64}`)}`, 'null compose_content'],
    [`%YAML 1.1\n---\n${web('')}`, 'null compose_content'],
    [web('tty: !custom true'), 'null compose_content'],
    [`${web('')}---\ninclude: ["${outside}"]\n`, 'null compose_content'],
    [web('', `# a comment\u2028include: ["${outside}"]`), 'null compose_content'],
    [web('', `# a comment\u0085include: ["${outside}"]`), 'null compose_content'],
    [web('', `# a comment\rinclude: ["${outside}"]`), 'null compose_content'],
    [`\ufeffinclude: ["${outside}"]\n${web('')}`, 'null compose_content'],
    [`include: ["${outside}"]\ninclude: []\n${web('')}`, 'null compose_content'],
    ['services: [', 'null compose_content'],
    ['- services', 'null compose_content'],
    [`include: [{PATH: "${outside}"}]`, 'null include.PATH'],
    [web(`Env_File: "${outside}"`), 'web Env_File'],
    [web(`extends: {FILE: "${outside}", service: x}`), 'web extends.FILE'],
    ['models: {llm: {model: ai/x}}', 'null models'],
    ['services: [web]', 'null services'],
    ['services: {web: [image]}', 'web services'],
    [web('a_key_of_next_year: x'), 'web a_key_of_next_year'],
    ['volumes: {v: {cluster: x}}', 'null volumes.v.cluster'],
  ]
  for (const [text, at] of tricks) assert.deepEqual(await refusedAt({ text }), [at], text)
})

test('anchors, aliases and merge keys are followed, also where another value would win', async () => {
  const hidden = [
    `x-a: &a "${outside}"\n${web('env_file: *a')}`,
    `x-a: &a {env_file: ["${outside}"]}\n${web('<<: *a')}`,
    `x-a: &a {env_file: ["${outside}"]}\n${web('<<: [{tty: true}, *a]')}`,
    `x-a: &a {env_file: ["${outside}"]}\n${web('<<: *a\n    env_file: x.env')}`,
    `x-a: &a {env_file: "${outside}"}\nx-b: &b {<<: *a}\n${web('<<: *b')}`,
    `x-a: &a {web: {image: a, env_file: "${outside}"}}\nservices:\n  <<: *a\n`,
    `x-a: &a env_file\n${web(`? *a\n    : "${outside}"`)}`,
    web(`"env\\x5ffile": "${outside}"`),
    web(`env_file: !reset "${outside}"`),
    web(`env_file: !override ["${outside}"]`),
    web(`env_file: !!str ${outside}`),
    web(`env_file: >-\n      ${outside}`),
    `{"services": {"web": {"image": "a", "env_file": "${outside}"}}}`,
  ]
  for (const text of hidden) assert.deepEqual(await refusedAt({ text }), ['web env_file'], text)

  const bomb = [
    'x-a: &a [1]',
    ...Array.from('bcdefghij', (name, index) => `x-${name}: &${name} [${`*${'abcdefghij'[index]},`.repeat(9)}]`),
  ]
  await desk.raw({ text: `${bomb.join('\n')}\n${web('')}` })
  const merged = Array.from(
    'bcdefghij',
    (name, index) => `x-${name}: &${name} {<<: [${`*${'abcdefghij'[index]},`.repeat(9)}]}`,
  )
  const text = `x-a: &a {tty: true}\n${merged.join('\n')}\n${web('<<: *j')}`
  assert.deepEqual(await refusedAt({ text }), ['null compose_content'])
})

test('files inside the folder are looked at in the same way, however deep', async () => {
  const bad = `services: {x: {image: x, env_file: "${outside}"}}`
  const more: [given: Given, at: string][] = [
    [{ text: 'include: [sub/c.yaml]', files: { 'sub/c.yaml': bad } }, 'x env_file in sub/c.yaml'],
    [{ text: 'include: [a.yaml]', files: { 'a.yaml': 'include: [b.yaml]', 'b.yaml': bad } }, 'x env_file in b.yaml'],
    [{ text: web('extends: {file: a.yaml, service: x}'), files: { 'a.yaml': bad } }, 'x env_file in a.yaml'],
    [{ text: web(''), files: { 'compose.override.yaml': bad } }, 'x env_file in compose.override.yaml'],
    [{ text: web(''), files: { 'docker-compose.override.yml': bad } }, 'x env_file in docker-compose.override.yml'],
    [
      { text: 'include: [sub/c.yaml]', files: { 'sub/c.yaml': 'services: {x: {image: x, env_file: ../../a}}' } },
      'x env_file in sub/c.yaml',
    ],
    [
      {
        text: 'include: [sub/c.yaml]',
        files: { 'sub/c.yaml': `services: {x: {image: x, env_file: "\${A}"}}` },
        env: 'A=b\n',
      },
      'x env_file in sub/c.yaml',
    ],
    [{ text: 'include: [c.yaml]', files: { 'c.yaml': 'a: &a [*a' } }, 'null c.yaml'],
    [{ text: 'include: [c.yaml]', files: { 'c.yaml': 'x'.repeat(300_000) } }, 'null include.path'],
    [{ text: 'include: [c.yaml]', prepare: folder => mkdirSync(join(folder, 'c.yaml')) }, 'null include.path'],
  ]
  for (const [given, at] of more) assert.deepEqual(await refusedAt(given), [at], JSON.stringify(given))
  const utf16 = (folder: string) => writeFileSync(join(folder, 'c.yaml'), `\ufeff${bad}`, 'utf16le')
  assert.deepEqual(await refusedAt({ text: 'include: [c.yaml]', prepare: utf16 }), ['null include.path'])

  const fine = {
    'sub/c.yaml': 'services: {x: {image: x, env_file: [../a.env, b.env], volumes: ["./d:/d"]}}',
    'a.env': 'A=1',
    'sub/b.env': 'B=2',
    'sub/.env': 'C=3',
  }
  await desk.judge({ text: 'include: [sub/c.yaml]', files: fine })
  await desk.judge({ text: web('extends: {file: sub/c.yaml, service: x}'), files: fine })
  await desk.raw({ text: 'include: [a.yaml]', files: { 'a.yaml': 'include: [a.yaml]' } })
})

test('links in the folder that Compose would follow by itself are refused', async () => {
  for (const name of ['.env', 'compose.yaml', 'compose.override.yml']) {
    const prepare = (folder: string) => symlinkSync(outside, join(folder, name))
    assert.deepEqual(await refusedAt({ text: web(''), prepare }), [`null ${name}`], name)
  }
  const prepare = (folder: string) => {
    mkdirSync(join(folder, 'sub'))
    symlinkSync(outside, join(folder, 'sub/.env'))
    writeFileSync(join(folder, 'sub/c.yaml'), 'services: {x: {image: x}}')
  }
  assert.deepEqual(await refusedAt({ text: 'include: [sub/c.yaml]', prepare }), ['null include.path'])
})

test('a pipe outside and one inside are not waited for', async () => {
  assert.deepEqual(await refusedAt({ text: web(`env_file: ${pipe}`) }), ['web env_file'])
  const prepare = (folder: string) => void execFileSync('mkfifo', [join(folder, 'x.env')])
  assert.deepEqual(await refusedAt({ text: web('env_file: x.env'), prepare }), ['web env_file'])
})

test('a new deployment is looked at before its folder is there', async () => {
  const folder = { path: join(desk.root, 'new'), exists: false }
  const raw = (path: string) => refuseRawOutside({ composeText: web(`env_file: ${path}`), envText: null }, folder)
  assert.deepEqual(
    (await raw('.env')).map(({ real }) => real),
    [join(desk.root, 'new/.env')],
  )
  assert.equal((await refusalsOf(raw('../x')))[0]?.key, 'env_file')
})
