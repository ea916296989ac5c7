// What a deployment is in at this moment: its folder and the engine's containers, joined. Pure, so that it can be read as a table.

import type { ComposeModel, ComposeService } from '../../adapters/compose/model.ts'
import type { ContainerEntry, ImageEntry } from '../../adapters/container-engine/entries.ts'
import type { Folder } from './folders.ts'

export const statuses = ['running', 'partial', 'stopped', 'error', 'deploying', 'invalid', 'unknown'] as const
export const serviceStatuses = ['running', 'exited', 'restarting', 'paused', 'created', 'dead', 'missing'] as const
export const healths = ['healthy', 'unhealthy', 'starting', 'none'] as const

export type DeploymentStatus = (typeof statuses)[number]
export type ServiceStatus = (typeof serviceStatuses)[number]
export type Health = (typeof healths)[number]

export interface EngineView {
  up: boolean
  /** Of this project, as far as they were made in this folder. */
  containers(project: string, folder: string): readonly ContainerEntry[]
  imageOf(reference: string): ImageEntry | undefined
}

export interface ObservedService {
  name: string
  status: ServiceStatus
  health: Health
  image: string
  containers: ContainerEntry[]
  replicas: number
  inSync: boolean
}

export interface Observed {
  folder: Folder
  status: DeploymentStatus
  services: ObservedService[]
  /** All containers of the project, those of services that are no longer in the file too. */
  containers: ContainerEntry[]
}

/** How a container ends when it is told to, which is no failure of its own. */
const STOPPED_CODES = [0, 130, 137, 143]

export function observe(folder: Folder, engine: EngineView, deploying: boolean): Observed {
  const { model } = folder
  const containers = model ? engine.containers(model.project, folder.path).filter(one => !one.compose?.oneoff) : []
  const services = model
    ? Object.entries(model.services).map(([name, service]) => observeService(name, service, model, containers, engine))
    : []
  const status = !model ? 'invalid' : !engine.up ? 'unknown' : deploying ? 'deploying' : statusOf(services)
  return { folder, status, services, containers }
}

export function replicasOf(service: ComposeService): number {
  return service.deploy?.replicas ?? service.scale ?? 1
}

export function containerName(model: ComposeModel, service: string, number: number): string {
  return model.services[service]?.container_name ?? `${model.project}-${service}-${number}`
}

/** A one-shot that did its work. */
export const isDone = (one: ContainerEntry): boolean =>
  one.state === 'exited' && one.exitCode === 0 && (one.restartPolicy === 'no' || one.restartPolicy === 'on-failure')

/** Failed by itself: it crashed, loops, or says it is ill. */
export function isFailing(one: ContainerEntry): boolean {
  if (one.state === 'restarting' || one.state === 'dead' || one.health === 'unhealthy') return true
  return one.state === 'exited' && (one.oomKilled || !STOPPED_CODES.includes(one.exitCode ?? 0))
}

function observeService(
  name: string,
  service: ComposeService,
  model: ComposeModel,
  all: readonly ContainerEntry[],
  engine: EngineView,
): ObservedService {
  const containers = all
    .filter(one => one.compose?.service === name)
    .sort((a, b) => (a.compose?.number ?? 0) - (b.compose?.number ?? 0))
  const image = service.image ?? `${model.project}-${name}`
  const current = engine.imageOf(image)
  const replicas = replicasOf(service)
  const hash = model.hashes.get(name)
  // The hash of a service that shares with others cannot always be foretold.
  const same = (one: ContainerEntry) =>
    (hash === undefined || one.compose?.configHash === hash) && (!current || one.imageId === current.id)
  return {
    name,
    status: containers.length === 0 ? 'missing' : worst(containers),
    health: healthOf(containers),
    image,
    containers,
    replicas,
    inSync: containers.length === replicas && containers.every(same),
  }
}

function statusOf(services: readonly ObservedService[]): DeploymentStatus {
  const containers = services.flatMap(service => service.containers)
  if (containers.some(isFailing)) return 'error'
  const wanted = services.filter(service => service.replicas > 0)
  const works = (service: ObservedService) =>
    service.containers.filter(one => one.state === 'running' || isDone(one)).length >= service.replicas
  if (!containers.some(one => one.state === 'running' || one.state === 'paused')) {
    return wanted.length > 0 && wanted.every(works) ? 'running' : 'stopped'
  }
  return wanted.every(works) ? 'running' : 'partial'
}

const byGravity: readonly ServiceStatus[] = ['dead', 'restarting', 'exited', 'created', 'paused', 'running']

function worst(containers: readonly ContainerEntry[]): ServiceStatus {
  const states = containers.map(one => (one.state === 'removing' ? 'dead' : one.state))
  return byGravity.find(state => states.includes(state as never)) ?? 'missing'
}

function healthOf(containers: readonly ContainerEntry[]): Health {
  const all = containers.filter(one => one.state === 'running').map(one => one.health)
  return (['unhealthy', 'starting', 'healthy'] as const).find(health => all.includes(health)) ?? 'none'
}
