// Confinement, compare-and-swap and what a full disk, a race and a crash leave behind.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import fc from 'fast-check'
import { Failure } from '../../core/failure.ts'
import { isTemporaryName, temporaryName } from '../../lib/write-aside.ts'
import { type Files, openFiles, sha256 } from './index.ts'
import { mountsWithin } from './remove-tree.ts'

const world = mkdtempSync(join(tmpdir(), 'fairlead-files-'))
after(() => rmSync(world, { recursive: true }))

let root: string
let outside: string
let files: Files

beforeEach(async () => {
  const folder = mkdtempSync(join(world, 'case-'))
  root = join(folder, 'root')
  outside = join(folder, 'outside')
  mkdirSync(join(root, 'blog'), { recursive: true })
  mkdirSync(outside)
  writeFileSync(join(outside, 'secret'), 'canary')
  writeFileSync(join(root, 'blog/compose.yml'), 'services: {}\n')
  files = await openFiles(root)
})

const refused = (code: string, pattern: RegExp) => (error: unknown) =>
  error instanceof Failure && error.code === code && pattern.test(error.message)

const leftovers = (folder: string) =>
  readdirSync(folder, { recursive: true }).filter(name => isTemporaryName(`${name}`.split('/').at(-1) ?? ''))

test('a file is read with its fingerprint, a missing one is undefined', async () => {
  assert.deepEqual(await files.read('blog/compose.yml'), {
    content: Buffer.from('services: {}\n'),
    sha256: sha256('services: {}\n'),
  })
  assert.equal(await files.read('blog/none'), undefined)
  assert.equal(await files.read('none/compose.yml'), undefined)
  assert.equal(await files.read('blog/compose.yml/below'), undefined)
})

test('a file larger than allowed is refused before it is read', async () => {
  await assert.rejects(files.read('blog/compose.yml', { max: 5 }), refused('PAYLOAD_TOO_LARGE', /larger than 5 bytes/))
})

test('a path that leaves the root is refused by every operation', async () => {
  for (const path of [
    '../outside/secret',
    'blog/../../outside/secret',
    '/etc/passwd',
    'blog/..',
    'a\0b',
    'a\ud800',
    'x'.repeat(300),
  ]) {
    const operations: [string, () => Promise<unknown>][] = [
      ['read', () => files.read(path)],
      ['open', () => files.open(path)],
      ['stat', () => files.stat(path)],
      ['list', () => files.list(path)],
      ['write', () => files.write(path, 'x')],
      ['remove', () => files.remove(path)],
      ['makeFolder', () => files.makeFolder(path)],
      ['removeTree', () => files.removeTree(path)],
    ]
    for (const [name, operation] of operations) {
      await assert.rejects(operation, refused('VALIDATION_FAILED', /path/), `${name} of ${JSON.stringify(path)}`)
    }
  }
  assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), 'canary')
})

test('a link is refused wherever it stands in the path', async () => {
  symlinkSync(outside, join(root, 'blog/folder-link'))
  symlinkSync(join(outside, 'secret'), join(root, 'blog/file-link'))
  symlinkSync('blog', join(root, 'inner-link'))
  for (const path of ['blog/folder-link/secret', 'blog/file-link', 'inner-link/compose.yml']) {
    await assert.rejects(files.read(path), refused('VALIDATION_FAILED', /link/), path)
    await assert.rejects(files.write(path, 'x'), refused('VALIDATION_FAILED', /link/), path)
  }
  await assert.rejects(files.list('blog/folder-link'), refused('VALIDATION_FAILED', /link/))
  await assert.rejects(files.remove('blog/folder-link/secret'), refused('VALIDATION_FAILED', /link/))
  await assert.rejects(files.removeTree('blog/folder-link'), refused('VALIDATION_FAILED', /link/))
  await assert.rejects(files.makeFolder('blog/folder-link/new'), refused('VALIDATION_FAILED', /link/))
  assert.deepEqual(readdirSync(outside), ['secret'])
  assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), 'canary')
})

test('another spelling of a name is another file', async () => {
  assert.equal(await files.read('Blog/compose.yml'), undefined)
  assert.equal(await files.read('blog/COMPOSE.YML'), undefined)
  assert.ok(await files.read('./blog//compose.yml'))
})

test('no sentence shows a path outside the root', async () => {
  symlinkSync(outside, join(root, 'out'))
  const error: unknown = await files.read('out/secret').catch(thrown => thrown)
  assert.ok(error instanceof Failure)
  assert.doesNotMatch(JSON.stringify(error.body()), new RegExp(world))
})

test('a folder swapped for a link while it is used never leads outside', async () => {
  const folder = join(root, 'blog')
  writeFileSync(join(folder, 'secret'), 'mine')
  let swapping = true
  const pause = async () => {
    for (let n = Math.floor(Math.random() * 6); n >= 0; n--) await new Promise(resolve => setImmediate(resolve))
  }
  const swap = async () => {
    while (swapping) {
      renameSync(folder, `${folder}.aside`)
      symlinkSync(outside, folder)
      await pause()
      rmSync(folder)
      renameSync(`${folder}.aside`, folder)
      await pause()
    }
  }
  const swapped = swap()
  const seen = new Set<string>()
  const sawBoth = () => seen.has('mine') && seen.has('refused VALIDATION_FAILED')
  for (let round = 0; round < 200 || (round < 5000 && !sawBoth()); round++) {
    const result = await files.read('blog/secret').catch((error: Failure) => error)
    seen.add(result instanceof Error ? `refused ${(result as Failure).code}` : `${result?.content}`)
    await files.write('blog/written', 'x').catch(() => {})
  }
  swapping = false
  await swapped
  assert.ok(sawBoth(), [...seen].join())
  assert.ok(!seen.has('canary'))
  assert.deepEqual(readdirSync(outside), ['secret'])
})

test('no generated path reaches the file outside', async () => {
  symlinkSync('../..', join(root, 'blog/up'))
  symlinkSync('/', join(root, 'blog/slash'))
  const part = fc.constantFrom(
    '..',
    '.',
    '',
    'blog',
    'up',
    'slash',
    'outside',
    'secret',
    '...',
    ' ',
    '\\',
    '..\\',
    '%2e%2e',
    outside,
  )
  await fc.assert(
    fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 8 }), async parts => {
      const result = await files.read(parts.join('/')).catch(() => undefined)
      assert.notEqual(result?.content.toString(), 'canary')
    }),
    { numRuns: 300 },
  )
})

test('a pipe and a folder are not read as files', async () => {
  execFileSync('mkfifo', [join(root, 'pipe')])
  await assert.rejects(files.read('pipe'), refused('VALIDATION_FAILED', /not a regular file/))
  await assert.rejects(files.read('blog'), refused('VALIDATION_FAILED', /is a folder/))
  await assert.rejects(files.write('pipe', 'x'), refused('VALIDATION_FAILED', /not a file/))
})

test('a list names files, folders and links in order, and a missing folder is undefined', async () => {
  symlinkSync('compose.yml', join(root, 'blog/a-link'))
  mkdirSync(join(root, 'blog/z'))
  writeFileSync(join(root, 'blog', temporaryName()), 'half')
  assert.deepEqual(await files.list('blog'), [
    { name: 'a-link', type: 'link' },
    { name: 'compose.yml', type: 'file' },
    { name: 'z', type: 'folder' },
  ])
  assert.deepEqual(await files.list(''), [{ name: 'blog', type: 'folder' }])
  assert.equal(await files.list('none'), undefined)
})

test('stat reports size, mode and kind', async () => {
  chmodSync(join(root, 'blog/compose.yml'), 0o640)
  const stat = await files.stat('blog/compose.yml')
  assert.deepEqual([stat?.type, stat?.size, stat?.mode], ['file', 13, 0o640])
  assert.equal((await files.stat('blog'))?.type, 'folder')
  assert.equal((await files.stat(''))?.type, 'folder')
  assert.equal(await files.stat('none'), undefined)
})

test('a write replaces the file, answers its fingerprint and keeps mode and owner', async () => {
  const file = join(root, 'blog/compose.yml')
  chmodSync(file, 0o640)
  const uid = process.getuid?.() === 0 ? 1234 : process.getuid?.()
  if (uid !== undefined) chownSync(file, uid, statSync(file).gid)
  assert.deepEqual(await files.write('blog/compose.yml', 'new'), { sha256: sha256('new') })
  assert.equal(readFileSync(file, 'utf8'), 'new')
  assert.equal(statSync(file).mode & 0o777, 0o640)
  assert.equal(statSync(file).uid, uid)
})

test('a write replaces the file and not what shares its content through a hard link', async () => {
  linkSync(join(outside, 'secret'), join(root, 'blog/hard'))
  await files.write('blog/hard', 'new')
  assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), 'canary')
})

test('a new file gets the mode asked for', async () => {
  await files.write('blog/.env', 'A=1\n', { mode: 0o600 })
  assert.equal(statSync(join(root, 'blog/.env')).mode & 0o777, 0o600)
})

test('a write into a folder that is not there is refused', async () => {
  await assert.rejects(files.write('none/file', 'x'), refused('NOT_FOUND', /its folder is not there/))
})

test('a file that is no longer what was seen is left as it is', async () => {
  const seen = sha256('services: {}\n')
  await files.write('blog/compose.yml', 'second', { expect: seen })
  await assert.rejects(
    files.write('blog/compose.yml', 'third', { expect: seen }),
    refused('CONFLICT', /changed meanwhile/),
  )
  await assert.rejects(files.remove('blog/compose.yml', { expect: seen }), refused('CONFLICT', /changed meanwhile/))
  await assert.rejects(
    files.write('blog/compose.yml', 'third', { expect: null }),
    refused('CONFLICT', /changed meanwhile/),
  )
  await assert.rejects(files.write('blog/none', 'x', { expect: seen }), refused('CONFLICT', /changed meanwhile/))
  await assert.rejects(files.remove('none/none', { expect: seen }), refused('CONFLICT', /changed meanwhile/))
  assert.equal(readFileSync(join(root, 'blog/compose.yml'), 'utf8'), 'second')
  assert.deepEqual(leftovers(root), [])
})

test('of writers that saw the same content exactly one wins', async () => {
  for (const expect of [sha256('services: {}\n'), null]) {
    const path = expect === null ? 'blog/new' : 'blog/./compose.yml'
    const writers = Array.from({ length: 10 }, (_, n) =>
      files.write(n % 2 ? path : path.replace('./', ''), `writer ${n}`, { expect }),
    )
    const results = await Promise.allSettled(writers)
    const winners = results.flatMap((result, n) => (result.status === 'fulfilled' ? [n] : []))
    assert.equal(winners.length, 1)
    assert.equal(`${(await files.read(path))?.content}`, `writer ${winners[0]}`)
    for (const result of results) if (result.status === 'rejected') assert.equal(result.reason.code, 'CONFLICT')
  }
})

test('a removed file is gone, and removing it again says so', async () => {
  assert.equal(await files.remove('blog/compose.yml', { expect: sha256('services: {}\n') }), true)
  assert.equal(await files.remove('blog/compose.yml', { expect: null }), false)
  assert.equal(await files.remove('none/none'), false)
  await assert.rejects(files.remove('blog'), refused('VALIDATION_FAILED', /is a folder/))
})

test('removing a link removes the link', async () => {
  symlinkSync(join(outside, 'secret'), join(root, 'link'))
  assert.equal(await files.remove('link'), true)
  assert.ok(!existsSync(join(root, 'link')) && existsSync(join(outside, 'secret')))
})

test('folders are made with those above, and only the missing ones are named', async () => {
  assert.deepEqual(await files.makeFolder('blog/a/b', 0o700), ['blog/a', 'blog/a/b'])
  assert.deepEqual(await files.makeFolder('blog/a/b'), [])
  assert.deepEqual(await files.makeFolder(''), [])
  assert.equal(statSync(join(root, 'blog/a/b')).mode & 0o777, 0o700)
  await assert.rejects(files.makeFolder('blog/compose.yml/x'), refused('VALIDATION_FAILED', /is a file, not a folder/))
})

test('a tree is removed with its links, and nothing they lead to', async () => {
  mkdirSync(join(root, 'blog/data/deep'), { recursive: true })
  writeFileSync(join(root, 'blog/data/deep/file'), 'x')
  symlinkSync(outside, join(root, 'blog/data/link'))
  symlinkSync('nowhere', join(root, 'blog/dangling'))
  execFileSync('mkfifo', [join(root, 'blog/pipe')])
  for (let n = 0; n < 600; n++) writeFileSync(join(root, 'blog/data', `f${n}`), '')
  assert.equal(await files.removeTree('blog'), true)
  assert.deepEqual(readdirSync(root), [])
  assert.deepEqual(readdirSync(outside), ['secret'])
  assert.equal(await files.removeTree('blog'), false)
})

test('a file, a link and the root itself are not removed as trees', async () => {
  await assert.rejects(files.removeTree('blog/compose.yml'), refused('VALIDATION_FAILED', /not a folder/))
  for (const path of ['', '.', './'])
    await assert.rejects(files.removeTree(path), refused('VALIDATION_FAILED', /names no file/))
  assert.ok(existsSync(join(root, 'blog/compose.yml')))
})

test('mounts at or below a folder are found in the table of the kernel', () => {
  const table = [
    '21 1 0:5 / / rw - ext4 x rw',
    '22 21 0:6 / /srv/a rw - tmpfs x rw',
    '23 21 0:6 / /srv/b\\040c/d rw - tmpfs x rw',
  ].join('\n')
  assert.deepEqual(mountsWithin(table, '/srv'), ['/srv/a', '/srv/b c/d'])
  assert.deepEqual(mountsWithin(table, '/srv/a'), ['/srv/a'])
  assert.deepEqual(mountsWithin(table, '/srv/b c'), ['/srv/b c/d'])
  assert.deepEqual(mountsWithin(table, '/sr'), [])
})

test('a full disk leaves the old content and nothing beside it', async () => {
  mkdirSync(join(root, 'small'))
  await onSmallDisk(join(root, 'small'), async () => {
    await files.write('small/file', 'old')
    const write = files.write('small/file', Buffer.alloc(200_000, 'x'))
    await assert.rejects(write, refused('SERVICE_UNAVAILABLE', /was not written.*old content is intact/))
    assert.equal(readFileSync(join(root, 'small/file'), 'utf8'), 'old')
    assert.deepEqual(readdirSync(join(root, 'small')), ['file'])
    await files.write('small/file', 'new')
  })
})

test('a folder with a mount in it is not removed', async t => {
  mkdirSync(join(root, 'blog/data'))
  const mounted = await mounting(join(root, 'blog/data'), async () => {
    writeFileSync(join(root, 'blog/data/database'), 'rows')
    await assert.rejects(files.removeTree('blog'), refused('CONFLICT', /mounted at "blog\/data"/))
    assert.equal(readFileSync(join(root, 'blog/data/database'), 'utf8'), 'rows')
  })
  if (!mounted) t.diagnostic('this user may not mount: only the removal after it was tried')
  assert.equal(await files.removeTree('blog'), true)
})

test('what a crash left behind is swept, and nothing else', async () => {
  mkdirSync(join(root, 'blog/data/deep'), { recursive: true })
  const [inRoot, inBlog, asFolder, tooDeep] = [temporaryName(), temporaryName(), temporaryName(), temporaryName()]
  writeFileSync(join(root, inRoot), 'half')
  writeFileSync(join(root, 'blog', inBlog), 'half')
  mkdirSync(join(root, asFolder, 'sub'), { recursive: true })
  symlinkSync(outside, join(root, asFolder, 'sub/link'))
  writeFileSync(join(root, 'blog/data/deep', tooDeep), 'half')
  assert.deepEqual((await files.sweepLeftovers()).sort(), [inRoot, asFolder, `blog/${inBlog}`].sort())
  assert.deepEqual(leftovers(root), [`blog/data/deep/${tooDeep}`])
  assert.deepEqual(readdirSync(outside), ['secret'])
  assert.ok(existsSync(join(root, 'blog/compose.yml')))
})

test('a root that went away is an outage and not an empty list', async () => {
  rmSync(root, { recursive: true })
  await assert.rejects(files.list(''), refused('SERVICE_UNAVAILABLE', /is gone/))
})

test('a root reached through a link is the folder it leads to', async () => {
  symlinkSync(root, join(outside, 'root-link'))
  const linked = await openFiles(join(outside, 'root-link'))
  assert.equal(linked.root, files.root)
  assert.ok(await linked.read('blog/compose.yml'))
})

/** A disk of 64 KiB; for a user who may not mount, a limit on the size of files, which ends a write the same way. */
async function onSmallDisk(folder: string, use: () => Promise<void>): Promise<void> {
  if (await mounting(folder, use)) return
  const ignore = () => {}
  process.on('SIGXFSZ', ignore)
  execFileSync('prlimit', ['--pid', `${process.pid}`, '--fsize=65536:unlimited'])
  try {
    await use()
  } finally {
    execFileSync('prlimit', ['--pid', `${process.pid}`, '--fsize=unlimited:unlimited'])
    process.off('SIGXFSZ', ignore)
  }
}

async function mounting(folder: string, use: () => Promise<void>): Promise<boolean> {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return false
  }
  try {
    await use()
    return true
  } finally {
    execFileSync('umount', [folder])
  }
}
