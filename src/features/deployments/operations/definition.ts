// Deployments as they are defined: listed, shown, created, changed and deleted.

import { removeVolume } from '../../../adapters/container-engine/steps.ts'
import { makeFolder, removeFolder } from '../../../adapters/files/steps.ts'
import { Failure, fail, notFound } from '../../../core/failure.ts'
import { type Ask, command, query } from '../../../core/operation.ts'
import type { Actor } from '../../../core/permission.ts'
import { deleteRecord, putRecord } from '../../../core/record.ts'
import { Nothing, REDACTED, Secret, Type } from '../../../core/schema.ts'
import { type EachResult, each, type Step } from '../../../core/step.ts'
import { editYaml } from '../../../lib/yaml-edit.ts'
import { renderTemplate, TemplateValues } from '../../templates/index.ts'
import { assignments, DeploymentName } from '../../users/index.ts'
import { Deployment, DeploymentDetail } from '../deployment.ts'
import { type EnvVar, envVars, withEnvVars } from '../env-file.ts'
import { type Folder, MAX_COMPOSE_BYTES, META_FILE } from '../folders.ts'
import type { Observed } from '../observe.ts'
import { trusted } from '../records.ts'
import { downSteps, fileStep, SETTLE_MS, upSteps } from '../steps.ts'
import { engineFails, engineOf, lock, resource } from './shape.ts'

const ComposeContent = Type.String({ maxLength: 1_000_000, description: 'The text of the compose file' })
const EnvVars = Type.Array(
  Type.Object({
    key: Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
      maxLength: 200,
      'x-hint': 'must be a variable name: letters, digits and _',
    }),
    value: Secret(
      Type.String({ maxLength: 65_536, pattern: '^[^\\u0000]*$', 'x-hint': 'must not hold a NUL character' }),
    ),
  }),
  { maxItems: 1000, description: 'The whole set of variables of `.env`; `[redacted]` keeps a stored value' },
)

export const list = query('deployments.list', {
  summary: 'List deployments',
  http: { method: 'GET', path: '/api/deployments', bare: true },
  permission: 'deployments:read',
  input: Type.Object({}),
  output: Type.Array(Deployment),
  example: {},
  read: ({ deployments }) => deployments.list(),
})

export const get = query('deployments.get', {
  summary: 'Show a deployment',
  http: { method: 'GET', path: '/api/deployments/:name' },
  permission: 'deployments:read',
  scope: ({ name }) => [{ deployment: name, level: 'read' }],
  input: Type.Object({ name: DeploymentName }),
  output: DeploymentDetail,
  example: { name: 'blog' },
  read: ({ deployments }, { name }) => deployments.detail(name),
  revision: ({ revision }) => revision,
})

export const create = command('deployments.create', {
  summary: 'Create a deployment',
  description: 'The name alone takes up a folder again that was kept when its deployment was deleted.',
  http: { method: 'POST', path: '/api/deployments', status: 201 },
  permission: 'deployments:write',
  resource,
  locks: lock,
  input: Type.Object({
    name: DeploymentName,
    compose_content: Type.Optional(ComposeContent),
    template_id: Type.Optional(
      Type.String({ maxLength: 100, description: 'Instead of `compose_content`: a template' }),
    ),
    values: Type.Optional(TemplateValues),
    env_vars: Type.Optional(EnvVars),
    auto_start: Type.Optional(Type.Boolean({ default: false })),
  }),
  output: DeploymentDetail,
  example: {
    name: 'wiki',
    compose_content: 'services:\n  web:\n    image: fairlead-test/busybox:1\n    command: sleep 3600\n    init: true\n',
  },
  fails: ['ALREADY_EXISTS', 'NOT_FOUND', 'FORBIDDEN', ...engineFails],
  async decide(ask, { name, env_vars, auto_start, ...input }) {
    const { deployments, actor } = ask
    if (!actor.mayCreateDeployments)
      fail('FORBIDDEN', 'A key that is bound to some deployments cannot create another one.')
    const source = await sourceOf(ask, input)
    const occupant = await deployments.occupant(name)
    if (occupant && !occupant.removed)
      fail('ALREADY_EXISTS', `There is a deployment "${name}" already. Choose another name.`)
    if (actor.role !== 'admin') requireUntouched(deployments, name, occupant)
    const composeText = source.composeText ?? occupant?.composeText ?? noSource()
    const variables = [...source.envVars, ...(env_vars ? keepStored(env_vars, occupant?.envText ?? null) : [])]
    const former = occupant?.envText ?? null
    const envText = env_vars || source.envVars.length > 0 ? withEnvVars(former, variables) : former
    const folder = occupant ?? emptyFolder(name, deployments.pathOf(name))
    const { model, trust } = await deployments.judge(folder, { composeText, envText })
    await deployments.requireSameProject({ folder }, model)
    const created: Observed = {
      folder: { ...folder, composeText, envText, model },
      containers: [],
      services: [],
      status: 'stopped',
    }
    return [
      ...(occupant ? [] : [makeFolder({ path: name })]),
      ...fileStep(name, folder.composeFile, occupant?.composeText ?? null, composeText),
      ...(envText === null ? [] : fileStep(name, '.env', former, envText, 0o600)),
      ...(occupant?.metaText
        ? fileStep(name, META_FILE, occupant.metaText, editYaml(occupant.metaText, ['removed'], undefined))
        : []),
      ...(auto_start ? [startSteps(ask, created)] : []),
      ...trust,
      ...ownAccess(actor, name),
    ]
  },
  settled: ({ start }) => failureOf(start as EachResult[] | undefined),
  reply: ({ deployments }, { name }) => deployments.detail(name),
  message: 'The deployment was created.',
})

export const update = command('deployments.update', {
  summary: 'Change a deployment; when the new version does not come up, the old one runs on',
  http: { method: 'PUT', path: '/api/deployments/:name' },
  permission: 'deployments:write',
  scope: ({ name }) => [{ deployment: name, level: 'write' }],
  resource,
  locks: lock,
  input: Type.Object({
    name: DeploymentName,
    compose_content: Type.Optional(ComposeContent),
    env_vars: Type.Optional(EnvVars),
    redeploy: Type.Optional(Type.Boolean({ description: 'Bring the new version up; by default when it runs now' })),
  }),
  output: DeploymentDetail,
  example: { name: 'blog', env_vars: [{ key: 'GREETING', value: 'hello' }] },
  fails: engineFails,
  async decide(ask, { name, compose_content, env_vars, redeploy }) {
    const { deployments } = ask
    requireSmall(compose_content)
    const observed = await deployments.observed(name)
    const { folder } = observed
    const composeText = compose_content ?? folder.composeText
    const envText = env_vars ? withEnvVars(folder.envText, keepStored(env_vars, folder.envText)) : folder.envText
    const { model, trust } = await deployments.judge(folder, { composeText, envText }, observed)
    await deployments.requireSameProject(observed, model)
    const runs = observed.containers.some(one => one.state === 'running' || one.state === 'restarting')
    const files = [
      ...fileStep(name, folder.composeFile, folder.composeText, composeText),
      ...(envText === null
        ? []
        : fileStep(name, '.env', folder.envText, envText, folder.envText === null ? 0o600 : undefined)),
    ]
    if (!(redeploy ?? runs)) return [...files, ...trust]
    deployments.requireEngine()
    const wanted = { model, services: null, settleMs: SETTLE_MS.newVersion, ...engineOf(ask) }
    return [...files, ...upSteps(observed, wanted), ...trust]
  },
  reply: ({ deployments }, { name }) => deployments.detail(name),
  message: 'The deployment was changed.',
})

export const remove = command('deployments.delete', {
  summary: 'Delete a deployment; its volumes and files stay unless asked for',
  http: { method: 'DELETE', path: '/api/deployments/:name' },
  permission: 'deployments:write',
  scope: ({ name }) => [{ deployment: name, level: 'admin' }],
  resource,
  locks: lock,
  input: Type.Object({
    name: DeploymentName,
    remove_files: Type.Optional(
      Type.Boolean({ default: false, description: 'Also delete the folder with everything in it' }),
    ),
    remove_volumes: Type.Optional(
      Type.Boolean({ default: false, description: 'Also delete its volumes with their data' }),
    ),
  }),
  output: Nothing,
  example: { name: 'shop' },
  fails: engineFails,
  async decide({ deployments, users, credentials }, { name, remove_files, remove_volumes }) {
    const observed = await deployments.observed(name)
    deployments.requireEngine()
    const { model, metaText, path } = observed.folder
    if (model) deployments.requireOwn(model.project, path)
    const volumes = remove_volumes && model ? deployments.volumesOf(model.project) : []
    const trust = deployments.trustIn(name)
    const access = users.ofDeployment(name).flatMap(({ user_id }) => users.assignment(user_id, name) ?? [])
    return [
      ...downSteps(observed, deployments.existing()),
      ...(remove_files ? [] : fileStep(name, META_FILE, metaText, editYaml(metaText ?? '', ['removed'], true))),
      ...volumes.map(volume => removeVolume({ volume })),
      ...(remove_files ? [removeFolder({ path: name })] : []),
      ...access.map(one => deleteRecord(assignments, one, { cause: 'the deployment goes' })),
      ...credentials.withoutDeployment(name),
      ...(trust ? [deleteRecord(trusted, trust, { cause: 'the deployment goes' })] : []),
    ]
  },
  message: 'The deployment was deleted.',
})

/** A start that fails leaves the new deployment where it is, so its steps stand beside the others. */
function startSteps(ask: Ask, observed: Observed): Step {
  ask.deployments.requireEngine()
  const { model } = observed.folder
  const wanted = model && { model, services: null, settleMs: SETTLE_MS.newVersion, ...engineOf(ask) }
  return each(wanted ? upSteps(observed, wanted) : [], { as: 'start' })
}

function failureOf(outcomes: EachResult[] | undefined): Failure | undefined {
  const failed = outcomes?.find(outcome => !outcome.ok)
  if (!failed || failed.ok) return undefined
  const details = { reason: failed.error, services: [], ...(failed.details as object | undefined), rolled_back: false }
  return new Failure('DEPLOY_FAILED', `The deployment was created, but did not start: ${failed.error}`, details)
}

interface Source {
  composeText: string | undefined
  envVars: EnvVar[]
}

/** The text itself, or a template with its values; the name alone takes up a kept folder. */
async function sourceOf(
  { templates, fresh }: Ask,
  input: { compose_content?: string; template_id?: string; values?: TemplateValues },
): Promise<Source> {
  const { compose_content: composeText, template_id, values } = input
  requireSmall(composeText)
  if (template_id === undefined) {
    if (values !== undefined)
      fail('VALIDATION_FAILED', '`values` are for a template: name it in `template_id`.', [
        { path: 'values', message: 'needs template_id' },
      ])
    return { composeText, envVars: [] }
  }
  if (composeText !== undefined) {
    fail('VALIDATION_FAILED', 'Send either `compose_content` or `template_id`.', [
      { path: 'template_id', message: 'stands beside compose_content' },
    ])
  }
  const template = (await templates.find(template_id)) ?? notFound('template', template_id)
  return renderTemplate(template, values ?? {}, fresh)
}

function noSource(): never {
  return fail(
    'VALIDATION_FAILED',
    '`compose_content` or `template_id` is required: there is no kept folder of this name.',
    [{ path: 'compose_content', message: 'is required' }],
  )
}

/** What somebody left behind under this name is not for the next one to find. */
function requireUntouched(deployments: Ask['deployments'], name: string, occupant: Folder | undefined): void {
  if (occupant)
    fail(
      'CONFLICT',
      `A folder of an earlier deployment "${name}" was kept. Only an administrator can take it up again.`,
    )
  const volumes = deployments.volumesOf(name)
  if (volumes.length === 0) return
  fail(
    'CONFLICT',
    `Volumes of an earlier deployment "${name}" are still there. Choose another name, or ask an administrator to remove them.`,
  )
}

/** Who creates a deployment gets level admin on it. */
function ownAccess(actor: Actor, name: string): Step[] {
  if (actor.role === 'admin' || actor.userId === null) return []
  return [putRecord(assignments, null, { user_id: actor.userId, deployment_name: name, access_level: 'admin' })]
}

function requireSmall(text: string | undefined): void {
  if (text === undefined || Buffer.byteLength(text) <= MAX_COMPOSE_BYTES) return
  fail('PAYLOAD_TOO_LARGE', 'The compose text is larger than 256 KiB.')
}

function keepStored(wanted: readonly EnvVar[], envText: string | null): EnvVar[] {
  const stored = new Map(envVars(envText).map(({ key, value }) => [key, value]))
  return wanted.map(({ key, value }) => ({ key, value: value === REDACTED ? (stored.get(key) ?? '') : value }))
}

function emptyFolder(name: string, path: string): Folder {
  return {
    name,
    path,
    composeFile: 'compose.yaml',
    composeText: '',
    envText: null,
    metaText: null,
    removed: false,
    revision: '',
    createdAt: '',
    updatedAt: '',
    model: null,
    error: null,
  }
}
