// Volumes: listed, created, and deleted by name when nothing uses them.

import { createVolume, removeVolume } from '../../adapters/container-engine/steps.ts'
import { command, query } from '../../core/operation.ts'
import { Nothing, Secret, Type } from '../../core/schema.ts'
import { EngineName, Labels, requireOwnLabels } from '../networks/index.ts'
import { requireHarmless } from './driver-options.ts'
import { Volume } from './volume.ts'

const resource = { type: 'volume', id: ({ name }: { name: string }) => name }
const locks = ({ name }: { name: string }) => [`volume:${name}`]
const engineFails = ['ENGINE_UNAVAILABLE', 'UPSTREAM_FAILED', 'TIMEOUT'] as const

export const list = query('volumes.list', {
  summary: 'List volumes',
  http: { method: 'GET', path: '/api/volumes' },
  permission: 'volumes:read',
  input: Type.Object({}),
  output: Type.Array(Volume),
  example: {},
  fails: ['ENGINE_UNAVAILABLE'],
  read: ({ volumes }) => volumes.list(),
})

export const create = command('volumes.create', {
  summary: 'Create a volume',
  http: { method: 'POST', path: '/api/volumes', status: 201 },
  permission: 'volumes:write',
  resource,
  locks,
  input: Type.Object({
    name: EngineName,
    driver: Type.Optional(
      Type.String({
        pattern: '^[a-zA-Z0-9][a-zA-Z0-9_./:-]{0,127}$',
        default: 'local',
        'x-hint': 'must be the name of a volume driver',
      }),
    ),
    driver_opts: Type.Optional(
      Type.Record(
        Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$' }),
        Secret(Type.String({ maxLength: 4096, pattern: '^[^\\u0000-\\u001f]*$' })),
        {
          additionalProperties: false,
          maxProperties: 50,
          default: {},
          description: 'Anything but memory (`type: tmpfs`) is for administrators',
        },
      ),
    ),
    labels: Type.Optional(Labels),
  }),
  output: Volume,
  example: { name: 'fairlead-test-new', labels: { team: 'web' } },
  fails: ['ALREADY_EXISTS', 'CONFLICT', ...engineFails],
  async decide({ volumes, actor }, { name, driver = 'local', driver_opts = {}, labels = {} }) {
    requireHarmless(actor, { driver, driver_opts })
    requireOwnLabels(labels)
    await volumes.requireFree(name)
    return [createVolume({ name, driver, driverOptions: driver_opts, labels })]
  },
  reply: ({ volumes }, { name }) => volumes.detail(name),
  message: 'The volume was created.',
})

export const remove = command('volumes.delete', {
  summary: 'Delete a volume with all its data',
  http: { method: 'DELETE', path: '/api/volumes/:name' },
  permission: 'volumes:write',
  resource,
  belongs: ({ volumes }, { name }) => volumes.deploymentOf(name),
  locks: async ({ name }, { volumes }) => {
    const deployment = await volumes.deploymentOf(name)
    return [`volume:${name}`, ...(deployment === null ? [] : [`deployment:${deployment}`])]
  },
  input: Type.Object({ name: Type.String({ minLength: 1, maxLength: 255 }) }),
  output: Nothing,
  example: { name: 'fairlead-test-volume' },
  fails: ['IN_USE', ...engineFails],
  async decide({ volumes }, { name }) {
    await volumes.requireRemovable(name)
    return [removeVolume({ volume: name })]
  },
  message: 'The volume was deleted.',
})
