// What can be asked about deployments: folders and engine, joined, as the caller may see them.

import { join } from 'node:path'
import type { Compose, ComposeModel } from '../../adapters/compose/compose.ts'
import { sharedBy } from '../../adapters/compose/model.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import { type Files, placeOf, sha256 } from '../../adapters/files/index.ts'
import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { levelOn, sees } from '../../core/permission.ts'
import { REDACTED } from '../../core/schema.ts'
import type { Step } from '../../core/step.ts'
import type { Database } from '../../store/database.ts'
import { envVars } from './env-file.ts'
import { type DeploymentFolders, type Folder, META_FILE } from './folders.ts'
import { logSources } from './log-sources.ts'
import type { DeploymentLogs, LogQuery } from './logs.ts'
import { isMadeIn } from './made-in.ts'
import { type Observed, observe } from './observe.ts'
import { type Listed, listed, namesakes, type Overview, withNamesake } from './overview.ts'
import { trusted } from './records.ts'
import type { ContainerStats } from './stats.ts'
import { judged } from './trust.ts'

declare module '../../core/operation.ts' {
  interface Readers {
    deployments: DeploymentReader
  }
}

export interface DeploymentParts {
  db: Database
  folders: DeploymentFolders
  compose: Compose
  mirror: EngineMirror
  overview: Overview
  deploying: ReadonlySet<string>
  files: Files
  logs: DeploymentLogs
  stats: ContainerStats
  readySeconds(): number
}

export type DeploymentReader = ReturnType<typeof deploymentReader>

export function deploymentReader(parts: DeploymentParts, { actor, noteFile }: Viewer) {
  const { folders, compose, mirror, deploying } = parts
  const { engine } = parts.overview
  const look = (folder: Folder): Observed => observe(folder, engine, deploying.has(folder.name))

  const known = async (name: string): Promise<Folder> => {
    const folder = sees(actor, name) ? await folders.get(name) : undefined
    return folder && !folder.removed ? folder : notFound('deployment', name)
  }

  const requireEngine = (): void => {
    if (mirror.state === 'down') fail('ENGINE_UNAVAILABLE', mirror.reason ?? 'The container engine does not answer.')
  }

  /** Compose acts on all containers of a project name, whoever made them. */
  const requireOwn = (project: string, path: string): void => {
    const strangers = mirror.project(project).filter(one => !isMadeIn(one, path))
    if (strangers.length === 0) return
    fail(
      'CONFLICT',
      `Containers of a project "${project}" are there already and were made elsewhere: ${strangers.map(one => one.name).join(', ')}. Choose another name, or remove them.`,
    )
  }

  /** With the hashes that containers have when their services share with others. */
  const withHashes = async (observed: Observed): Promise<ComposeModel> => {
    const model = modelOf(observed)
    return { ...model, hashes: await compose.hashesWith(observed.folder.path, firstsOf(observed.services)) }
  }

  /** Exact about services that share with others too; while Compose cannot say, as far as the file alone tells. */
  const lookClosely = async (folder: Folder): Promise<Observed> => {
    const observed = look(folder)
    if (!Object.values(folder.model?.services ?? {}).some(service => sharedBy(service).length > 0)) return observed
    return look({ ...folder, model: await withHashes(observed).catch(() => folder.model) })
  }

  const volumesOf = (project: string): string[] =>
    [...mirror.volumes.values()]
      .filter(volume => volume.labels['com.docker.compose.project'] === project)
      .map(volume => volume.name)

  /** The project of containers with the same services and volumes, whose folder below ours is no longer there. */
  const movedFrom = async (folder: Folder, model: ComposeModel): Promise<string | undefined> => {
    // A folder that was made after those containers is no moved one.
    const since = Math.min(Date.parse(folder.createdAt), Date.parse(folder.updatedAt))
    const services = Object.keys(model.services).sort().join()
    for (const one of mirror.containers.values()) {
      const { project, workingDir } = one.compose ?? { project: '', workingDir: '' }
      if (!workingDir.startsWith(`${folders.root}/`) || project === model.project || since > Date.parse(one.createdAt))
        continue
      if (volumesOf(project).length === 0) continue
      if (await folders.get(workingDir.slice(folders.root.length + 1))) continue
      const theirs = new Set(mirror.project(project).map(other => other.compose?.service))
      if ([...theirs].sort().join() === services) return project
    }
    return undefined
  }

  return {
    engine,
    readySeconds: parts.readySeconds(),

    /** At once, unless a folder is being read. */
    list(): readonly Listed[] | Promise<readonly Listed[]> {
      const { known } = folders
      return known ? parts.overview.of(known, actor) : folders.all().then(all => parts.overview.of(all, actor))
    },

    async detail(name: string) {
      const observed = withNamesake(await lookClosely(await known(name)), namesakes(await folders.all()))
      const mayReadValues = levelOn(actor, name) !== 'read'
      return detailed(observed, mayReadValues)
    },

    /**
     * Everything a decision needs; what it read is noted as the files the plan depends on. Right after the start it waits
     * until the engine was asked: a decision on what is not known yet would be a guess.
     */
    async observed(name: string): Promise<Observed> {
      const folder = await known(name)
      await mirror.ready
      note(folder, noteFile)
      return withNamesake(look(folder), namesakes(await folders.all()))
    },

    /** For creating: a folder of that name, whoever may see it, and whether it is only marked as removed. */
    async occupant(name: string): Promise<Folder | undefined> {
      const folder = await folders.get(name)
      await mirror.ready
      if (folder) note(folder, noteFile)
      return folder
    },

    async requireKnown(name: string): Promise<void> {
      await known(name)
    },

    readLogs: async (name: string, query: LogQuery, signal: AbortSignal) =>
      parts.logs.read(await known(name), query, signal),
    followLogs: async (name: string, query: LogQuery, signal: AbortSignal) =>
      parts.logs.follow(await known(name), query, signal),

    async logSources(name: string) {
      const { model, path, metaText } = await known(name)
      return logSources(model, path, metaText)
    },

    async stats(name: string, signal: AbortSignal) {
      const { containers } = look(await known(name))
      requireEngine()
      return parts.stats.of(containers, signal)
    },

    /** A path that leaves the folder of the deployment, also through a link, is refused. */
    async requireInside(name: string, path: string): Promise<void> {
      const there = await parts.files.stat(`${name}/${placeOf(path).path}`)
      if (there?.type !== 'link') return
      fail('VALIDATION_FAILED', `"${path}" is a link, which could leave the deployment.`, [
        { path: 'path', message: 'is a link' },
      ])
    },

    pathOf: (name: string): string => join(folders.root, name),

    /** What Compose would make of these texts, if this actor may use them; nothing is written. */
    judge(
      folder: Folder,
      texts: { composeText: string; envText: string | null },
      observed?: Observed,
    ): Promise<{ model: ComposeModel; trust: Step[] }> {
      const containers = firstsOf(observed?.services ?? [])
      const { path, composeFile } = folder
      const isSame = texts.composeText === folder.composeText && texts.envText === folder.envText
      return judged({ db: parts.db, mirror, others: () => folders.all() }, actor, {
        folder,
        exists: folder.revision !== '',
        ...texts,
        model: () =>
          observed && isSame
            ? withHashes(observed)
            : compose.candidate({ folder: path, composeFile, ...texts, containers }),
      })
    },

    trustIn: (name: string) => trusted.get(parts.db, { deployment_name: name }),

    requireEngine,
    requireOwn,

    modelOf,

    existing: () => ({
      networks: new Set([...mirror.networks.values()].map(network => network.name)),
      volumes: new Set([...mirror.volumes.values()].map(volume => volume.name)),
    }),

    volumesOf,

    /**
     * Compose names volumes after the project, and the project after the folder: another name means new, empty volumes.
     * A deployment that has data keeps its project name, whoever moves its folder.
     */
    async requireSameProject({ folder }: Pick<Observed, 'folder'>, model: ComposeModel): Promise<void> {
      requireOwn(model.project, folder.path)
      const former = folder.model?.project
      const hasData = (project: string) => mirror.project(project).length > 0 || volumesOf(project).length > 0
      if (former !== undefined && former !== model.project && hasData(former)) {
        fail(
          'CONFLICT',
          `The project name would change from "${former}" to "${model.project}", and its containers and volumes would be left behind. Keep \`name: ${former}\`, or delete the deployment first.`,
        )
      }
      const isNew = folder.revision === '' || hasData(model.project)
      const moved = isNew ? undefined : await movedFrom(folder, model)
      if (moved === undefined) return
      fail(
        'CONFLICT',
        `This folder seems to have been moved: the containers of project "${moved}" have its services, and their folder is gone. Starting it as "${model.project}" would give it new, empty volumes. Write \`name: ${moved}\` into its compose file to keep its data, or remove those containers.`,
      )
    },
  }
}

/** The id of the first container of each service, for those that share with it. */
function firstsOf(services: Observed['services']): ReadonlyMap<string, string> {
  return new Map(services.flatMap(one => (one.containers[0] ? [[one.name, one.containers[0].id] as const] : [])))
}

function modelOf({ folder }: Observed): ComposeModel {
  return folder.model ?? fail('COMPOSE_INVALID', folder.error ?? 'The compose file is not valid.')
}

function detailed(observed: Observed, mayReadValues: boolean) {
  const { folder, services } = observed
  return {
    ...listed(observed),
    services: services.map(one => ({
      name: one.name,
      status: one.status,
      health: one.health,
      image: one.image,
      container_ids: one.containers.map(({ id }) => id),
      ports: one.containers.flatMap(({ ports }) =>
        ports.map(port => ({
          host_ip: port.hostIp,
          host_port: port.hostPort,
          container_port: port.containerPort,
          protocol: port.protocol,
        })),
      ),
      replicas: one.replicas,
      in_sync: one.inSync,
    })),
    compose_file: folder.composeFile,
    compose_content: folder.composeText,
    env_vars: envVars(folder.envText).map(({ key, value }) => ({ key, value: mayReadValues ? value : REDACTED })),
    error: folder.error,
  }
}

function note(folder: Folder, noteFile: Viewer['noteFile']): void {
  const of = (text: string | null) => (text === null ? null : sha256(text))
  noteFile(`${folder.name}/${folder.composeFile}`, of(folder.composeText))
  noteFile(`${folder.name}/.env`, of(folder.envText))
  noteFile(`${folder.name}/${META_FILE}`, of(folder.metaText))
}
