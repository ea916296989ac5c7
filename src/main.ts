// The process: configuration, agent, listening, and stopping on a signal.

import { parseArgs } from 'node:util'
import { logFileOf, openAgent, version } from './agent.ts'
import { ConfigError, loadConfig } from './config.ts'
import { Failure } from './core/failure.ts'
import { openLog } from './log.ts'
import { StoreError } from './store/database.ts'

const startedAt = performance.now()

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { config: { type: 'string' }, version: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  if (values.version) return void console.log(version)
  if (values.help) return void console.log('usage: npm start -- [--config FILE] [--version] [--help]')

  const loaded = await loadConfig({ file: values.config, env: process.env, cwd: process.cwd() })
  const { config } = loaded
  const log = openLog({
    level: config.log.level,
    format: config.log.format,
    file: logFileOf(config.data_path),
    stdout: 1,
  })
  for (const warning of loaded.warnings) log.logger.warn(warning)
  const agent = await openAgent({ loaded, env: process.env, log: log.logger, startedAt })
  const address = await agent.app.listen({ host: config.api.host, port: config.api.port })

  // Who reads the output may go away; the agent stays.
  process.stdout.on('error', () => {})
  const [key] = config.auth.api_keys
  process.stdout.write(`Fairlead ${version} is ready at ${address}\n`)
  if (loaded.created && key) process.stdout.write(`API key (shown once, kept in ${loaded.file}): ${key}\n`)
  else process.stdout.write(`The API keys are kept in ${loaded.file}\n`)

  const stop = async (signal: string) => {
    log.logger.info({ signal }, 'stopping')
    const forced = setTimeout(() => process.exit(1), 30_000)
    forced.unref()
    await agent.close()
    await log.close()
    process.exit(0)
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

main().catch((error: unknown) => {
  const { code, message } = error as { code?: string; message: string }
  const known =
    error instanceof ConfigError || error instanceof StoreError || error instanceof Failure || code !== undefined
  const words =
    code === 'EADDRINUSE'
      ? `The address is taken by another program (${message}). Set api.port to another one.`
      : message
  process.stderr.write(known ? `fairlead: ${words}\n` : `fairlead: it failed at its start: ${(error as Error).stack}\n`)
  process.exit(1)
})
