// What the tests of the policy share: folders, the real Compose, and both passes in the order they are made for.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type ComposeModel, openCompose } from '../../../adapters/compose/compose.ts'
import { Failure } from '../../../core/failure.ts'
import { type ModelContext, type Owners, ownersOf, type Refusal, refuseModel, refuseRawOutside } from './index.ts'

export const nobody: Owners = ownersOf({ networks: [], volumes: [], containers: [] }, [])

export interface Given {
  text: string
  env?: string
  /** Files of the folder by their path in it. */
  files?: Record<string, string>
  /** Done in the folder before the passes. */
  prepare?(folder: string): void
  context?: Partial<ModelContext>
  written?: string[]
}

export type Desk = ReturnType<typeof policyDesk>

/** `compose` is started with nothing but a path: `config` asks no engine. */
export function policyDesk() {
  const root = mkdtempSync(join(tmpdir(), 'fl-policy-'))
  const compose = openCompose({ path: process.env.PATH ?? '', home: root, dockerHost: 'unix:///nonexistent.sock' })
  let count = 0

  const folderFor = ({ files = {}, prepare }: Given): string => {
    const folder = join(root, `desk${count++}`, 'blog')
    mkdirSync(folder, { recursive: true })
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), content)
    }
    prepare?.(folder)
    return folder
  }

  const candidate = (folder: string, { text, env }: Given): Promise<ComposeModel> =>
    compose.candidate({ folder, composeFile: 'compose.yaml', composeText: text, envText: env ?? null })

  return {
    root,
    compose,
    folderFor,
    candidate,

    raw(given: Given, folder = folderFor(given)) {
      const texts = { composeText: given.text, envText: given.env ?? null }
      return refuseRawOutside(texts, {
        path: folder,
        exists: true,
        written: given.written?.map(one => join(folder, one)) ?? [],
      })
    },

    /** Both passes, as a caller makes them. */
    async judge(given: Given): Promise<ComposeModel> {
      const folder = folderFor(given)
      const place = { path: folder, exists: true, written: given.written?.map(one => join(folder, one)) ?? [] }
      const reads = await refuseRawOutside({ composeText: given.text, envText: given.env ?? null }, place)
      const model = await candidate(folder, given)
      await refuseModel(model, { project: 'blog', folder: place, owners: nobody, reads, ...given.context })
      return model
    },

    close: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** The refusals of a call that has to be refused; none of its words may hold what must stay outside. */
export async function refusalsOf(work: Promise<unknown>, secret = CANARY): Promise<Refusal[]> {
  const error: unknown = await work.then(
    () => assert.fail('it was allowed'),
    thrown => thrown,
  )
  assert.ok(error instanceof Failure, String(error))
  assert.equal(error.code, 'COMPOSE_INVALID')
  assert.ok(Array.isArray(error.details), `Compose refused it, not the policy: ${error.message}`)
  assert.doesNotMatch(JSON.stringify(error.body()), new RegExp(secret))
  const [first] = error.details as Refusal[]
  assert.ok(first && error.message.includes(`"${first.key}"`), error.message)
  if (first.service !== null) assert.ok(error.message.includes(`service "${first.service}"`), error.message)
  return error.details as Refusal[]
}

/** The content of files outside. */
export const CANARY = 'canary-of-the-machine'
