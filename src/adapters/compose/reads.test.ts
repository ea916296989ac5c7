import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { Failure } from '../../core/failure.ts'
import { interpolate, parseEnv } from './interpolate.ts'
import { composeFileOf, filesNow, filesRead } from './reads.ts'

const root = mkdtempSync(join(tmpdir(), 'fl-reads-'))
after(() => rmSync(root, { recursive: true, force: true }))

let count = 0
const folderWith = (files: Record<string, string>): string => {
  const folder = join(root, `d${count++}`)
  for (const [name, text] of Object.entries({ ...files })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

const there = async (folder: string): Promise<string[]> =>
  (await filesRead(folder)).filter(({ sha256 }) => sha256 !== null).map(({ path, role }) => `${role} ${path}`)
const absent = async (folder: string): Promise<string[]> =>
  (await filesRead(folder)).filter(({ sha256 }) => sha256 === null).map(({ path }) => path)

test("a compose file is found in Compose's own order", async () => {
  const folder = folderWith({ 'docker-compose.yaml': '' })
  assert.equal(await composeFileOf(folder), 'docker-compose.yaml')
  for (const name of ['docker-compose.yml', 'compose.yml', 'compose.yaml']) {
    writeFileSync(join(folder, name), '')
    assert.equal(await composeFileOf(folder), name)
  }
  assert.equal(await composeFileOf(folderWith({ 'other.yml': '' })), undefined)
})

test('the compose file, its override and .env are read, and those that would be are noted', async () => {
  const plain = folderWith({ 'compose.yml': 'services: {}' })
  assert.deepEqual(await there(plain), ['compose compose.yml'])
  assert.deepEqual(await absent(plain), [
    '.env',
    'compose.yaml',
    'compose.override.yml',
    'compose.override.yaml',
    'docker-compose.override.yml',
    'docker-compose.override.yaml',
  ])
  const full = folderWith({ 'compose.yaml': 'services: {}', 'compose.override.yaml': 'services: {}', '.env': 'A=1' })
  assert.deepEqual(await there(full), ['env .env', 'compose compose.yaml', 'override compose.override.yaml'])
  assert.deepEqual(await absent(full), ['compose.override.yml'])
})

test('what compose files name is followed: include, extends, env_file, label_file, also through variables', async () => {
  const folder = folderWith({
    '.env': 'WHERE=parts\nEMPTY=\n',
    'compose.yaml': `
include:
  - \${WHERE}/one.yml
  - path: [two/two.yml, two/two.override.yml]
    project_directory: two/inner
    env_file: two/special.env
  - oci://registry/app:1
services:
  a:
    extends: { file: base/base.yml, service: x }
    env_file: a.env
    label_file: [labels]
  b:
    env_file: [b1.env, { path: "\${EMPTY:-b2}.env", required: false }]
---
services:
  c: { env_file: second-document.env }
`,
    'parts/one.yml': 'services: { d: { env_file: d.env } }',
    'parts/d.env': '',
    'parts/.env': '',
    'two/two.yml': 'services: { e: { env_file: e.env } }',
    'two/two.override.yml': 'services: {}',
    'two/special.env': '',
    'two/inner/e.env': '',
    'base/base.yml': 'services: { x: { env_file: x.env, extends: { service: y } }, y: {} }',
    'base/x.env': '',
    'a.env': '',
    'b1.env': '',
    'b2.env': '',
    labels: '',
    'second-document.env': '',
  })
  assert.deepEqual((await there(folder)).sort(), [
    'compose compose.yaml',
    'env .env',
    'env parts/.env',
    'env two/special.env',
    'env_file a.env',
    'env_file b1.env',
    'env_file b2.env',
    'env_file base/x.env',
    'env_file parts/d.env',
    'env_file second-document.env',
    'env_file two/inner/e.env',
    'extends base/base.yml',
    'include parts/one.yml',
    'include two/two.override.yml',
    'include two/two.yml',
    'label_file labels',
  ])
})

test('COMPOSE_FILE in .env names other files', async () => {
  const folder = folderWith({ '.env': 'COMPOSE_FILE=x.yml:y.yml', 'x.yml': '', 'y.yml': '', 'compose.yaml': '' })
  assert.deepEqual(await there(folder), ['env .env', 'compose x.yml', 'compose y.yml'])
})

test('a file outside is shown with its whole path, and circles end', async () => {
  const folder = folderWith({ 'compose.yaml': 'include: [../d-outside.yml, ./compose.yaml]' })
  writeFileSync(join(root, 'd-outside.yml'), `include: [${folder}/compose.yaml]`)
  const paths = (await filesRead(folder)).map(({ path }) => path)
  assert.ok(paths.includes(join(root, 'd-outside.yml')))
})

test('a file that is no YAML has no further files, and Compose reports it', async () => {
  assert.deepEqual(await there(folderWith({ 'compose.yaml': 'a: [\n{{{' })), ['compose compose.yaml'])
})

test('a pipe, a device and a huge file are refused instead of read', async () => {
  const refused = (error: unknown) => error instanceof Failure && error.code === 'COMPOSE_INVALID'
  await assert.rejects(filesRead(folderWith({ 'compose.yaml': 'services: { a: { env_file: /dev/zero } }' })), refused)
  const piped = folderWith({ 'compose.yaml': 'services: { a: { env_file: pipe } }' })
  execFileSync('mkfifo', [join(piped, 'pipe')])
  await assert.rejects(filesRead(piped), refused)
  await assert.rejects(filesRead(folderWith({ 'compose.yaml': ' '.repeat(5 * 1024 * 1024) })), refused)
})

test('the same files now have other hashes when one changed, came or went', async () => {
  const folder = folderWith({ 'compose.yaml': 'services: {}' })
  const files = await filesRead(folder)
  assert.deepEqual(await filesNow(folder, files), files)
  writeFileSync(join(folder, '.env'), 'A=1')
  rmSync(join(folder, 'compose.yaml'))
  const now = new Map((await filesNow(folder, files)).map(({ path, sha256 }) => [path, sha256]))
  assert.equal(now.get('compose.yaml'), null)
  assert.match(now.get('.env') ?? '', /^[0-9a-f]{64}$/)
})

test('variables are filled in as Compose does', () => {
  const fill = (text: string) => interpolate(text, { A: 'a', E: '' })
  assert.equal(
    fill('$A {A} $$A {N} {N:-d} {E:-d} {E-d} {A:+x} {N:+x} {A:?no} {N:-{A}}'.replaceAll('{', '${')),
    'a a $A  d d  x  a a',
  )
  assert.deepEqual(parseEnv('# c\nA=1 # one\nexport B="x \\"y\\" $A"\nC=\'$A # z\'\nD=\n=bad\n'), {
    A: '1',
    B: 'x "y" 1',
    C: '$A # z',
    D: '',
  })
})
