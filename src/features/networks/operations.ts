// Networks: listed, created, and deleted when no container is on them.

import { createNetwork, removeNetwork } from '../../adapters/container-engine/steps.ts'
import { fail } from '../../core/failure.ts'
import { command, query } from '../../core/operation.ts'
import { type Actor, isAdministrator } from '../../core/permission.ts'
import { Nothing, Type } from '../../core/schema.ts'
import { EngineName, Labels, Network, requireOwnLabels } from './network.ts'
import { holds, isPrivate, parseSubnet, type Subnet } from './subnet.ts'

const resource = { type: 'network', id: ({ name }: { name: string }) => name }
const engineFails = ['ENGINE_UNAVAILABLE', 'UPSTREAM_FAILED', 'TIMEOUT'] as const

export const list = query('networks.list', {
  summary: 'List networks',
  http: { method: 'GET', path: '/api/networks' },
  permission: 'networks:read',
  input: Type.Object({}),
  output: Type.Array(Network),
  example: {},
  fails: ['ENGINE_UNAVAILABLE'],
  read: ({ networks }) => networks.list(),
})

export const create = command('networks.create', {
  summary: 'Create a network',
  http: { method: 'POST', path: '/api/networks', status: 201 },
  permission: 'networks:write',
  resource,
  // Two subnets asked for at once must not overlap either.
  locks: () => ['networks'],
  input: Type.Object({
    name: EngineName,
    driver: Type.Optional(
      Type.String({
        pattern: '^[a-zA-Z0-9][a-zA-Z0-9_./:-]{0,127}$',
        default: 'bridge',
        description: 'Any but `bridge` is for administrators',
        'x-hint': 'must be the name of a network driver',
      }),
    ),
    internal: Type.Optional(Type.Boolean({ default: false, description: 'No way outside' })),
    attachable: Type.Optional(Type.Boolean({ default: false })),
    subnet: Type.Optional(
      Type.String({ maxLength: 18, description: 'IPv4, such as 10.20.0.0/24; the engine chooses one when left out' }),
    ),
    gateway: Type.Optional(Type.String({ maxLength: 15, description: 'An address of the subnet' })),
    labels: Type.Optional(Labels),
  }),
  output: Network,
  example: { name: 'fairlead-test-new', internal: true, subnet: '10.213.7.0/24', gateway: '10.213.7.1' },
  fails: ['ALREADY_EXISTS', 'CONFLICT', ...engineFails],
  async decide({ networks, actor }, { subnet, gateway, ...asked }) {
    const { name, driver = 'bridge', internal = false, attachable = false, labels = {} } = asked
    if (driver !== 'bridge' && !isAdministrator(actor)) {
      fail('FORBIDDEN', `Only an administrator can make a network with the driver "${driver}".`, [
        { path: 'driver', message: 'is for administrators' },
      ])
    }
    requireOwnLabels(labels)
    const parsed = subnetAsked(actor, subnet, gateway)
    await networks.requireFree(name)
    if (parsed) networks.requireApart(parsed, subnet as string)
    const range = { ...(subnet === undefined ? {} : { subnet }), ...(gateway === undefined ? {} : { gateway }) }
    return [createNetwork({ name, driver, internal, attachable, ...range, labels })]
  },
  reply: ({ networks }, { name }) => networks.detail(name),
  message: 'The network was created.',
})

export const remove = command('networks.delete', {
  summary: 'Delete a network',
  http: { method: 'DELETE', path: '/api/networks/:name' },
  permission: 'networks:write',
  resource,
  belongs: ({ networks }, { name }) => networks.deploymentOf(name),
  locks: async ({ name }, { networks }) => {
    const deployment = await networks.deploymentOf(name)
    return [`network:${name}`, ...(deployment === null ? [] : [`deployment:${deployment}`])]
  },
  input: Type.Object({ name: Type.String({ minLength: 1, maxLength: 255, description: 'Its name or id' }) }),
  output: Nothing,
  example: { name: 'fairlead-test-network' },
  fails: ['IN_USE', 'CONFLICT', ...engineFails],
  decide: async ({ networks }, { name }) => [removeNetwork(await networks.removable(name))],
  message: 'The network was deleted.',
})

function subnetAsked(actor: Actor, subnet: string | undefined, gateway: string | undefined): Subnet | undefined {
  const refuse = (path: string, message: string): never =>
    fail('VALIDATION_FAILED', `\`${path}\` ${message}.`, [{ path, message }])
  if (subnet === undefined)
    return gateway === undefined ? undefined : refuse('gateway', 'needs a `subnet` that it is in')
  const parsed =
    parseSubnet(subnet) ??
    refuse('subnet', 'must be the first address of an IPv4 subnet and its length (8 to 30), such as 10.20.0.0/24')
  if (gateway !== undefined && !holds(parsed, gateway))
    refuse('gateway', `must be an address in ${subnet}, neither its first nor its last`)
  if (!isAdministrator(actor) && !isPrivate(parsed)) {
    fail('FORBIDDEN', `Only an administrator can use ${subnet}, which is not a private range.`, [
      { path: 'subnet', message: 'must be a private range' },
    ])
  }
  return parsed
}
