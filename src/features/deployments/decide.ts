// What has to happen so that a deployment becomes what its files say: desired and observed in, expectations out. Pure.

import { type ComposeModel, followedBy, sharedBy } from '../../adapters/compose/model.ts'
import type { Expected, Up } from '../../adapters/compose/steps.ts'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import { containerName, type EngineView, isDone, replicasOf } from './observe.ts'

export interface Existing {
  networks: ReadonlySet<string>
  volumes: ReadonlySet<string>
}

/** Which containers, networks and volumes `up` will touch, and why; only these services, or all. */
export function expectUp(
  model: ComposeModel,
  containers: readonly ContainerEntry[],
  engine: Pick<EngineView, 'imageOf'>,
  existing: Existing,
  only: readonly string[] | null,
): Expected[] {
  const wanted = only ? withDependencies(model, only) : Object.keys(model.services)
  const replaced = new Set<string>()
  const found: Expected[] = []
  for (const name of followersLast(model, wanted)) {
    const expected = expectService(model, name, containers, engine, replaced)
    if (expected.some(one => one.action === 'replace')) replaced.add(name)
    found.push(...expected)
  }
  const orphans = only ? [] : containers.filter(one => one.compose && !(one.compose.service in model.services))
  return [
    ...missing(model, existing, wanted),
    ...found,
    ...orphans.map(
      (one): Expected => ({
        type: 'container',
        id: one.name,
        action: 'delete',
        cause: 'its service is no longer in the compose file',
      }),
    ),
  ]
}

/** Containers and networks that `down` removes. */
export function expectDown(
  model: ComposeModel | null,
  containers: readonly ContainerEntry[],
  existing: Existing,
): Expected[] {
  const networks = Object.values(model?.networks ?? {}).flatMap(one =>
    one.name && !one.external && existing.networks.has(one.name) ? [one.name] : [],
  )
  return [
    ...containers.map(
      (one): Expected => ({ type: 'container', id: one.name, action: 'delete', cause: 'the deployment goes' }),
    ),
    ...networks.map((id): Expected => ({ type: 'network', id, action: 'delete', cause: 'the deployment goes' })),
  ]
}

/** How many containers of which service must be seen to run. */
export function awaitedOf(model: ComposeModel, only: readonly string[] | null): Up['awaited'] {
  const names = only ? withDependencies(model, only) : Object.keys(model.services)
  return Object.fromEntries(names.map(name => [name, replicasOf(model.services[name] ?? {})]))
}

/** Images that are not there and cannot be built. */
export function imagesToPull(
  model: ComposeModel,
  engine: Pick<EngineView, 'imageOf'>,
  only: readonly string[] | null,
): string[] {
  const names = only ? withDependencies(model, only) : Object.keys(model.services)
  const images = names.flatMap(name => {
    const service = model.services[name]
    return service?.image && !service.build && !engine.imageOf(service.image) ? [service.image] : []
  })
  return [...new Set(images)]
}

function expectService(
  model: ComposeModel,
  name: string,
  containers: readonly ContainerEntry[],
  engine: Pick<EngineView, 'imageOf'>,
  replaced: ReadonlySet<string>,
): Expected[] {
  const service = model.services[name] ?? {}
  const count = replicasOf(service)
  const own = containers
    .filter(one => one.compose?.service === name)
    .sort((a, b) => (a.compose?.number ?? 0) - (b.compose?.number ?? 0))
  const image = engine.imageOf(service.image ?? `${model.project}-${name}`)
  const sharedWith = sharedBy(service).find(other => replaced.has(other))
  const followed = followedBy(model, name).find(other => replaced.has(other))
  const causeToFollow = followed && `it depends on ${followed}, which is replaced`
  const causeToReplace = (one: ContainerEntry): string | undefined => {
    if (sharedWith !== undefined) {
      const what = service.network_mode === `service:${sharedWith}` ? 'the network of' : 'with'
      return `it shares ${what} ${sharedWith}, which is replaced`
    }
    if (causeToFollow && model.followers === 'replace') return causeToFollow
    if (one.compose?.configHash !== model.hashes.get(name)) return 'its configuration changed'
    return image && one.imageId !== image.id ? 'its image changed' : undefined
  }
  const kept = own.slice(0, count).flatMap((one): Expected[] => {
    const causeOfReplacing = causeToReplace(one)
    if (causeOfReplacing) return [{ type: 'container', id: one.name, action: 'replace', cause: causeOfReplacing }]
    const cause = one.state === 'running' || isDone(one) ? causeToFollow : `it is ${one.state}`
    return cause ? [{ type: 'container', id: one.name, action: 'run', cause }] : []
  })
  const numbers = freeNumbers(own, count)
  return [
    ...kept,
    ...numbers.map(
      (number): Expected => ({
        type: 'container',
        id: containerName(model, name, number),
        action: 'create',
        cause: 'it is not there',
      }),
    ),
    ...own
      .slice(count)
      .map(
        (one): Expected => ({ type: 'container', id: one.name, action: 'delete', cause: `${count} of it are wanted` }),
      ),
  ]
}

function freeNumbers(own: readonly ContainerEntry[], count: number): number[] {
  const taken = new Set(own.map(one => one.compose?.number))
  const free: number[] = []
  for (let number = 1; own.length + free.length < count; number++) if (!taken.has(number)) free.push(number)
  return free
}

function missing(model: ComposeModel, existing: Existing, services: readonly string[]): Expected[] {
  const used = (kind: 'networks' | 'volumes') =>
    new Set(
      services.flatMap(name => {
        const service = model.services[name]
        if (kind === 'networks') return Object.keys(service?.networks ?? {})
        return (service?.volumes ?? []).flatMap(one => (one.type === 'volume' && one.source ? [one.source] : []))
      }),
    )
  const absent = (kind: 'networks' | 'volumes', type: 'network' | 'volume') =>
    Object.entries(model[kind]).flatMap(([key, { name = `${model.project}_${key}`, external }]): Expected[] =>
      external || existing[kind].has(name) || !used(kind).has(key)
        ? []
        : [{ type, id: name, action: 'create', cause: 'it is not there' }],
    )
  return [...absent('networks', 'network'), ...absent('volumes', 'volume')]
}

/** Compose starts what a service depends on as well. */
function withDependencies(model: ComposeModel, names: readonly string[]): string[] {
  const found = new Set<string>()
  const add = (name: string) => {
    if (found.has(name) || !model.services[name]) return
    found.add(name)
    for (const other of Object.keys(model.services[name].depends_on ?? {})) add(other)
    for (const other of sharedBy(model.services[name])) add(other)
  }
  for (const name of names) add(name)
  return [...found]
}

/** A service comes after those that take it with them. Compose refuses files in which they go round in a circle. */
function followersLast(model: ComposeModel, names: readonly string[]): string[] {
  const depth = (name: string): number => {
    const leaders = [...sharedBy(model.services[name] ?? {}), ...followedBy(model, name)]
    return Math.max(0, ...leaders.map(other => 1 + depth(other)))
  }
  return names.toSorted((a, b) => depth(a) - depth(b))
}
