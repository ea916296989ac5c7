// Starting, stopping and restarting a deployment, or some of its services. Success is answered when it was seen.

import { command } from '../../../core/operation.ts'
import { Type } from '../../../core/schema.ts'
import { DeploymentName } from '../../users/index.ts'
import { DeploymentDetail } from '../deployment.ts'
import { restartSteps, SETTLE_MS, stopSteps, upSteps } from '../steps.ts'
import { at, chosen, engineFails, engineOf, lock, resource, ServiceName } from './shape.ts'

const input = Type.Object({
  name: DeploymentName,
  services: Type.Optional(Type.Array(ServiceName, { maxItems: 100, description: 'Only these; all when left out' })),
})

export const start = command('deployments.start', {
  summary: 'Start a deployment',
  http: { method: 'POST', path: '/api/deployments/:name/start' },
  permission: 'deployments:write',
  scope: at('write'),
  resource,
  locks: lock,
  input,
  output: DeploymentDetail,
  example: { name: 'blog' },
  fails: engineFails,
  async decide(ask, { name, services }) {
    const { deployments } = ask
    const observed = await deployments.observed(name)
    deployments.modelOf(observed)
    const { model, trust } = await deployments.judge(observed.folder, observed.folder, observed)
    deployments.requireEngine()
    await deployments.requireSameProject(observed, model)
    const wanted = { model, services: chosen(model, name, services), settleMs: SETTLE_MS.start, ...engineOf(ask) }
    return [...upSteps(observed, wanted), ...trust]
  },
  reply: ({ deployments }, { name }) => deployments.detail(name),
  message: 'The deployment runs.',
})

export const stop = command('deployments.stop', {
  summary: 'Stop a deployment; its containers, networks and volumes stay',
  http: { method: 'POST', path: '/api/deployments/:name/stop' },
  permission: 'deployments:write',
  scope: at('write'),
  resource,
  locks: lock,
  input,
  output: DeploymentDetail,
  example: { name: 'blog' },
  fails: engineFails,
  async decide({ deployments }, { name, services }) {
    const observed = await deployments.observed(name)
    const model = deployments.modelOf(observed)
    deployments.requireEngine()
    deployments.requireOwn(model.project, observed.folder.path)
    return stopSteps(observed, chosen(model, name, services))
  },
  reply: ({ deployments }, { name }) => deployments.detail(name),
  message: 'The deployment is stopped.',
})

export const restart = command('deployments.restart', {
  summary: 'Restart a deployment; a stopped one is started',
  http: { method: 'POST', path: '/api/deployments/:name/restart' },
  permission: 'deployments:write',
  scope: at('write'),
  resource,
  locks: lock,
  input,
  output: DeploymentDetail,
  example: { name: 'blog' },
  fails: engineFails,
  async decide(ask, { name, services }) {
    const { deployments } = ask
    const observed = await deployments.observed(name)
    deployments.modelOf(observed)
    const { model, trust } = await deployments.judge(observed.folder, observed.folder, observed)
    deployments.requireEngine()
    await deployments.requireSameProject(observed, model)
    const wanted = { model, services: chosen(model, name, services), settleMs: SETTLE_MS.start, ...engineOf(ask) }
    return [...restartSteps(observed, wanted), ...trust]
  },
  reply: ({ deployments }, { name }) => deployments.detail(name),
  message: 'The deployment was restarted.',
})
