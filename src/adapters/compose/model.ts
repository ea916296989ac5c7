// Reads the normalised model of a folder through Compose itself, once per state of the files it comes from.

import { createHash } from 'node:crypto'
import { fail } from '../../core/failure.ts'
import type { ProgramOutput } from '../process/run.ts'
import type { ComposeProgram, ComposeVersion } from './program.ts'
import { type ComposeFile, filesNow, filesRead } from './reads.ts'
import { composeWords, warningsOf } from './words.ts'

export type ComposeModel = {
  readonly project: string
  readonly services: Readonly<Record<string, ComposeService>>
  readonly networks: Readonly<Record<string, ComposeResource>>
  readonly volumes: Readonly<Record<string, ComposeResource>>
  readonly configs: Readonly<Record<string, unknown>>
  readonly secrets: Readonly<Record<string, unknown>>
  /** What Compose labels a container of the service with; see `hashesWith` for services that share with others. */
  readonly hashes: ReadonlyMap<string, string>
  /** What this Compose does to those that depend on a replaced service: it replaces them all, or restarts those with `restart: true`. */
  readonly followers: 'replace' | 'run'
  readonly files: readonly ComposeFile[]
  readonly warnings: readonly string[]
  /** One value for all files together. */
  readonly fingerprint: string
}

/** A service as `docker compose config` normalises it; what is not named here is there too. */
export type ComposeService = {
  readonly image?: string
  readonly build?: unknown
  readonly container_name?: string
  readonly restart?: string
  readonly network_mode?: string
  readonly ipc?: string
  readonly pid?: string
  readonly volumes_from?: readonly string[]
  readonly scale?: number
  readonly profiles?: readonly string[]
  readonly labels?: Readonly<Record<string, string>>
  readonly environment?: Readonly<Record<string, string | null>>
  readonly depends_on?: Readonly<
    Record<string, { readonly condition: string; readonly required?: boolean; readonly restart?: boolean }>
  >
  readonly networks?: Readonly<Record<string, unknown>>
  readonly volumes?: readonly ComposeMount[]
  readonly ports?: readonly ComposePort[]
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean } & Readonly<
    Record<string, unknown>
  >
  readonly deploy?: { readonly replicas?: number } & Readonly<Record<string, unknown>>
  readonly [key: string]: unknown
}

export type ComposeMount = {
  readonly type: string
  readonly source?: string
  readonly target: string
  readonly read_only?: boolean
}
export type ComposePort = {
  readonly target: number
  readonly published?: string
  readonly host_ip?: string
  readonly protocol?: string
}
export type ComposeResource = { readonly name?: string; readonly external?: boolean; readonly [key: string]: unknown }

/** The services whose namespaces or volumes this one uses: their containers become part of what it is. */
export function sharedBy(service: ComposeService): string[] {
  const namespaces = [service.network_mode, service.ipc, service.pid].map(
    mode => /^service:(.+)$/.exec(mode ?? '')?.[1],
  )
  const volumes = (service.volumes_from ?? []).map(from => from.split(':')[0]).filter(from => from !== 'container')
  return [...namespaces, ...volumes].filter(other => other !== undefined)
}

/** The services that take this one with them when they are replaced. */
export function followedBy({ services, followers }: ComposeModel, name: string): string[] {
  const { depends_on = {} } = services[name] ?? {}
  return Object.keys(depends_on).filter(other => followers === 'replace' || depends_on[other]?.restart)
}

export type ModelReader = ReturnType<typeof modelReader>

/** What Compose said about a folder, kept over a restart so that it need not be asked again. */
export type ModelMemory = {
  recall(folder: string, key: string): Said | undefined
  keep(folder: string, key: string, said: Said): void
}

/** Its words: the resolved model as JSON, its complaints, and the hashes. */
export type Said = {
  readonly json: string
  readonly complaints: string
  readonly hashes: readonly (readonly [service: string, hash: string])[]
}

/** `width` is how many folders are read at the same time. */
export function modelReader(program: ComposeProgram, width: number, memory?: ModelMemory) {
  const known = new Map<string, Known>()
  const reading = new Map<string, Promise<Known>>()
  const inTurn = turns(width)
  /** What `hashesWith` last gave for a state of the files. */
  const shared = new WeakMap<Known, { ids: string; hashes: Promise<ReadonlyMap<string, string>> }>()

  /** Who asks for the same files shares one run, which no single caller can cancel for the others. */
  const load = (folder: string, files: readonly ComposeFile[]): Promise<Known> => {
    const key = `${folder}\n${fingerprintOf(files)}`
    const under = reading.get(key)
    if (under) return under
    const run = recallOrRead(folder, files).finally(() => reading.delete(key))
    reading.set(key, run)
    return run
  }

  const recallOrRead = async (folder: string, files: readonly ComposeFile[]): Promise<Known> => {
    const version = await program.version()
    const key = `${version.text} ${fingerprintOf(files)}`
    const before = memory?.recall(folder, key)
    if (before) return knownFrom(before, folder, files, version)
    const said = await inTurn(() => ask(program, folder))
    memory?.keep(folder, key, said)
    return knownFrom(said, folder, files, version)
  }

  const current = async (folder: string): Promise<Known> => {
    const before = known.get(folder)
    if (before && fingerprintOf(await filesNow(folder, before.model.files)) === before.model.fingerprint) return before
    for (let attempt = 0; attempt < attempts; attempt++) {
      const files = await filesRead(folder)
      const loaded = await load(folder, files)
      if (fingerprintOf(await filesNow(folder, files)) !== loaded.model.fingerprint) continue
      known.set(folder, loaded)
      return loaded
    }
    return fail('CONFLICT', 'The files of the deployment keep changing while they are read: try again.')
  }

  const hashesOf = async (
    folder: string,
    { model, source }: Known,
    containers: ReadonlyMap<string, string>,
  ): Promise<ReadonlyMap<string, string>> => {
    const resolved = withContainers(source, containers)
    if (!resolved) return model.hashes
    const hashes = await inTurn(() => readHashes(program, folder, JSON.stringify(resolved)))
    const { major, minor } = await program.version()
    const isForetold = (name: string) => !model.services[name]?.volumes_from || major > 2 || minor >= bareIdsMinor
    return new Map([...hashes].filter(([name]) => Object.hasOwn(model.services, name) && isForetold(name)))
  }

  return {
    model: async (folder: string, signal?: AbortSignal): Promise<ComposeModel> =>
      (await orAborted(current(folder), signal)).model,

    async hashesWith(
      folder: string,
      containers: ReadonlyMap<string, string>,
      signal?: AbortSignal,
    ): Promise<ReadonlyMap<string, string>> {
      const files = await orAborted(current(folder), signal)
      const ids = JSON.stringify([...containers])
      const before = shared.get(files)
      const hashes = before?.ids === ids ? before.hashes : hashesOf(folder, files, containers)
      shared.set(files, { ids, hashes })
      hashes.catch(() => shared.delete(files))
      return orAborted(hashes, signal)
    },

    forget: (folder: string): void => void known.delete(folder),
  }
}

type Known = {
  readonly model: ComposeModel
  /** The model with `$` still written as `$$`, as Compose takes it back. */
  readonly source: SourceModel
}

type SourceModel = { readonly services: Readonly<Record<string, ComposeService>>; readonly [key: string]: unknown }

/** Compose 2 from which on the hash of `volumes_from` can be foretold; 2.26 puts the order of starting into it. */
const bareIdsMinor = 40
/** Compose 2 from which on what depends on a replaced container is at most restarted; before, it is replaced too. */
const restartingMinor = 30
const attempts = 3
const configDeadlineMs = 30_000
const maxModelBytes = 16 * 1024 * 1024

/** A text that is not in its place yet: it lies in the shadow of its folder. */
export type Proposed = {
  readonly shadow: string
  readonly folder: string
  readonly containers?: ReadonlyMap<string, string> | undefined
  readonly signal?: AbortSignal | undefined
}

/** The model of a proposed text; its paths and hashes are those it would have in its place. */
export async function proposedModel(program: ComposeProgram, proposed: Proposed): Promise<ComposeModel> {
  const { shadow, folder, containers = new Map(), signal } = proposed
  const said = await ask(program, shadow, { inPlace: folder, signal })
  const { model, source } = knownFrom(said, shadow, await filesRead(shadow), await program.version())
  const resolved = withContainers(source, containers)
  if (!resolved) return model
  const hashes = await readHashes(program, shadow, JSON.stringify(resolved))
  return { ...model, hashes: new Map([...hashes].filter(([service]) => Object.hasOwn(model.services, service))) }
}

async function ask(
  program: ComposeProgram,
  folder: string,
  { inPlace = folder, signal }: { inPlace?: string; signal?: AbortSignal | undefined } = {},
): Promise<Said> {
  const options = { deadlineMs: configDeadlineMs, maxOutput: maxModelBytes, signal }
  const output = accepted(await program.run(folder, ['config', '--format', 'json'], options), folder)
  const json = output.stdout.replaceAll(folder, inPlace)
  return { json, complaints: output.stderr, hashes: [...(await readHashes(program, folder, json))] }
}

function knownFrom(
  { json, complaints, hashes }: Said,
  folder: string,
  files: readonly ComposeFile[],
  { major, minor }: ComposeVersion,
): Known {
  const source: SourceModel = { services: {}, ...JSON.parse(json) }
  const plain = JSON.parse(json.replaceAll('$$', '$'))
  const model: ComposeModel = {
    project: plain.name,
    services: plain.services ?? {},
    networks: plain.networks ?? {},
    volumes: plain.volumes ?? {},
    configs: plain.configs ?? {},
    secrets: plain.secrets ?? {},
    hashes: new Map(hashes),
    followers: major > 2 || minor >= restartingMinor ? 'run' : 'replace',
    files,
    warnings: warningsOf(complaints, folder),
    fingerprint: fingerprintOf(files),
  }
  return { model, source }
}

/**
 * The hashes of a model that Compose has resolved itself. Asked of the folder directly, `config --hash` leaves out env_file
 * (2.22 to 5.x) and variables passed through, and so differs from what `up` labels the containers with.
 */
async function readHashes(program: ComposeProgram, folder: string, resolved: string): Promise<Map<string, string>> {
  const args = ['--project-directory', folder, '--file', '-', 'config', '--hash', '*']
  const output = accepted(await program.run(folder, args, { deadlineMs: configDeadlineMs, input: resolved }), folder)
  const pairs = output.stdout.split('\n').flatMap(line => {
    const [service, hash] = line.trim().split(' ')
    return service && hash ? [[service, hash] as const] : []
  })
  return new Map(pairs)
}

function accepted(output: ProgramOutput, folder: string): ProgramOutput {
  if (output.truncated) return fail('COMPOSE_INVALID', 'The compose file becomes too large when it is resolved.')
  if (output.code === 0) return output
  return fail('COMPOSE_INVALID', `The compose file is not valid: ${composeWords(output.stderr, folder)}`)
}

/**
 * Compose writes the id of the other's container in the place of its service before it hashes. `volumes_from` then holds
 * a bare id, which only passes as a service of that name: so one is added. Undefined when nothing is shared.
 */
function withContainers(source: SourceModel, containers: ReadonlyMap<string, string>): SourceModel | undefined {
  const services: Record<string, ComposeService> = { ...source.services }
  let shared = false
  for (const [name, service] of Object.entries(source.services)) {
    const changed: Record<string, unknown> = {}
    for (const key of ['network_mode', 'ipc', 'pid'] as const) {
      const other = /^service:(.+)$/.exec(service[key] ?? '')?.[1]
      const id = other === undefined ? undefined : containers.get(other)
      if (id !== undefined) changed[key] = `container:${id}`
    }
    if (service.volumes_from)
      changed.volumes_from = service.volumes_from.map(from => volumesFrom(from, containers, services))
    if (!Object.keys(changed).length) continue
    shared = true
    services[name] = { ...service, ...changed }
  }
  return shared ? { ...source, services } : undefined
}

function volumesFrom(
  from: string,
  containers: ReadonlyMap<string, string>,
  services: Record<string, ComposeService>,
): string {
  const [first = '', second] = from.split(':')
  const id = first === 'container' ? second : containers.get(first)
  if (id === undefined) return from
  services[id] ??= { image: 'scratch' }
  return id
}

function fingerprintOf(files: readonly ComposeFile[]): string {
  const pairs = files.map(({ path, sha256 }) => [path, sha256])
  return createHash('sha256').update(JSON.stringify(pairs)).digest('hex')
}

function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', abort))
}

/** At most `width` at a time, in the order of asking. */
function turns(width: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let free = width
  return async work => {
    if (free > 0) free--
    else await new Promise<void>(resolve => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }
}
