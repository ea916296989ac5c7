// Where a deployment's logs come from: container output, files that are recognised from its images, and custom ones.

import { parse } from 'yaml'
import type { ComposeModel, ComposeService } from '../../adapters/compose/model.ts'
import { Nullable, Type, Words } from '../../core/schema.ts'

export const LogSource = Type.Object({
  id: Type.String(),
  name: Type.String(),
  type: Words(['stdout', 'file']),
  path: Nullable(Type.String({ description: 'Relative to the folder of the deployment' })),
  builtin: Type.Boolean(),
})

export interface Source {
  id: string
  name: string
  type: 'stdout' | 'file'
  path: string | null
  builtin: boolean
}

export interface CustomSource {
  id: string
  name: string
  path: string
}

const output: Source = { id: 'stdout', name: 'Container output', type: 'stdout', path: null, builtin: true }

/** Log files inside the containers of known images; they can be read where a folder of the deployment is mounted there. */
const knownLogs: readonly { image: RegExp; logs: readonly [id: string, name: string, path: string][] }[] = [
  { image: /(^|\/)(nginx|openresty)\b/, logs: [['access', 'nginx access', '/var/log/nginx/access.log'], ['error', 'nginx error', '/var/log/nginx/error.log']] },
  { image: /(^|\/)(httpd|apache)/, logs: [['access', 'Apache access', '/usr/local/apache2/logs/access_log'], ['error', 'Apache error', '/usr/local/apache2/logs/error_log'], ['access2', 'Apache access', '/var/log/apache2/access.log'], ['error2', 'Apache error', '/var/log/apache2/error.log']] },
  { image: /(^|\/)(php|wordpress|drupal|joomla|nextcloud)\b/, logs: [['apache-access', 'Apache access', '/var/log/apache2/access.log'], ['apache-error', 'Apache error', '/var/log/apache2/error.log'], ['laravel', 'Laravel', '/var/www/html/storage/logs/laravel.log'], ['php', 'PHP errors', '/var/log/php/error.log']] },
  { image: /(^|\/)wordpress\b/, logs: [['wordpress', 'WordPress debug', '/var/www/html/wp-content/debug.log']] },
  { image: /(^|\/)nextcloud\b/, logs: [['nextcloud', 'Nextcloud', '/var/www/html/data/nextcloud.log']] },
  { image: /(^|\/)(mysql|mariadb|percona)\b/, logs: [['error', 'database errors', '/var/log/mysql/error.log'], ['slow', 'slow queries', '/var/log/mysql/slow.log']] },
  { image: /(^|\/)(postgres|postgis|timescaledb)\b/, logs: [['postgres', 'PostgreSQL', '/var/log/postgresql/postgresql.log'], ['pgdata', 'PostgreSQL', '/var/lib/postgresql/data/log/postgresql.log']] },
  { image: /(^|\/)(redis|valkey)\b/, logs: [['redis', 'Redis', '/var/log/redis/redis-server.log']] },
  { image: /(^|\/)(gitea|forgejo)\b/, logs: [['gitea', 'Gitea', '/data/gitea/log/gitea.log']] },
  { image: /(^|\/)ghost\b/, logs: [['ghost', 'Ghost', '/var/lib/ghost/content/logs/ghost.log']] },
  { image: /laravel/, logs: [['laravel', 'Laravel', '/var/www/html/storage/logs/laravel.log'], ['laravel-app', 'Laravel', '/app/storage/logs/laravel.log']] },
] // biome-ignore format: a table

export function logSources(model: ComposeModel | null, folder: string, metaText: string | null): Source[] {
  const builtin = Object.entries(model?.services ?? {}).flatMap(([name, service]) => filesOf(name, service, folder))
  const custom = customSources(metaText).map((one): Source => ({ ...one, type: 'file', builtin: false }))
  return [output, ...builtin, ...custom]
}

export function customSources(metaText: string | null): CustomSource[] {
  try {
    const { log_sources: list } = (metaText === null ? {} : (parse(metaText) ?? {})) as { log_sources?: unknown }
    if (!Array.isArray(list)) return []
    return list.filter(isCustom).map(({ id, name, path }) => ({ id, name, path }))
  } catch {
    return []
  }
}

function isCustom(one: unknown): one is CustomSource {
  const { id, name, path } = (one ?? {}) as Record<string, unknown>
  return typeof id === 'string' && typeof name === 'string' && typeof path === 'string'
}

function filesOf(service: string, { image = '', volumes = [] }: ComposeService, folder: string): Source[] {
  const found = knownLogs.filter(known => known.image.test(image)).flatMap(known => known.logs)
  const sources = found.flatMap(([id, name, inside]): Source[] => {
    const mount = volumes.find(
      one =>
        one.type === 'bind' &&
        one.source?.startsWith(`${folder}/`) &&
        (inside === one.target || inside.startsWith(`${one.target.replace(/\/$/, '')}/`)),
    )
    if (!mount?.source) return []
    const path = `${mount.source}${inside.slice(mount.target.replace(/\/$/, '').length)}`.slice(folder.length + 1)
    return [{ id: `${service}-${id}`, name: `${service}: ${name}`, type: 'file', path, builtin: true }]
  })
  return [...new Map(sources.map(one => [one.id, one])).values()]
}
