// The wiring of the agent, read top to bottom; it closes in reverse.

import { existsSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { openCompose } from './adapters/compose/compose.ts'
import { composeKinds } from './adapters/compose/steps.ts'
import { dockerHost, engineAddress, parseAddress } from './adapters/container-engine/address.ts'
import { openEngine } from './adapters/container-engine/engine.ts'
import { mirrorEngine } from './adapters/container-engine/mirror.ts'
import { engineKinds } from './adapters/container-engine/steps.ts'
import { openFiles } from './adapters/files/index.ts'
import { fileKinds } from './adapters/files/steps.ts'
import { watchHost } from './adapters/host/index.ts'
import { registryLogin } from './adapters/registry/index.ts'
import type { LoadedConfig } from './config.ts'
import { Door } from './core/door.ts'
import { EventBus } from './core/event.ts'
import { checkExamples, checkOperations, type Operation, type ReaderFactories } from './core/operation.ts'
import { type AnyTable, recordKinds } from './core/record.ts'
import type { World } from './core/step.ts'
import { apiKeyReader, apiKeys } from './features/apikeys/index.ts'
import { auditCleanupStep, auditReader, removeBefore } from './features/audit/index.ts'
import { authReader, Identity } from './features/auth/index.ts'
import { containerReader } from './features/containers/index.ts'
import { credentialReader, registryAuthOf, sealedCredentials } from './features/credentials/index.ts'
import {
  ContainerStats,
  DeploymentFolders,
  DeploymentLogs,
  deploymentReader,
  modelMemory,
  Overview,
  trusted,
} from './features/deployments/index.ts'
import { imageReader } from './features/images/index.ts'
import { operations as allOperations } from './features/index.ts'
import { cancelJob, jobReader } from './features/jobs/index.ts'
import { networkReader } from './features/networks/index.ts'
import { planDiscardStep, planReader } from './features/plans/index.ts'
import { registries, registriesUsing, registryReader } from './features/registries/index.ts'
import { Configuration, settingsReader, writeConfiguration } from './features/settings/index.ts'
import { type SystemParts, systemReader, watchHealth } from './features/system/index.ts'
import { refreshTemplates, TemplateLibrary, templateReader } from './features/templates/index.ts'
import { assignments, userReader, users } from './features/users/index.ts'
import { volumeReader } from './features/volumes/index.ts'
import { docsPage, serveDocs } from './http/docs.ts'
import { openApiOf } from './http/openapi.ts'
import { httpServer } from './http/server.ts'
import { Database } from './store/database.ts'
import { openVault } from './store/vault.ts'

export const version: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version

/** Where the agent's own log is kept. */
export const logFileOf = (dataPath: string): string => join(dataPath, 'logs', 'agent.log')

export interface AgentOptions {
  loaded: Pick<LoadedConfig, 'config' | 'file' | 'fromEnv'>
  env: NodeJS.ProcessEnv
  log: FastifyBaseLogger
  startedAt?: number
  /** For tests: a feature beside those of the product, and answers checked against their schemas. */
  extra?: { operations: readonly Operation[]; kinds: readonly unknown[]; tables?: readonly AnyTable[] }
  checkAnswers?: boolean
}

export interface Agent {
  app: FastifyInstance
  door: Door
  db: Database
  configuration: Configuration
  close(): Promise<void>
}

const STOP_LIMIT_MS = 10_000
const HOUR_MS = 3_600_000

export async function openAgent(options: AgentOptions): Promise<Agent> {
  const opened = new Opened()
  try {
    return await wire(options, opened)
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** What was opened, in order: closed in reverse, also when the start fails halfway. */
class Opened {
  readonly #closers: (() => unknown)[] = []
  #closing: Promise<void> | undefined

  add(closer: () => unknown): void {
    this.#closers.push(closer)
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      for (const closer of this.#closers.toReversed()) await closer()
    })()
    return this.#closing
  }
}

async function wire(options: AgentOptions, opened: Opened): Promise<Agent> {
  const { loaded, env, log, extra, startedAt = performance.now() } = options
  const { config } = loaded
  const events = new EventBus()
  const configuration = new Configuration(loaded, env, events)
  const settings = () => configuration.current
  let { level } = config.log
  events.on('config.changed', () => {
    if (settings().log.level === level) return
    level = settings().log.level
    log.level = level
  })

  const db = Database.open(config.data_path)
  opened.add(() => db.close())
  const vault = openVault(config.data_path, db)
  const identity = new Identity(db, vault, () => ({
    apiKeys: settings().auth.api_keys,
    jwtSecret: settings().auth.jwt_secret || undefined,
    tokenTtl: settings().auth.token_ttl,
  }))
  opened.add(() => identity.close())
  const address = engineAddress(config.engine.socket, env)
  const engine = openEngine(address)
  opened.add(() => engine.close())
  const mirror = mirrorEngine(engine)
  opened.add(() => mirror.close())
  const files = await openDeploymentFiles(config.deployments_path)
  const compose = openCompose(
    {
      path: env.PATH ?? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      home: config.data_path,
      dockerHost: dockerHost(parseAddress(address)),
    },
    modelMemory(db, vault),
  )
  const folders = new DeploymentFolders(config.deployments_path, files, compose, error =>
    log.warn({ err: error }, 'a deployment folder'),
  )
  opened.add(() => folders.close())
  await folders.open()
  const deploying = new Set<string>()
  const overview = new Overview(mirror, deploying)
  const logs = new DeploymentLogs({ folders, files, engine, mirror })
  const stats = new ContainerStats(engine)
  const templates = new TemplateLibrary({
    builtin: () => openFiles(fileURLToPath(new URL('../templates', import.meta.url))),
    local: async () => (existsSync(config.templates_path) ? openFiles(config.templates_path) : undefined),
  })

  const credentials = sealedCredentials(vault)
  const credentialParts = { db, table: credentials, usedBy: [registriesUsing(db)], login: registryLogin }

  const operations = [...allOperations, ...(extra?.operations ?? [])]
  checkOperations(operations)
  if (options.checkAnswers) checkExamples(operations)
  const openapi = lazily(() => Object.freeze(openApiOf(operations, version)))
  const authEnabled = () => settings().auth.enabled

  const readers: ReaderFactories = {
    auth: () => authReader(identity, authEnabled),
    users: viewer => userReader(db, viewer),
    apikeys: viewer => apiKeyReader(db, viewer),
    audit: viewer => auditReader(db, viewer),
    plans: viewer => planReader(door, viewer),
    jobs: viewer => jobReader(db, door, viewer),
    settings: viewer => settingsReader(configuration, viewer),
    deployments: viewer =>
      deploymentReader(
        {
          db,
          folders,
          compose,
          mirror,
          overview,
          deploying,
          files,
          logs,
          stats,
          readySeconds: () => settings().deployments.ready_timeout,
        },
        viewer,
      ),
    containers: viewer => containerReader({ engine, mirror, folders }, viewer),
    images: viewer => imageReader({ mirror, folders }, viewer),
    volumes: viewer => volumeReader({ mirror, folders }, viewer),
    networks: viewer => networkReader({ mirror, folders }, viewer),
    credentials: viewer => credentialReader(credentialParts, viewer),
    registries: viewer => registryReader(db, credentialReader(credentialParts, viewer), viewer),
    system: viewer => systemReader(system, viewer),
    templates: () => templateReader(templates),
  }
  const health = await watchHealth({ version, startedAt, dataPath: config.data_path, engine: mirror, store: db })
  opened.add(() => health.close())
  const system: SystemParts = {
    version,
    health,
    mirror,
    host: watchHost(config.data_path),
    projects: async () => new Map((await folders.all()).map(({ name, model }) => [name, model?.project ?? name])),
    logSources: [{ id: 'agent', name: 'The agent', type: 'file', path: logFileOf(config.data_path) }],
    openapi,
    docs: docsPage,
  }
  const world: World = {
    db,
    configuration,
    engine,
    mirror,
    compose,
    files,
    deploying,
    templates,
    registryAuth: registryAuthOf(db, credentials),
    jobs: { cancel: (id, reason) => door.cancel(id, reason) },
  }
  const tables = [
    users,
    assignments,
    apiKeys,
    trusted,
    credentials,
    registries,
    ...(extra?.tables ?? []),
  ] as unknown as AnyTable[]
  const kinds = [
    ...recordKinds(tables, db),
    auditCleanupStep,
    planDiscardStep,
    cancelJob,
    writeConfiguration,
    ...composeKinds,
    ...fileKinds,
    ...engineKinds,
    refreshTemplates,
    ...(extra?.kinds ?? []),
  ]
  const door: Door = new Door({
    db,
    vault,
    operations,
    kinds,
    world,
    readers,
    events,
    planLifetimeSeconds: () => settings().plans.ttl_seconds,
    refresh: actor => identity.refresh(actor),
    report: (message, details) => log.warn(details, message),
    checkAnswers: options.checkAnswers ?? false,
  })
  if (door.hasUnfinished()) await mirror.ready
  await door.recover()

  let planLifetime = settings().plans.ttl_seconds
  events.on('config.changed', () => {
    door.plans.sweep(planLifetime)
    planLifetime = settings().plans.ttl_seconds
  })
  const sweep = () => {
    door.sweep(new Date(Date.now() - settings().jobs.retention_days * 24 * HOUR_MS))
    void removeBefore(db, new Date(Date.now() - settings().audit.retention_days * 24 * HOUR_MS)).catch(error =>
      log.warn(error),
    )
  }
  const sweeping = setInterval(sweep, HOUR_MS).unref()
  opened.add(() => clearInterval(sweeping))

  const { tls } = config.api
  const app = httpServer({
    door,
    operations,
    log,
    identify: token => identity.identify(token),
    authEnabled,
    settings: {
      maxBodyBytes: config.api.max_body_bytes,
      trustProxy: config.api.trust_proxy,
      cors: () => ({ enabled: settings().api.enable_cors, origins: settings().api.allowed_origins }),
      ...(tls.cert && tls.key
        ? { tls: { cert: readFileSync(tls.cert, 'utf8'), key: readFileSync(tls.key, 'utf8') } }
        : {}),
    },
  })
  opened.add(() => Promise.all([app.close(), door.close(STOP_LIMIT_MS)]))
  serveDocs(app)

  return { app, door, db, configuration, close: () => opened.close() }
}

async function openDeploymentFiles(folder: string) {
  await mkdir(folder, { recursive: true })
  const files = await openFiles(folder)
  await files.sweepLeftovers()
  return files
}

function lazily<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}
