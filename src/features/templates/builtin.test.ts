import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { type ComposeModel, openCompose } from '../../adapters/compose/compose.ts'
import type { ComposeService } from '../../adapters/compose/model.ts'
import { openFiles } from '../../adapters/files/index.ts'
import { freshFrom } from '../../core/fresh.ts'
import { ownersOf, refuseModel, refuseRawOutside } from '../deployments/policy/index.ts'
import { type TemplateError, TemplateLibrary } from './library.ts'
import { categoryNames } from './reader.ts'
import { renderTemplate } from './render.ts'
import { requireCompose, type Template } from './template.ts'

interface Composed {
  template: Template
  /** What Docker Compose itself makes of it, with the values it has without a person's help. */
  model: ComposeModel
  services: [name: string, service: ComposeService][]
}

const folder = fileURLToPath(new URL('../../../templates', import.meta.url))
const all: Composed[] = []
const refused: TemplateError[] = []
before(async () => {
  const library = new TemplateLibrary({
    builtin: () => openFiles(folder),
    local: async () => undefined,
  })
  refused.push(...(await library.refresh()).errors)
  const waiting = [...(await library.all())].sort((a, b) => (a.id > b.id ? -1 : 1))
  const compose = openCompose({
    path: process.env.PATH ?? '',
    home: tmpdir(),
    dockerHost: process.env.DOCKER_HOST ?? '',
  })
  const work = async () => {
    for (let template = waiting.pop(); template; template = waiting.pop()) {
      try {
        const model = await modelOf(compose, template)
        all.push({ template, model, services: Object.entries(model.services) })
      } catch (thrown) {
        refused.push({ path: template.id, error: String(thrown) })
      }
    }
  }
  await Promise.all([work(), work(), work()])
})

test('there are at least thirty; Docker Compose takes every one without a warning, and so does the policy for everybody', () => {
  assert.deepEqual(refused, [])
  assert.ok(all.length >= 30, `only ${all.length}`)
  for (const { template, model } of all) assert.deepEqual(model.warnings, [], template.id)
})

test('every variable is used, every one that is used is declared, and every category has a name', () => {
  for (const { template } of all) {
    requireCompose(template.composeText, template.variables)
    const unused = template.variables.filter(({ key }) => !template.composeText.includes(`\${${key}`))
    assert.deepEqual(unused, [], template.id)
    assert.ok(Object.hasOwn(categoryNames, template.category), `${template.id}: ${template.category} has no name`)
  }
})

test('every image is pinned to a version, and one is of the version the template says', () => {
  for (const { template, services } of all) {
    const tags = services.map(([, { image = '' }]) => /:([^:/]+)$/.exec(image)?.[1] ?? '')
    for (const tag of tags) assert.match(tag, /\d+\.\d+|^RELEASE\.\d{4}-\d\d-\d\dT/, template.id)
    assert.ok(
      tags.some(tag => tag.includes(template.version)),
      `${template.id}: none of ${tags} is ${template.version}`,
    )
  }
})

test('what is reached or waited for says when it is healthy, and all is started again after a reboot', () => {
  for (const { template, services } of all) {
    const awaited = services.flatMap(([, { depends_on = {} }]) => Object.entries(depends_on))
    for (const [name, { condition }] of awaited) assert.equal(condition, 'service_healthy', `${template.id} ${name}`)
    const names = new Set(awaited.map(([name]) => name))
    for (const [name, { healthcheck, ports, restart }] of services) {
      assert.equal(restart, 'unless-stopped', `${template.id} ${name}`)
      if (ports || names.has(name)) assert.ok(healthcheck?.test?.[1], `${template.id} ${name} has no health check`)
    }
  }
})

test('data lies on named volumes, and nothing of the machine is used', () => {
  const forbidden = ['privileged', 'network_mode', 'pid', 'ipc', 'cap_add', 'devices', 'security_opt', 'container_name']
  for (const { template, model, services } of all) {
    const mounts = services.flatMap(([, { volumes = [] }]) => volumes)
    const loose = mounts.filter(({ type, source }) => type !== 'volume' || !source)
    assert.deepEqual(loose, [], template.id)
    const used = new Set(mounts.map(({ source }) => source))
    assert.deepEqual(used, new Set(Object.keys(model.volumes)), `${template.id}: a volume is declared and not used`)
    const keys = services.flatMap(([, service]) => Object.keys(service))
    assert.deepEqual(
      keys.filter(key => forbidden.includes(key)),
      [],
      template.id,
    )
  }
})

test('no secret stands in a file, every one is generated, and none can be forgotten', () => {
  for (const { template } of all) {
    const secrets = template.variables.filter(({ secret }) => secret)
    for (const { key, generate } of secrets) {
      assert.ok(generate, `${template.id}: ${key} is not generated`)
      const lax = new RegExp(`\\$(?:${key}\\b|\\{${key}(?!:\\?|\\w))`)
      assert.doesNotMatch(template.composeText, lax, `${template.id}: ${key} may be empty`)
    }
    for (const [name, value] of environmentOf(template)) {
      if (!/PASS|SECRET|TOKEN|KEY|AUTH$/i.test(name)) continue
      const variable = /\$\{(\w+):\?\}/.exec(value)?.[1]
      assert.ok(
        secrets.some(({ key }) => key === variable),
        `${template.id}: ${name}=${value}`,
      )
    }
  }
})

test('ports are open on this machine only by default, and each is the default of one template alone', () => {
  const taken = new Map([80, 443, 8090].map(port => [`${port}/tcp`, 'the agent']))
  for (const { template, services } of all) {
    const ports = services.flatMap(([, { ports = [] }]) => ports)
    assert.ok(ports.length > 0, `${template.id} cannot be reached`)
    for (const { host_ip, published, protocol } of ports) {
      assert.equal(host_ip, '127.0.0.1', template.id)
      const port = `${published}/${protocol}`
      assert.equal(taken.get(port), undefined, `${template.id} wants ${port}, which ${taken.get(port)} has`)
      taken.set(port, template.id)
    }
  }
})

test('the table in templates/README.md tells of all of them', async () => {
  const rows = all.map(({ template }) => rowOf(template)).sort()
  const text = await readFile(`${folder}/README.md`, 'utf8')
  const shown = text.split('\n').filter(line => line.startsWith('| ['))
  assert.deepEqual(shown, rows, `It should have these rows:\n${rows.join('\n')}\n`)
})

async function modelOf(compose: ReturnType<typeof openCompose>, template: Template): Promise<ComposeModel> {
  const { composeText, envVars } = renderTemplate(template, {}, freshFrom(Buffer.from(template.id)))
  const envText = envVars.map(({ key, value }) => `${key}='${value}'\n`).join('')
  const folder = { path: `${tmpdir()}/${template.id}`, exists: false }
  const reads = await refuseRawOutside({ composeText, envText }, folder)
  const texts = { composeFile: 'compose.yaml', composeText, envText }
  const model = await compose.candidate({ folder: folder.path, ...texts })
  const owners = ownersOf({ networks: [], volumes: [], containers: [] }, [])
  await refuseModel(model, { project: template.id, folder, owners, reads })
  return model
}

function environmentOf({ composeText }: Template): [name: string, value: string][] {
  const { services } = parse(composeText) as { services: Record<string, { environment?: Record<string, unknown> }> }
  return Object.values(services).flatMap(({ environment = {} }) =>
    Object.entries(environment).map(([name, value]): [string, string] => [name, String(value)]),
  )
}

function rowOf({ id, name, version, description, variables }: Template): string {
  const ports = variables.filter(({ type }) => type === 'port').map(variable => variable.default)
  return `| [${id}](${id}) | ${name} | ${version} | ${ports.join(', ')} | ${description} |`
}
