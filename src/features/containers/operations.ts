// Containers: those of deployments and all others on the engine, started, stopped, restarted, removed, and their output.

import {
  removeContainer,
  restartContainer,
  startContainer,
  stopContainer,
} from '../../adapters/container-engine/steps.ts'
import { fail } from '../../core/failure.ts'
import { type Ask, command, query, streamed } from '../../core/operation.ts'
import { Nothing, Nullable, Type } from '../../core/schema.ts'
import type { Results } from '../../core/step.ts'
import { LogLineSchema, logFields } from '../deployments/index.ts'
import { Container, ContainerId } from './container.ts'

const resource = {
  type: 'container',
  id: ({ id }: { id: string }, { container }: Results) => (container as { name: string } | undefined)?.name ?? id,
}
const input = Type.Object({ id: ContainerId })
const belongs = ({ containers }: Ask, { id }: { id: string }) => containers.deploymentOf(id)
/** What changes a deployment waits, and is waited for. */
const locks = async ({ id }: { id: string }, ask: Ask) => {
  const deployment = await belongs(ask, { id })
  return [deployment === null ? `container:${id}` : `deployment:${deployment}`]
}
const engineFails = ['CONFLICT', 'ENGINE_UNAVAILABLE', 'UPSTREAM_FAILED', 'TIMEOUT'] as const
/** A container of the standard test world. */
const example = { id: 'fairlead-test-idle' }

export const list = query('containers.list', {
  summary: 'List containers',
  http: { method: 'GET', path: '/api/containers' },
  permission: 'containers:read',
  input: Type.Object({ all: Type.Boolean({ default: true, description: 'Also those that do not run' }) }),
  output: Type.Array(Container),
  example: { all: true },
  fails: ['ENGINE_UNAVAILABLE'],
  read: ({ containers }, { all }) => containers.list(all),
})

export const start = command('containers.start', {
  summary: 'Start a container',
  http: { method: 'POST', path: '/api/containers/:id/start' },
  permission: 'containers:write',
  resource,
  belongs,
  locks,
  input,
  output: Nullable(Container),
  example,
  fails: engineFails,
  async decide({ containers }, { id }) {
    const target = await containers.target(id)
    return target.state === 'running' ? [] : [startContainer(target, { as: 'container' })]
  },
  reply: ({ containers }, { id }) => containers.afterwards(id),
  message: 'The container was started.',
})

export const stop = command('containers.stop', {
  summary: 'Stop a container',
  http: { method: 'POST', path: '/api/containers/:id/stop' },
  permission: 'containers:write',
  resource,
  belongs,
  locks,
  input,
  output: Nullable(Container),
  example,
  fails: engineFails,
  async decide({ containers }, { id }) {
    const target = await containers.target(id)
    return isUp(target.state) ? [stopContainer(target, { as: 'container' })] : []
  },
  reply: ({ containers }, { id }) => containers.afterwards(id),
  message: 'The container is stopped.',
})

export const restart = command('containers.restart', {
  summary: 'Restart a container; a stopped one is started',
  http: { method: 'POST', path: '/api/containers/:id/restart' },
  permission: 'containers:write',
  resource,
  belongs,
  locks,
  input,
  output: Nullable(Container),
  example,
  fails: engineFails,
  decide: async ({ containers }, { id }) => [restartContainer(await containers.target(id), { as: 'container' })],
  reply: ({ containers }, { id }) => containers.afterwards(id),
  message: 'The container was restarted.',
})

export const remove = command('containers.delete', {
  summary: 'Remove a stopped container; its volumes stay',
  http: { method: 'DELETE', path: '/api/containers/:id' },
  permission: 'containers:write',
  resource,
  belongs,
  locks,
  input,
  output: Nothing,
  example,
  fails: ['CONTAINER_RUNNING', ...engineFails],
  async decide({ containers }, { id }) {
    const target = await containers.target(id)
    if (isUp(target.state)) fail('CONTAINER_RUNNING', `Container "${target.name}" is ${target.state}: stop it first.`)
    return [removeContainer(target)]
  },
  message: 'The container was removed.',
})

const { tail, filter, since } = logFields

export const logs = query('containers.logs', {
  summary: 'Read the output of a container: filtered, then the last lines',
  http: { method: 'GET', path: '/api/containers/:id/logs' },
  permission: 'containers:read',
  input: Type.Object({ id: ContainerId, tail, filter, since }),
  output: Type.Array(LogLineSchema),
  example: { ...example, tail: 10 },
  fails: engineFails,
  read: async ({ containers, signal }, { id, ...asked }) => streamed(await containers.logs(id, asked, signal)),
})

const isUp = (state: string): boolean => state === 'running' || state === 'restarting' || state === 'paused'
