// Images under the references of official ones, made of the programs of this machine: nothing can be pulled in a test.

import { fileURLToPath } from 'node:url'
import { engineAddress } from '../adapters/container-engine/address.ts'
import { openEngine } from '../adapters/container-engine/engine.ts'
import { runProgram } from '../adapters/process/run.ts'

export type StandIn = 'postgres' | 'mariadb' | 'redis' | 'nginx'

/** Makes those that are not there; what it returns removes them again. */
export async function standIns(references: Partial<Record<StandIn, string>>): Promise<() => Promise<void>> {
  const script = fileURLToPath(new URL('images.sh', import.meta.url))
  const { PATH = '', DOCKER_HOST = '', HOME = '', TMPDIR = '/tmp' } = process.env
  const { code, stdout, stderr } = await runProgram(
    'sh',
    [script, ...Object.entries(references).map(([kind, reference]) => `${kind}=${reference}`)],
    { cwd: '/', env: { PATH: `${PATH}:/usr/sbin`, DOCKER_HOST, HOME, TMPDIR }, deadlineMs: 60_000 },
  )
  if (code !== 0) throw new Error(stderr)
  return async () => {
    const engine = openEngine(engineAddress(undefined, process.env))
    await Promise.all(
      stdout
        .split('\n')
        .filter(Boolean)
        .map(reference => engine.images.remove(reference)),
    )
    engine.close()
  }
}
