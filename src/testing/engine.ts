// A real engine for tests: names that nobody else has, and nothing left behind.

import { randomBytes } from 'node:crypto'
import { engineAddress } from '../adapters/container-engine/address.ts'
import type { ContainerSpec } from '../adapters/container-engine/containers.ts'
import { type Engine, openEngine } from '../adapters/container-engine/engine.ts'

export type TestEngine = {
  readonly engine: Engine
  readonly address: string
  /** Begins every name this test may use; fit for a compose project, a container, a volume, an image. */
  readonly prefix: string
  readonly image: string
  name(suffix: string): string
  /** Creates and starts a container; `command` is run by the image's shell. */
  run(suffix: string, command: string, spec?: Partial<ContainerSpec>): Promise<string>
  /** Removes all containers, networks, volumes and image tags whose name begins with the prefix, and closes the engine. */
  cleanup(): Promise<void>
}

export const testImage = 'fairlead-test/busybox:1'

export function testEngine(): TestEngine {
  const address = engineAddress(undefined, process.env)
  const engine = openEngine(address)
  const prefix = `flt${randomBytes(4).toString('hex')}`
  const name = (suffix: string) => `${prefix}-${suffix}`
  return {
    engine,
    address,
    prefix,
    image: testImage,
    name,
    async run(suffix, command, spec = {}) {
      const id = await engine.containers.create(name(suffix), { Image: testImage, Cmd: ['sh', '-c', command], ...spec })
      await engine.containers.start(id)
      return id
    },
    async cleanup() {
      await removeAll(engine, prefix)
      engine.close()
    },
  }
}

async function removeAll(engine: Engine, prefix: string): Promise<void> {
  const ours = (text: string) => text.startsWith(prefix)
  const containers = await engine.containers.list()
  const mine = containers.filter(
    ({ Names, Labels }) => Names?.some(name => ours(name.slice(1))) || ours(projectOf(Labels)),
  )
  await Promise.all(mine.map(({ Id }) => engine.containers.remove(Id, { force: true, anonymousVolumes: true })))
  const networks = (await engine.networks.list()).filter(({ Name }) => ours(Name))
  const volumes = (await engine.volumes.list()).filter(({ Name }) => ours(Name))
  const tags = (await engine.images.list()).flatMap(({ RepoTags }) => RepoTags ?? []).filter(ours)
  await Promise.all([
    ...networks.map(({ Id }) => engine.networks.remove(Id)),
    ...volumes.map(({ Name }) => engine.volumes.remove(Name)),
    ...tags.map(tag => engine.images.remove(tag, { force: true })),
  ])
}

const projectOf = (labels: Record<string, string> | null | undefined): string =>
  labels?.['com.docker.compose.project'] ?? ''
