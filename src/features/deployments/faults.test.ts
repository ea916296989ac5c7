import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { API_KEY, type TestAgent, testAgent } from '../../testing/agent.ts'
import { type TestEngine, testEngine, testImage } from '../../testing/engine.ts'
import { engineProxy } from '../../testing/engine-proxy.ts'

const service = (id: string, command: string, more: string[] = []) =>
  [
    `  ${id}:`,
    `    image: ${testImage}`,
    `    command: ${command}`,
    '    init: true',
    '    stop_grace_period: 1s',
    ...more.map(line => `    ${line}`),
  ].join('\n')
const compose = (...services: string[]) => `services:\n${services.join('\n')}\n`

let world: TestEngine
let agent: TestAgent
before(async () => {
  world = testEngine()
  agent = await testAgent({ config: 'deployments:\n  ready_timeout: 15\n' })
})
after(async () => {
  await agent.stop()
  await world.cleanup()
})

const make = async (name: string, compose_content: string, more: object = {}, on = agent) => {
  const answer = await on.request('POST /api/deployments', {
    body: { name, compose_content, auto_start: true, ...more },
  })
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json().data
}
const detail = async (name: string, on = agent) => (await on.request(`GET /api/deployments/${name}`)).json().data
const containersOf = (project: string) =>
  world.engine.containers.list({ label: [`com.docker.compose.project=${project}`] })
const volumeNames = async () => (await world.engine.volumes.list()).map(one => one.Name)
const folderOf = (name: string) => join(agent.folder, 'deployments', name)

describe('failures of other systems', { concurrency: 4 }, () => {
  test('restart, stop and delete never remove a volume that was not asked for by name', async () => {
    const name = world.name('vol')
    await make(name, `${compose(service('db', 'sleep 3600', ['volumes: [data:/data]']))}volumes:\n  data: {}\n`)
    const volume = `${name}_data`
    for (const line of [
      `POST /api/deployments/${name}/restart`,
      `POST /api/deployments/${name}/stop`,
      `DELETE /api/deployments/${name}`,
    ]) {
      assert.equal((await agent.request(line)).statusCode, 200, line)
      assert.ok((await volumeNames()).includes(volume), line)
    }
    await agent.request('POST /api/deployments', { body: { name } })
    const plan = (await agent.request(`DELETE /api/deployments/${name}?remove_volumes=true&plan=true`)).json().data
    assert.ok(
      plan.changes.some(
        (one: { type: string; id: string; action: string }) =>
          one.type === 'volume' && one.id === volume && one.action === 'delete',
      ),
    )
    await agent.request(`DELETE /api/deployments/${name}?remove_volumes=true&remove_files=true`)
    assert.ok(!(await volumeNames()).includes(volume))
  })

  test('a moved folder or another project name never yields a new, empty volume', async () => {
    const name = world.name('old')
    const moved = world.name('new')
    const text = `${compose(service('db', 'sleep 3600', ['volumes: [data:/data]']))}volumes:\n  data: {}\n`
    await make(name, text)
    const renamed = await agent.request(`PUT /api/deployments/${name}`, {
      body: { compose_content: `name: ${moved}\n${text}` },
    })
    assert.equal(renamed.statusCode, 409, renamed.body)
    assert.match(renamed.json().error, /Keep `name/)
    await rename(folderOf(name), folderOf(moved))
    const started = await agent.request(`POST /api/deployments/${moved}/start`)
    assert.equal(started.statusCode, 409, started.body)
    assert.match(started.json().error, new RegExp(`name: ${name}`))
    assert.ok(!(await volumeNames()).includes(`${moved}_data`))
    await writeFile(join(folderOf(moved), 'compose.yaml'), `name: ${name}\n${text}`)
    const kept = await agent.request(`POST /api/deployments/${moved}/start`)
    assert.equal(kept.statusCode, 200, kept.body)
    assert.equal(kept.json().data.status, 'running')
  })

  test('two changes at the same instant: one waits, and nothing is left half done', async () => {
    const name = world.name('two')
    await make(name, compose(service('web', 'sleep 3600')))
    const put = (seconds: number) =>
      agent.request(`PUT /api/deployments/${name}`, {
        body: { compose_content: compose(service('web', `sleep ${seconds}`)) },
      })
    const [one, other] = await Promise.all([put(3601), put(3602)])
    assert.ok([200, 409].includes(one.statusCode) && [200, 409].includes(other.statusCode), `${one.body} ${other.body}`)
    const { services, status, compose_content } = await detail(name)
    assert.equal(status, 'running')
    assert.equal(services[0].in_sync, true)
    assert.match(compose_content, /360[12]/)
    assert.deepEqual(
      (await containersOf(name)).map(one => one.Names?.[0]),
      [`/${name}-web-1`],
    )
  })

  test('recreating a service also recreates those that share its network', async () => {
    const name = world.name('share')
    const both = (seconds: number) =>
      compose(service('a', `sleep ${seconds}`), service('b', 'sleep 3600', ['network_mode: service:a']))
    await make(name, both(3600))
    const plan = (
      await agent.request(`PUT /api/deployments/${name}?plan=true`, { body: { compose_content: both(3601) } })
    ).json().data
    const reasons = plan.changes
      .filter((one: { type: string }) => one.type === 'container')
      .map((one: { id: string; reason: string }) => `${one.id}: ${one.reason}`)
    assert.deepEqual(reasons, [
      `${name}-a-1: its configuration changed`,
      `${name}-b-1: it shares the network of a, which is replaced`,
    ])
    const before = (await containersOf(name)).map(one => one.Id)
    assert.equal((await agent.request(`POST /api/plans/${plan.id}/apply`)).statusCode, 200)
    assert.ok((await containersOf(name)).every(one => !before.includes(one.Id) && one.State === 'running'))
  })

  test('a one-shot that exited 0 does not degrade the status; one that failed does', async () => {
    const name = world.name('once')
    const made = await make(name, compose(service('job', '"true"'), service('web', 'sleep 3600')))
    assert.equal(made.status, 'running')
    assert.deepEqual(
      made.services.map((one: { status: string }) => one.status),
      ['exited', 'running'],
    )
    const [web] = await world.engine.containers.list({
      label: [`com.docker.compose.project=${name}`, 'com.docker.compose.service=web'],
    })
    await world.engine.containers.kill(web?.Id as string, 'SIGHUP')
    await seen(async () => (await detail(name)).status === 'error')
  })

  test('a service that never gets healthy is put back, and the reason says which', async () => {
    const name = world.name('ill')
    const check = (test: string) => [
      `healthcheck: {test: ["CMD-SHELL", "${test}"], interval: 300ms, retries: 2, start_period: 0s}`,
    ]
    await make(name, compose(service('web', 'sleep 3600', check('true'))))
    const answer = await agent.request(`PUT /api/deployments/${name}`, {
      body: { compose_content: compose(service('web', 'sleep 3600', check('false'))) },
    })
    assert.equal(answer.json().code, 'DEPLOY_FAILED', answer.body)
    assert.match(answer.json().details.reason, /web.*is unhealthy/)
    const now = await detail(name)
    assert.equal(now.status, 'running')
    await seen(async () => (await detail(name)).services[0].health === 'healthy')
  })

  test('a port that cannot bind while the image tag has moved: the old text, the old image and the old container are back', async () => {
    const name = world.name('tag')
    const image = `${world.prefix}/app:1`
    await world.engine.images.tag(testImage, image)
    const text = (ports: string) =>
      `services:\n  web:\n    image: ${image}\n    command: sleep 3600\n    init: true\n    stop_grace_period: 1s\n${ports}`
    await make(name, text(''))
    const old = (await containersOf(name))[0]
    const taken = await make(
      world.name('taken'),
      compose(service('web', 'sleep 3600', ['ports: ["127.0.0.1:38471:80"]'])),
    )
    assert.equal(taken.status, 'running')
    const id = await world.run('other', 'echo changed > /changed')
    await world.engine.containers.wait(id, 'not-running', {})
    await commit(id, image)
    const answer = await agent.request(`PUT /api/deployments/${name}`, {
      body: { compose_content: text('    ports: ["127.0.0.1:38471:80"]\n') },
    })
    assert.equal(answer.json().code, 'DEPLOY_FAILED', answer.body)
    assert.equal(answer.json().details.rolled_back, true)
    const now = (await containersOf(name))[0]
    assert.equal(now?.State, 'running')
    assert.equal(now?.ImageID, old?.ImageID)
    assert.equal((await world.engine.images.inspect(image)).Id, old?.ImageID)
    assert.equal((await detail(name)).compose_content, text(''))
  })

  test('cancelling a job ends its work within 5 s, and the old version is back when it is answered', async () => {
    const name = world.name('cancel')
    await make(name, compose(service('web', 'sleep 3600')))
    const slow = compose(
      service('web', 'sleep 3601', ['healthcheck: {test: ["CMD", "false"], interval: 60s, start_period: 600s}']),
    )
    const { job_id } = (
      await agent.request(`PUT /api/deployments/${name}`, {
        body: { compose_content: slow },
        headers: { prefer: 'respond-async' },
      })
    ).json()
    await seen(
      async () => /of 1 containers/.test((await agent.request(`GET /api/jobs/${job_id}`)).json().data.phase),
      40_000,
    )
    assert.equal((await detail(name)).status, 'deploying')
    const cancelling = agent.request(`POST /api/jobs/${job_id}/cancel`)
    const ended = "SELECT 1 FROM run_steps WHERE run_id = ? AND state IN ('failed', 'undone')"
    await seen(async () => agent.db.get(ended, job_id) !== undefined, 5000)
    const cancelled = await cancelling
    assert.equal(cancelled.json().data.status, 'cancelled', cancelled.body)
    const now = await detail(name)
    assert.equal(now.status, 'running')
    assert.match(now.compose_content, /sleep 3600/)
  })

  test("the agent's own environment never reaches a deployment", async () => {
    process.env.FAIRLEAD_TEST_CANARY = 'canary-of-the-agent'
    const name = world.name('env')
    await make(
      name,
      compose(service('web', 'sleep 3600', ['environment: {STOLEN: "${FAIRLEAD_TEST_CANARY}", PATHS: "${PATH}"}'])),
    )
    const [one] = await containersOf(name)
    const { Config } = (await world.engine.containers.inspect(one?.Id as string)) as {
      Config: { Env?: string[] | null }
    }
    delete process.env.FAIRLEAD_TEST_CANARY
    assert.ok(!JSON.stringify(Config).includes('canary-of-the-agent'))
    assert.ok(Config.Env?.includes('STOLEN='))
  })

  test('shell metacharacters in values start nothing', async () => {
    const marker = join(agent.folder, 'marker')
    const evil = `$(touch ${marker}) \`touch ${marker}\` ; touch ${marker} | & > ${marker} ' " \\ \n x`
    const name = world.name('shell')
    const made = await make(name, compose(service('web', 'sleep 3600', ['env_file: .env'])), {
      env_vars: [{ key: 'EVIL', value: evil }],
    })
    assert.equal(made.env_vars[0].value, evil)
    const [one] = await containersOf(name)
    const { Config } = (await world.engine.containers.inspect(one?.Id as string)) as {
      Config: { Env?: string[] | null }
    }
    assert.ok(Config.Env?.includes(`EVIL=${evil}`), JSON.stringify(Config.Env))
    assert.equal(existsSync(marker), false)
  })

  test('comments and order of the compose file and lines a person wrote in .env are kept', async () => {
    const name = world.name('keep')
    const text = `# mine\nservices:\n  # the web\n  web: {image: "${testImage}", command: sleep 3600, init: true} # inline\n`
    await make(name, text, { auto_start: false })
    await writeFile(join(folderOf(name), '.env'), '# a comment\nA = "one"   # why\n\nexport B=two\nC=three\n')
    const env_vars = [
      { key: 'A', value: 'one' },
      { key: 'B', value: '2' },
      { key: 'D', value: 'new' },
    ]
    const answer = await agent.request(`PUT /api/deployments/${name}`, { body: { env_vars } })
    assert.equal(answer.statusCode, 200, answer.body)
    assert.equal(await readFile(join(folderOf(name), '.env'), 'utf8'), '# a comment\nA = "one"   # why\n\nB=2\nD=new\n')
    assert.equal(answer.json().data.compose_content, text)
  })

  test('a name of a forbidden shape is refused and makes nothing', async () => {
    for (const name of [
      '',
      '.',
      '..',
      'A',
      'a b',
      '-a',
      '_a',
      'a/b',
      '../a',
      'a.b',
      'ä',
      'a'.repeat(64),
      'a\u0000',
      'a\n',
      '%2e%2e',
      'con:',
    ]) {
      const answer = await agent.request('POST /api/deployments', {
        body: { name, compose_content: compose(service('web', 'sleep 1')) },
      })
      assert.equal(answer.statusCode, 400, `${JSON.stringify(name)} ${answer.body}`)
    }
  })

  test('a folder with 40,000 data files costs no watch for each', async () => {
    const name = world.name('data')
    const folder = folderOf(name)
    await mkdir(join(folder, 'data', 'deep'), { recursive: true })
    for (let at = 0; at < 40_000; at += 1000)
      await Promise.all(
        Array.from({ length: 1000 }, (_, index) => writeFile(join(folder, 'data', `${at + index}`), '')),
      )
    await writeFile(join(folder, 'compose.yaml'), compose(service('web', 'sleep 3600')))
    await seen(async () => (await agent.request(`GET /api/deployments/${name}`)).statusCode === 200, 3000)
    const watches = await inotifyWatches()
    assert.ok(watches.length < 200, `${watches.length} watches`)
    await rm(folder, { recursive: true })
  })
})

describe('an engine that goes away', () => {
  test('in the middle of an update: clear error, degraded, and it recovers by itself', async () => {
    const proxy = await engineProxy(world.address)
    const own = await testAgent({
      empty: true,
      config: `engine:\n  socket: ${proxy.address}\ndeployments:\n  ready_timeout: 15\n`,
    })
    try {
      const name = world.name('away')
      await seen(async () => (await own.request('GET /api/health')).json().status === 'healthy')
      await make(name, compose(service('web', 'sleep 3600')), {}, own)
      const update = own.request(`PUT /api/deployments/${name}`, {
        body: { compose_content: compose(service('web', 'sleep 3601')) },
      })
      await seen(async () => (await detail(name, own)).status === 'deploying', 3000)
      await proxy.stop()
      const answer = await update
      assert.ok([502, 503].includes(answer.statusCode), answer.body)
      const health = (await own.request('GET /api/health')).json()
      assert.equal(health.status, 'degraded')
      assert.equal((await own.request(`POST /api/deployments/${name}/start`)).statusCode, 503)
      assert.equal((await detail(name, own)).status, 'unknown')
      await proxy.start()
      await seen(async () => (await own.request('GET /api/health')).json().status === 'healthy', 5000)
      const again = await own.request(`POST /api/deployments/${name}/start`)
      assert.equal(again.statusCode, 200, again.body)
      assert.equal(again.json().data.status, 'running')
    } finally {
      await own.stop()
      await proxy.close()
    }
  })
})

describe('the agent itself', () => {
  test('killed in the middle of an update: the old version is back after the restart', async () => {
    const first = await testAgent({ empty: true, config: 'api:\n  port: 0\ndeployments:\n  ready_timeout: 60\n' })
    const name = world.name('kill')
    await make(name, compose(service('web', 'sleep 3600')), {}, first).finally(() => first.stop('keep'))
    const old = (await containersOf(name))[0]?.Id
    const child = spawn(process.execPath, ['src/main.ts', '--config', join(first.folder, 'config.yml')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const url = await new Promise<string>(resolve => {
      let text = ''
      child.stdout.on('data', chunk => {
        text += chunk
        const found = /ready at (\S+)/.exec(text)
        if (found) resolve(found[1] as string)
      })
    })
    const post = async (path: string, method: string, body: object, token?: string) =>
      (
        await fetch(`${url}${path}`, {
          method,
          body: JSON.stringify(body),
          headers: {
            'content-type': 'application/json',
            ...(token ? { authorization: `Bearer ${token}`, prefer: 'respond-async' } : {}),
          },
        })
      ).json() as Promise<Record<string, string>>
    const { token } = await post('/api/auth/login', 'POST', { api_key: API_KEY })
    const never = compose(
      service('web', 'sleep 3601', ['healthcheck: {test: ["CMD", "false"], interval: 60s, start_period: 600s}']),
    )
    await post(`/api/deployments/${name}`, 'PUT', { compose_content: never }, token)
    await seen(
      async () =>
        (await world.engine.containers.list({ label: [`com.docker.compose.project=${name}`] })).some(
          one => one.State === 'running' && one.Id !== old,
        ),
      10_000,
    )
    child.kill('SIGKILL')
    await new Promise(resolve => child.once('exit', resolve))
    const second = await testAgent({ folder: first.folder })
    try {
      const now = await detail(name, second)
      assert.equal(now.status, 'running')
      assert.match(now.compose_content, /sleep 3600/)
      const [job] = (await second.request('GET /api/jobs')).json().data
      assert.equal(job.status, 'failed')
      const [event] = (await second.request(`GET /api/audit/events?resource_id=${name}`)).json().data
      assert.equal(event.details.interrupted, true)
    } finally {
      await second.stop()
    }
  })

  test('its database lost: deployments are found again from disk with full control', async () => {
    const first = await testAgent({ empty: true })
    const name = world.name('lost')
    await make(name, compose(service('web', 'sleep 3600')), {}, first).finally(() => first.stop('keep'))
    await rm(join(first.folder, 'data'), { recursive: true })
    const second = await testAgent({ folder: first.folder })
    try {
      await seen(async () => (await detail(name, second))?.status === 'running')
      assert.equal((await second.request(`POST /api/deployments/${name}/stop`)).json().data.status, 'stopped')
      assert.equal((await second.request(`DELETE /api/deployments/${name}?remove_files=true`)).statusCode, 200)
    } finally {
      await second.stop()
    }
  })

  test('two hundred folders of which ten are broken are all listed', async () => {
    const own = await testAgent({ empty: true })
    let first = 0
    try {
      for (let index = 0; index < 200; index++) {
        const folder = join(own.folder, 'deployments', `d${index}`)
        await mkdir(folder)
        await writeFile(
          join(folder, 'compose.yaml'),
          index % 20 === 0 ? 'services: [broken' : compose(service('web', 'sleep 1')),
        )
      }
      const begun = performance.now()
      await seen(async () => (await own.request('GET /api/deployments')).json().length === 200, 120_000)
      first = performance.now() - begun
      const list = (await own.request('GET /api/deployments')).json() as { status: string }[]
      assert.equal(list.filter(one => one.status === 'invalid').length, 10)
    } finally {
      await own.stop('keep')
    }
    const again = await testAgent({ folder: own.folder })
    try {
      const begun = performance.now()
      assert.equal((await again.request('GET /api/deployments')).json().length, 200)
      // Compose is asked about the ten broken ones only.
      assert.ok(performance.now() - begun < first / 2, `${performance.now() - begun} ms after ${first} ms`)
    } finally {
      await again.stop()
    }
  })
})

async function commit(container: string, image: string): Promise<void> {
  const [repo, tag] = image.split(':')
  const { socketPath } = { socketPath: world.address.replace('unix://', '') }
  const { request } = await import('node:http')
  await new Promise<void>((resolve, reject) => {
    const call = request(
      {
        socketPath,
        method: 'POST',
        path: `/commit?container=${container}&repo=${encodeURIComponent(repo as string)}&tag=${tag}`,
      },
      answer => {
        answer.resume()
        answer.on('end', () =>
          answer.statusCode === 201 ? resolve() : reject(new Error(`commit: ${answer.statusCode}`)),
        )
      },
    )
    call.on('error', reject)
    call.end()
  })
}

async function inotifyWatches(): Promise<string[]> {
  const { readdir } = await import('node:fs/promises')
  const all = await Promise.all(
    (await readdir('/proc/self/fdinfo')).map(fd => readFile(`/proc/self/fdinfo/${fd}`, 'utf8').catch(() => '')),
  )
  return all.flatMap(text => text.split('\n').filter(line => line.startsWith('inotify')))
}

async function seen(holds: () => Promise<boolean>, limitMs = 10_000): Promise<void> {
  const end = performance.now() + limitMs
  while (performance.now() < end) {
    if (await holds()) return
    await new Promise(next => setTimeout(next, 50))
  }
  assert.fail('it was not seen in time')
}
