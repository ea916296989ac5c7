// What a network is in answers, and what can be asked about networks: those of the engine that the caller may see.

import { networkInterfaces } from 'node:os'
import type { NetworkEntry } from '../../adapters/container-engine/entries.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import { fail, notFound } from '../../core/failure.ts'
import type { Viewer } from '../../core/operation.ts'
import { requireScope, sees } from '../../core/permission.ts'
import { Nullable, Type } from '../../core/schema.ts'
import { type Belonging, belongings, type DeploymentFolders } from '../deployments/index.ts'
import { overlap, type Subnet, subnetOf } from './subnet.ts'

export const EngineName = Type.String({
  pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$',
  'x-hint': 'must be 2 to 128 of letters, digits, _ . and -, and start with a letter or digit',
})

export const Labels = Type.Record(
  Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9_./-]{0,127}$' }),
  Type.String({ maxLength: 4096, pattern: '^[^\\u0000-\\u001f]*$', 'x-hint': 'must not hold control characters' }),
  { additionalProperties: false, maxProperties: 100, default: {} },
)

export const Network = Type.Object({
  id: Type.String(),
  name: Type.String(),
  driver: Type.String(),
  scope: Type.String(),
  internal: Type.Boolean(),
  attachable: Type.Boolean(),
  subnets: Type.Array(Type.String()),
  containers: Type.Array(Type.String({ description: 'A container, running or not' })),
  deployment: Nullable(Type.String()),
  labels: Type.Record(Type.String(), Type.String()),
})

declare module '../../core/operation.ts' {
  interface Readers {
    networks: NetworkReader
  }
}

export interface NetworkParts {
  mirror: EngineMirror
  folders: DeploymentFolders
}

export type NetworkReader = ReturnType<typeof networkReader>

const predefined = ['bridge', 'host', 'none', 'ingress', 'docker_gwbridge', 'podman']

export function networkReader({ mirror, folders }: NetworkParts, { actor }: Viewer) {
  const usersOf = ({ id, name }: NetworkEntry) =>
    [...mirror.containers.values()].filter(({ networks }) =>
      networks.some(network => (network.id ? network.id === id : network.name === name)),
    )
  const shown = (network: NetworkEntry, belonging: Belonging) => ({
    id: network.id,
    name: network.name,
    driver: network.driver,
    scope: network.scope,
    internal: network.internal,
    attachable: network.attachable,
    subnets: [...network.subnets],
    containers: usersOf(network)
      .filter(one => sees(actor, belonging.ofContainer(one)))
      .map(({ name }) => name)
      .sort(),
    deployment: belonging.ofLabels(network.labels),
    labels: { ...network.labels },
  })
  const visible = (belonging: Belonging) =>
    [...mirror.networks.values()].filter(({ labels }) => sees(actor, belonging.ofLabels(labels)))

  return {
    async list() {
      const belonging = await belongings(folders, mirror)
      return visible(belonging)
        .map(network => shown(network, belonging))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
    },

    async detail(asked: string) {
      const belonging = await belongings(folders, mirror)
      return shown(find(visible(belonging), asked), belonging)
    },

    async deploymentOf(asked: string): Promise<string | null> {
      const belonging = await belongings(folders, mirror)
      const found = visible(belonging).find(({ id, name }) => id === asked || name === asked)
      return belonging.ofLabels(found?.labels ?? {})
    },

    /** Free to be taken: neither there, nor the name of one that a deployment makes for itself when it starts. */
    async requireFree(name: string): Promise<void> {
      const belonging = await belongings(folders, mirror)
      if (predefined.includes(name) || [...mirror.networks.values()].some(network => network.name === name)) {
        fail('ALREADY_EXISTS', `There is a network "${name}" already. Choose another name.`)
      }
      if (belonging.referringTo('network', name).some(({ external }) => !external)) {
        fail(
          'CONFLICT',
          `"${name}" is the name of a network that a deployment makes when it starts. Choose another name.`,
        )
      }
    },

    /** A subnet that another network or the host itself has would take their traffic. */
    requireApart(subnet: Subnet, text: string): void {
      const others = [...mirror.networks.values()].flatMap(({ subnets }) => subnets)
      const own = Object.values(networkInterfaces()).flatMap(list => (list ?? []).flatMap(({ cidr }) => cidr ?? []))
      const taken = [...others, ...own].find(other => {
        const parsed = subnetOf(other)
        return parsed !== undefined && overlap(parsed, subnet)
      })
      if (taken !== undefined)
        fail('CONFLICT', `The subnet ${text} overlaps with ${taken}, which is in use. Choose another one.`)
    },

    /** On a network of a deployment it needs level write there, and no container may be on it. */
    async removable(asked: string): Promise<{ id: string; name: string }> {
      const belonging = await belongings(folders, mirror)
      const network = find(visible(belonging), asked)
      const { id, name, labels } = network
      if (predefined.includes(name))
        fail('CONFLICT', `Network "${name}" belongs to the engine itself and cannot be deleted.`)
      const deployment = belonging.ofLabels(labels)
      if (deployment !== null) requireScope(actor, [{ deployment, level: 'write' }])
      if (usersOf(network).length > 0) {
        const { containers } = shown(network, belonging)
        const words = containers.length > 0 ? containers.join(', ') : 'a container of another deployment'
        fail('IN_USE', `Network "${name}" is in use by ${words}. Remove that first.`, containers)
      }
      const external = belonging.referringTo('network', name).filter(one => one.external)
      if (external.length > 0) {
        const known = external.map(one => one.deployment).filter(one => sees(actor, one))
        const words = known.length > 0 ? known.join(', ') : 'another deployment'
        fail('IN_USE', `The compose file of ${words} uses network "${name}". Change that first.`, known)
      }
      return { id, name }
    },
  }
}

/** Compose knows its own by these: who could set them could pass something off as part of a deployment. */
export function requireOwnLabels(labels: Readonly<Record<string, string>>): void {
  const foreign = Object.keys(labels).find(name => /^(com|io|org)\.docker\./i.test(name))
  if (foreign === undefined) return
  fail('VALIDATION_FAILED', `The label "${foreign}" is one of the engine's own. Choose another name.`, [
    { path: `labels.${foreign}`, message: 'is reserved' },
  ])
}

function find(networks: readonly NetworkEntry[], asked: string): NetworkEntry {
  const exact = networks.filter(({ id, name }) => id === asked || name === asked)
  const fitting =
    exact.length > 0 || !/^[0-9a-f]{4,64}$/.test(asked) ? exact : networks.filter(({ id }) => id.startsWith(asked))
  if (fitting.length > 1) {
    const candidates = fitting.map(({ id, name }) => ({ id, name }))
    fail('CONFLICT', `"${asked}" fits ${fitting.length} networks. Give the id.`, candidates)
  }
  return fitting[0] ?? notFound('network', asked)
}
