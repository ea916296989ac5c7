import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import type { ComposeModel } from '../../../adapters/compose/compose.ts'
import { buildKeys } from './build-keys.ts'
import { ownersOf, type Refusal, refuseModel, writtenBy } from './index.ts'
import { networkKeys, secretKeys, volumeKeys } from './resource-keys.ts'
import { serviceKeys } from './service-keys.ts'
import { type Given, nobody, policyDesk, refusalsOf } from './testing.ts'

const desk = policyDesk()
after(() => desk.close())

const web = (body: string, top = ''): string =>
  `services:\n  web:\n    image: a\n    ${body}\n  db:\n    image: b\n${top}`

/** What a service, or the file around it, may not hold. `ONE` is a name that only this case has. */
interface Forbidden {
  body: string
  top: string
  /** What has to be named: a key of the service, or one of the file. */
  key: string
  message: RegExp
}

const service = (key: string, ...bodies: string[]): Forbidden[] =>
  bodies.map(body => ({ body, top: '', key, message: /not allowed|not known|has to begin|leaves/ }))
const mounts = (message: RegExp, ...bodies: string[]): Forbidden[] =>
  bodies.map(body => ({ body: `volumes: [${body}]`, top: '', key: 'volumes[0]', message }))
const around = (
  part: 'volumes' | 'networks' | 'configs' | 'secrets',
  key: string,
  ...resources: string[]
): Forbidden[] =>
  resources.map(one => ({
    body: `${part}: ["${part === 'volumes' ? 'ONE:/x' : 'ONE'}"]`,
    top: `${part}: {ONE: ${one}}`,
    key: `${part}.ONE.${key}`,
    message: /not allowed/,
  }))

const forbidden: Forbidden[] = [
  ...service('privileged', 'privileged: true', 'privileged: "true"', `privileged: "\${ABSENT:-true}"`),
  ...service('pid', 'pid: host', 'pid: "container:other"', `pid: "\${ABSENT-host}"`),
  ...service('ipc', 'ipc: host', 'ipc: container:other'),
  ...service('network_mode', 'network_mode: host', 'network_mode: "container:other"'),
  ...service('network_mode', 'network_mode: bridge', 'network_mode: shop_default'),
  ...service('userns_mode', 'userns_mode: host'),
  ...service('uts', 'uts: host'),
  ...service('cgroup', 'cgroup: host'),
  ...service('cgroup_parent', 'cgroup_parent: /'),
  ...service('volumes_from[0]', 'volumes_from: [container:other]', 'volumes_from: ["container:other:ro"]'),
  ...service('devices', 'devices: ["/dev/sda"]', 'devices: ["/dev/null:/dev/x:r"]'),
  ...service('device_cgroup_rules', 'device_cgroup_rules: ["b *:* rwm"]'),
  ...service(
    'deploy.resources.reservations.devices',
    'deploy: {resources: {reservations: {devices: [{capabilities: [gpu], count: 1}]}}}',
  ),
  ...service('cap_add', 'cap_add: [SYS_ADMIN]', 'cap_add: [ALL]', 'cap_add: [CAP_NET_ADMIN]'),
  ...service('security_opt[0]', 'security_opt: [seccomp=unconfined]', 'security_opt: ["seccomp:unconfined"]'),
  ...service('security_opt[0]', 'security_opt: [apparmor=unconfined]', 'security_opt: ["label:disable"]'),
  ...service('security_opt[0]', 'security_opt: [systempaths=unconfined]', 'security_opt: ["no-new-privileges:false"]'),
  ...service('sysctls', 'sysctls: [net.ipv4.ip_forward=1]', 'sysctls: {kernel.shmmax: 1}'),
  ...service('runtime', 'runtime: nvidia'),
  ...service('isolation', 'isolation: process'),
  ...service('storage_opt', 'storage_opt: {size: 1g}'),
  ...service('credential_spec', 'credential_spec: {file: x}'),
  ...service('external_links', 'external_links: [other]'),
  ...service('oom_kill_disable', 'oom_kill_disable: true'),
  ...service('oom_score_adj', 'oom_score_adj: -500'),
  ...service('cpu_rt_runtime', 'cpu_rt_runtime: 400'),
  ...service('cpu_rt_period', 'cpu_rt_period: 400'),
  ...service('ulimits.rtprio', 'ulimits: {rtprio: 99}'),
  ...service('annotations', 'annotations: {run.oci.hooks.stderr: /etc/x}'),
  ...service('labels.com.docker.compose.project', 'labels: [com.docker.compose.project=shop]'),
  ...service('labels.com.docker.compose.service', 'labels: {com.docker.compose.service: x}'),
  ...service('deploy.labels.com.docker.stack', 'deploy: {labels: {com.docker.stack: x}}'),
  ...service('logging.driver', 'logging: {driver: syslog}', 'logging: {driver: fluentd, options: {tag: x}}'),
  ...service('logging.options.syslog-address', 'logging: {driver: json-file, options: {syslog-address: x}}'),
  ...service('networks.default.driver_opts', 'networks: {default: {driver_opts: {a: b}}}'),
  ...service('networks.default.link_local_ips', 'networks: {default: {link_local_ips: [169.254.1.1]}}'),
  ...service('volumes[0].bind.propagation', 'volumes: ["./d:/d:rslave"]'),
  ...service(
    'volumes[0].bind.propagation',
    'volumes: [{type: bind, source: ./d, target: /d, bind: {propagation: rshared}}]',
  ),
  ...service('volumes[0].type', 'volumes: [{type: npipe, source: x, target: /x}]'),
  ...service('volumes[0].type', 'volumes: [{type: cluster, source: x, target: /x}]'),
  ...service('build.network', 'build: {context: ., network: host}', 'build: {context: ., network: "container:other"}'),
  ...service('build.privileged', 'build: {context: ., privileged: true}'),
  ...service('build.entitlements', 'build: {context: ., entitlements: [security.insecure]}'),
  ...service('build.extra_hosts', 'build: {context: ., extra_hosts: ["a:1.2.3.4"]}'),
  ...service('build.cache_to', 'build: {context: ., cache_to: ["type=local,dest=/etc"]}'),
  ...service('build.cache_from[0]', 'build: {context: ., cache_from: ["type=local,src=/etc"]}'),
  ...service('build.labels.com.docker.x', 'build: {context: ., labels: {com.docker.x: y}}'),
  ...service('develop.watch[0].path', 'develop: {watch: [{path: ../x, action: sync, target: /x}]}'),
  ...service('build.tags[0]', 'build: {context: ., tags: ["postgres:16"]}'),
  ...service('image', 'build: .', 'build: {context: ., dockerfile_inline: FROM x}'),
  ...mounts(
    /leaves the folder/,
    '"/:/host"',
    '"/etc/passwd:/p:ro"',
    '"../x:/x"',
    '"./a/../../x:/x"',
    '"~/x:/x"',
    '"/var/run/docker.sock:/var/run/docker.sock"',
    `"\${ABSENT:-/etc}:/x"`,
    '{type: bind, source: /etc, target: /x}',
    '{type: bind, source: ../.., target: /x, read_only: true}',
  ),
  ...mounts(
    /change what Compose reads/,
    '".:/app"',
    '"./:/app"',
    '"./.env:/app/.env"',
    '"./compose.yaml:/c"',
    '"./docker-compose.override.yml:/c"',
    '"./fairlead.yml:/f"',
    '{type: bind, source: ./sub/.., target: /x}',
  ),
  ...around(
    'volumes',
    'driver_opts',
    '{driver_opts: {type: none, o: bind, device: /}}',
    '{driver: local, driver_opts: {type: nfs, o: "addr=1.2.3.4", device: ":/x"}}',
    '{driver_opts: {type: tmpfs, device: tmpfs, o: bind}}',
    '{driver_opts: {device: "."}}',
  ),
  ...around('volumes', 'driver', '{driver: sshfs}'),
  ...around(
    'volumes',
    'external',
    '{external: true, name: shop_data}',
    '{external: {name: shop_data}}',
    '{external: true}',
  ),
  ...around('volumes', 'name', '{name: shop_data}', '{name: bloggers_data}'),
  ...around('volumes', 'labels.com.docker.compose.project', '{labels: {com.docker.compose.project: x}}'),
  ...around('networks', 'external', '{external: true, name: shop_default}', '{external: {name: shop_default}}'),
  ...around('networks', 'external', '{external: true, name: bridge}', '{external: true, name: host}'),
  ...around('networks', 'name', '{name: shop_default}'),
  ...around('networks', 'driver', '{driver: macvlan}', '{driver: host}', '{driver: overlay}'),
  ...around(
    'networks',
    'driver_opts.com.docker.network.bridge.name',
    '{driver_opts: {com.docker.network.bridge.name: docker0}}',
  ),
  ...around('networks', 'ipam.config', '{ipam: {config: [{subnet: 8.8.8.0/24}]}}'),
  ...around('networks', 'ipam.driver', '{ipam: {driver: dhcp}}'),
  ...around('networks', 'labels.com.docker.x', '{labels: [com.docker.x=y]}'),
  ...around('secrets', 'external', '{external: true}'),
  ...around('configs', 'template_driver', '{file: ./c, template_driver: golang}'),
].map((one, index) => {
  const own = (text: string) => text.replaceAll('ONE', `one${index}`)
  return { ...one, body: own(one.body), top: own(one.top), key: own(one.key) }
})

type Parts = Record<string, Record<string, unknown>>

/** The file with a forbidden thing in a service of that name. */
function withForbidden(file: Parts, { body, top }: Forbidden, name: string): Parts {
  const parts: Parts = { ...file, services: { ...file.services, [name]: { image: 'a', ...parse(body) } } }
  for (const [part, value] of Object.entries((parse(top) ?? {}) as Parts)) parts[part] = { ...parts[part], ...value }
  return parts
}

const isNamed = (refusals: Refusal[], { top, key, message }: Forbidden, name: string): boolean =>
  refusals.some(one => one.service === (top ? null : name) && one.key === key && message.test(one.message))

const named = async (work: Promise<unknown>): Promise<string[]> =>
  (await refusalsOf(work)).map(({ service, key }) => `${service} ${key}`)

test('whatever reaches outside is refused in every spelling, naming service and key', async () => {
  const start: Parts = { services: { db: { image: 'b' } } }
  for (let from = 0; from < forbidden.length; from += 30) {
    const some = forbidden.slice(from, from + 30)
    const file = some.reduce((parts, one, index) => withForbidden(parts, one, `s${index}`), start)
    const refusals = await refusalsOf(desk.judge({ text: stringify(file) }))
    assert.deepEqual(
      some.filter((one, index) => !isNamed(refusals, one, `s${index}`)),
      [],
    )
    assert.ok(!refusals.some(one => one.service === 'db'))
  }
})

const modelOf = async (more: Given): Promise<{ model: ComposeModel; folder: string }> => {
  const folder = desk.folderFor(more)
  return { model: await desk.candidate(folder, more), folder }
}

const judgeModel = (model: ComposeModel, folder: string, context = {}) =>
  refuseModel(model, { project: 'blog', folder: { path: folder, exists: true }, owners: nobody, reads: [], ...context })

/** As newer versions of Compose print what the one on this machine may not know. */
const newer: [key: string, value: unknown, named?: string][] = [
  ['gpus', [{ count: -1 }]],
  ['provider', { type: 'awesomecloud' }],
  ['models', { llm: null }],
  ['use_api_socket', true],
  ['post_start', [{ command: ['a'], user: 'root', privileged: true }], 'post_start[0].privileged'],
  ['pre_stop', [{ command: ['a'], privileged: true }], 'pre_stop[0].privileged'],
  ['env_file', [{ path: '/etc/passwd', required: false }], 'env_file[0]'],
  ['label_file', ['/etc/passwd'], 'label_file[0]'],
  ['volumes', [{ type: 'image', source: 'x', target: '/x' }], 'volumes[0].type'],
  ['volumes', [{ source: '/etc', target: '/x' }], 'volumes[0].type'],
  ['volumes', [{ type: 'bind', target: '/x' }], 'volumes[0].type'],
  ['volumes', [{ type: 'bind', source: 'etc', target: '/x' }], 'volumes[0]'],
  ['volumes', [{ type: 'volume', source: 'theirs', target: '/x' }], 'volumes[0]'],
  ['volumes', ['/etc:/x'], 'volumes[0]'],
  ['build', { context: '/etc' }, 'build.context'],
  ['build', { context: 'https://example.org/x.git' }, 'build.context'],
  ['build', { context: '.', ssh: ['default'] }, 'build.ssh'],
  ['build', { context: '.', additional_contexts: { a: '/etc' } }, 'build.additional_contexts.a'],
  ['build', { context: '.', additional_contexts: { a: 'oci-layout:///etc' } }, 'build.additional_contexts.a'],
  ['blkio_config', { device_read_bps: [{ Path: '/dev/sda', Rate: '1' }] }, 'blkio_config.device_read_bps'],
  ['a_key_of_next_year', true],
  ['constructor', 'x'],
  ['confined', false],
]

test('what only newer versions of Compose know is refused as well, known or not', async () => {
  const { model, folder } = await modelOf({ text: web('') })
  for (const [key, value, at] of newer) {
    const changed = { ...model, services: { ...model.services, web: { ...model.services.web, [key]: value } } }
    assert.ok((await named(judgeModel(changed, folder))).includes(`web ${at ?? key}`), key)
  }
  assert.deepEqual(await named(judgeModel({ ...model, volumes: { v: { name: 'blog_v', cluster: 'x' } } }, folder)), [
    'null volumes.v.cluster',
  ])
})

const fine: Record<string, unknown>[] = [
  { privileged: false, cap_add: [], devices: [], sysctls: {} },
  { cap_drop: ['ALL'], read_only: true, security_opt: ['no-new-privileges:true'] },
  { user: '1000:1000', group_add: ['29'], init: true, tty: true, stdin_open: true },
  { environment: { A: 'b', B: `\${ABSENT:-x}` }, env_file: [{ path: './.env', required: false }] },
  {
    ports: ['80', '127.0.0.1:8080:80', { target: 443, published: '8443', protocol: 'udp', mode: 'host' }],
    expose: ['9000'],
  },
  {
    volumes: [
      './data:/data',
      'vol:/v',
      '/anonymous',
      './conf/app.ini:/app.ini:ro',
      '.:/src:ro',
      { type: 'tmpfs', target: '/t' },
    ],
  },
  {
    volumes: [{ type: 'volume', source: 'vol', target: '/v', read_only: true, volume: { nocopy: true } }],
    tmpfs: ['/run:size=1m'],
  },
  { ipc: 'shareable', pid: 'service:db', cgroup: 'private' },
  { network_mode: 'service:db' },
  { network_mode: 'none' },
  {
    networks: { default: { aliases: ['app'], priority: 1 } },
    extra_hosts: ['host.docker.internal:host-gateway', 'a:1.2.3.4'],
  },
  { volumes_from: ['db:ro'], links: ['db:database'], depends_on: { db: { condition: 'service_started' } } },
  { mem_limit: '512m', cpus: 0.5, cpuset: '0', pids_limit: 100, shm_size: '64m', oom_score_adj: 100 },
  { ulimits: { nofile: { soft: 1024, hard: 2048 }, nproc: 100 }, blkio_config: { weight: 300 } },
  { deploy: { replicas: 2, resources: { limits: { cpus: '0.5', memory: '64m' }, reservations: { memory: '32m' } } } },
  { logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '3' } } },
  { logging: { driver: 'none' }, labels: { 'traefik.enable': 'true', 'org.example.com.docker.x': 'y' } },
  { healthcheck: { test: ['CMD', 'true'], interval: '5s', start_period: '1s' }, restart: 'unless-stopped' },
  { stop_grace_period: '5s', stop_signal: 'SIGINT', hostname: 'a', domainname: 'b', dns: ['1.1.1.1'] },
  { configs: [{ source: 'c', target: '/c' }], secrets: ['s'], pull_policy: 'missing', platform: 'linux/arm64' },
  { build: { context: '.', dockerfile: 'docker/Dockerfile', args: { A: 'b' }, target: 'x' }, image: 'blog-app:1' },
  {
    build: { context: './app', dockerfile_inline: 'FROM scratch', cache_from: ['example.org/a:b'] },
    image: 'localhost/blog-x',
  },
  { container_name: 'my-app', working_dir: '/', command: ['sh', '-c', 'echo $$A'], entrypoint: ['x'] },
  { develop: { watch: [{ path: './src', action: 'sync', target: '/src' }] }, 'x-note': { any: ['thing'] } },
]
const fineTop = {
  volumes: {
    vol: { driver: 'local', labels: { a: 'b' } },
    ram: { driver_opts: { type: 'tmpfs', device: 'tmpfs', o: 'size=1m,uid=1000' } },
  },
  networks: { default: { driver: 'bridge', driver_opts: { 'com.docker.network.driver.mtu': '1400' }, internal: true } },
  configs: { c: { file: './c' } },
  secrets: { s: { environment: 'TOKEN' } },
  'x-common': { a: 1 },
}

const fineFiles = { '.env': 'TOKEN=x\n', 'docker/Dockerfile': 'FROM scratch\n', 'app/x': '', c: 'text' }
const fineFile = (chosen: readonly Record<string, unknown>[]): Parts => ({
  ...fineTop,
  services: {
    db: { image: 'b', volumes: ['ram:/r'] },
    ...Object.fromEntries(chosen.map((body, index) => [`f${index}`, { image: 'a', ...body }])),
  },
})

test('what stays inside is allowed', async () => {
  const model = await desk.judge({ text: stringify(fineFile(fine)), files: fineFiles, env: 'TOKEN=x\n' })
  assert.equal(Object.keys(model.services).length, fine.length + 1)
})

test('any mixture of allowed keys passes, and one forbidden spelling anywhere in it is refused', async () => {
  const mixtures = fc.uniqueArray(fc.constantFrom(...fine), { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(mixtures, fc.constantFrom(...forbidden), async (chosen, bad) => {
      const given = { files: fineFiles, env: 'TOKEN=x\n' }
      await desk.judge({ ...given, text: stringify(fineFile(chosen)) })
      const refusals = await refusalsOf(
        desk.judge({ ...given, text: stringify(withForbidden(fineFile(chosen), bad, 'bad')) }),
      )
      assert.ok(isNamed(refusals, bad, 'bad'), JSON.stringify(refusals))
    }),
    { numRuns: 6 },
  )
})

test('every key of the specification has been decided about', () => {
  const lists: [table: object, keys: string][] = [
    [serviceKeys, SERVICE_KEYS],
    [
      buildKeys,
      'additional_contexts args cache_from cache_to context dockerfile dockerfile_inline entitlements extra_hosts isolation labels network no_cache platforms privileged pull secrets shm_size ssh tags target ulimits',
    ],
    [networkKeys, 'attachable driver driver_opts enable_ipv4 enable_ipv6 external internal ipam labels name'],
    [volumeKeys, 'driver driver_opts external labels name'],
    [secretKeys, 'content driver driver_opts environment external file labels name template_driver'],
  ]
  for (const [table, keys] of lists) assert.deepEqual(Object.keys(table).sort(), keys.split(' '))
})

const SERVICE_KEYS =
  'annotations attach blkio_config build cap_add cap_drop cgroup cgroup_parent command configs container_name cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset credential_spec depends_on deploy develop device_cgroup_rules devices dns dns_opt dns_search domainname entrypoint env_file environment expose extends external_links extra_hosts gpus group_add healthcheck hostname image init ipc isolation label_file labels links logging mac_address mem_limit mem_reservation mem_swappiness memswap_limit models network_mode networks oom_kill_disable oom_score_adj pid pids_limit platform ports post_start pre_stop privileged profiles provider pull_policy pull_refresh_after read_only restart runtime scale secrets security_opt shm_size stdin_open stop_grace_period stop_signal storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts volumes volumes_from working_dir'

test('a mount through a link, of a pipe or a socket is refused, one through a link inside is not', async () => {
  const { model, folder } = await modelOf({ text: web('volumes: ["./data/x:/x"]') })
  const data = join(folder, 'data')
  const there = async (make: () => unknown): Promise<string[]> => {
    await make()
    try {
      return await named(judgeModel(model, folder))
    } finally {
      rmSync(data, { recursive: true })
    }
  }
  const inside = (make: (path: string) => unknown) => () => {
    mkdirSync(data)
    return make(join(data, 'x'))
  }
  const server = createServer()
  const traps: [string, () => unknown][] = [
    ['a folder that is a link', () => symlinkSync('/etc', data)],
    ['a link to outside', inside(path => symlinkSync('/etc/passwd', path))],
    ['a link to the folder above', inside(path => symlinkSync('../..', path))],
    ['a link in circles', inside(path => symlinkSync('x', path))],
    ['a link to nowhere', inside(path => symlinkSync('nowhere', path))],
    ['a pipe', inside(path => execFileSync('mkfifo', [path]))],
    ['a socket', inside(path => once(server.listen(path), 'listening'))],
  ]
  for (const [name, make] of traps) assert.deepEqual(await there(make), ['web volumes[0]'], name)
  server.close()

  inside(path => symlinkSync('.', path))()
  await judgeModel(model, folder)
})

test('a path below what containers can write to is refused: they could put a link there after the check', async () => {
  const { model, folder } = await modelOf({ text: web('volumes: ["./data/inner:/inner"]') })
  const held = (...written: string[]) => ({ folder: { path: folder, exists: true, written } })
  assert.deepEqual(await named(judgeModel(model, folder, held(join(folder, 'data')))), ['web volumes[0]'])
  await judgeModel(model, folder, held(join(folder, 'data/inner'), join(folder, 'database'), '/', '/etc'))
  await desk.judge({ text: web('volumes: ["./data:/data:ro", "./data/inner:/inner"]') })

  const files = { 'data/token': 'x', 'data/app.env': 'A=1', 'more.yaml': 'services: {x: {image: x}}' }
  const text = `
include: [more.yaml]
secrets: {s: {file: ./data/token}}
services:
  web: {image: a, volumes: ["./data:/data"], secrets: [s], env_file: ./data/app.env}
  inner: {image: a, volumes: [{type: bind, source: ./data/inner, target: /i, read_only: true}]}
  more: {image: a, volumes: ["./more.yaml:/more.yaml"]}
`
  const expected = ['inner volumes[0]', 'more volumes[0]', 'null secrets.s.file', 'web env_file']
  assert.deepEqual([...new Set(await named(desk.judge({ text, files })))].sort(), expected)
  const reading = web('env_file: ./data/app.env')
  assert.deepEqual(await named(desk.raw({ text: reading, files, written: ['data'] })), ['web env_file'])

  const mounts = [
    { type: 'bind', name: null, source: '/d/blog/data', destination: '/x', readOnly: false },
    { type: 'bind', name: null, source: '/d/blog/conf', destination: '/y', readOnly: true },
    { type: 'volume', name: 'v', source: '/var/lib/v', destination: '/z', readOnly: false },
  ]
  assert.deepEqual(writtenBy([{ mounts }, { mounts }]), ['/d/blog/data'])
})

test('volumes, networks, containers and images of others are refused, whether they exist or are only claimed', async () => {
  const others = await modelOf({
    text: `
name: blog_x
services:
  a: {image: "blog-web:1", container_name: till, volumes: ["data:/d"]}
  b: {image: c, scale: 2}
volumes: {data: }
`,
  })
  const label = (project: string) => ({ 'com.docker.compose.project': project })
  const engine = {
    networks: [
      { name: 'blog_loose', labels: {} },
      { name: 'old', labels: label('blog') },
    ],
    volumes: [{ name: 'blog_theirs', labels: label('shop') }],
    containers: [
      { name: 'proxy', labels: {} },
      { name: 'blog-db-1', labels: label('blog') },
    ],
  }
  const context = { owners: ownersOf(engine, [others.model]) }
  const foreign = `
services:
  built: {build: ., image: "docker.io/library/blog-web:1"}
  clash: {build: ., image: "blog-web:1"}
  proxy: {image: a, container_name: proxy, volumes: ["theirs:/v", "x_data:/x"], networks: [loose]}
  till: {image: a, container_name: till}
  twin: {image: a, container_name: blog_x-b-2}
volumes: {theirs: , x_data: }
networks: {loose: }
`
  assert.deepEqual((await named(desk.judge({ text: foreign, context }))).sort(), [
    'built image',
    'clash image',
    'null networks.loose.name',
    'null volumes.theirs.name',
    'null volumes.x_data.name',
    'proxy container_name',
    'till container_name',
    'twin container_name',
  ])
  const own = `
services:
  web: {build: ., image: "blog-web:2", networks: [ours, named]}
  db: {image: x}
networks: {ours: {external: true, name: old}, named: {name: blog-named}}
`
  await desk.judge({ text: own, context })
})

test('the project has the name of the deployment, or the one an administrator gave it', async () => {
  await desk.judge({ text: web('', 'name: blog\n') })
  await desk.judge({ text: web('', 'name: journal\n'), context: { project: 'journal' } })
  assert.deepEqual(await named(desk.judge({ text: web(''), env: 'COMPOSE_PROJECT_NAME=shop\n' })), ['null name'])
})

test('a service of a profile is judged as soon as the profile is switched on', async () => {
  const text = 'services: {web: {image: a}, tool: {image: b, profiles: [tools], privileged: true}}'
  await desk.judge({ text })
  assert.deepEqual(await named(desk.judge({ text, env: 'COMPOSE_PROFILES=tools\n' })), ['tool privileged'])
})

test('a new deployment is judged before its folder is there', async () => {
  const folder = join(desk.root, 'new')
  const judge = async (body: string) => {
    const composeText = web(body)
    const model = await desk.compose.candidate({
      folder,
      composeFile: 'compose.yaml',
      composeText,
      envText: null,
    })
    await refuseModel(model, { project: 'new', folder: { path: folder, exists: false }, owners: nobody, reads: [] })
  }
  await judge('volumes: ["./data:/data"]')
  assert.deepEqual(await named(judge('volumes: ["../data:/data"]')), ['web volumes[0]'])
})

test('variables of the agent do not reach a compose file', async () => {
  process.env.FAIRLEAD_CANARY = 'canary'
  const model = await desk.judge({ text: web(`environment: {A: "x\${FAIRLEAD_CANARY}", FAIRLEAD_CANARY: }`) })
  delete process.env.FAIRLEAD_CANARY
  assert.deepEqual(model.services.web?.environment, { A: 'x', FAIRLEAD_CANARY: null })
})

test('a folder of deployments behind a link is the folder all the same', async () => {
  const folder = desk.folderFor({ text: '' })
  const link = join(desk.root, 'linked')
  symlinkSync(join(folder, '..'), link)
  writeFileSync(join(folder, 'compose.yaml'), web('volumes: ["./data:/data"]'))
  for (const path of [folder, join(link, 'blog')]) {
    const model = await desk.compose.model(path)
    await refuseModel(model, { project: 'blog', folder: { path, exists: true }, owners: nobody, reads: [] })
  }
})
