// The logs of the agent itself: which there are, their lines, and which of them somebody may read.

import { basename } from 'node:path'
import { followLog, type LogLine, type LogQuery, readLog } from '../../adapters/host/index.ts'
import { fail, notFound } from '../../core/failure.ts'
import { momentAt, Since } from '../../core/moment.ts'
import type { Actor } from '../../core/permission.ts'
import { Nullable, type Static, Time, Type, Words } from '../../core/schema.ts'
import { DeploymentName } from '../users/index.ts'

export const LogSource = Type.Object({
  id: Type.String(),
  name: Type.String(),
  type: Words(['file']),
  path: Type.String({ description: 'The whole path for administrators, the file name for others' }),
})

export const LogEntry = Type.Object({
  time: Nullable(Time({ description: 'When the line was written; null when it does not say' })),
  service: Type.String({ description: 'The id of the source' }),
  stream: Words(['file']),
  line: Type.String({ description: 'As it stands in the file, without its line break' }),
})

export const logFields = {
  source: Type.String({ default: 'agent', maxLength: 100, description: 'The id of a source' }),
  tail: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 100,
    description: 'The last so many lines; 0 is all',
  }),
  filter: Type.Optional(
    Type.String({ maxLength: 1000, description: 'Only lines that contain this text, in upper or lower case' }),
  ),
  deployment: Type.Optional({
    ...DeploymentName,
    description: 'Only lines about this deployment; needed by who is no administrator',
  }),
  since: Type.Optional(Since('Not before this.')),
}

export interface LogAsked {
  source: string
  tail: number
  filter?: string
  deployment?: string
  since?: string
}

export type Source = Static<typeof LogSource>
type Entry = Static<typeof LogEntry>

/** The whole log tells of everybody's deployments. */
export function requireDeployment(actor: Actor, { deployment }: Pick<LogAsked, 'deployment'>): void {
  if (deployment !== undefined || readsAll(actor)) return
  fail(
    'FORBIDDEN',
    'Only an administrator reads the whole log. Name one of your deployments with `deployment` to read the lines about it.',
  )
}

export function logReader(sources: readonly Source[], actor: Actor) {
  const found = (id: string): Source => sources.find(source => source.id === id) ?? notFound('log source', id)
  return {
    sources: () =>
      readsAll(actor) ? [...sources] : sources.map(source => ({ ...source, path: basename(source.path) })),

    read(asked: LogAsked): AsyncIterable<Entry[]> {
      const { id, path } = found(asked.source)
      return entries(id, readLog(path, queryOf(asked)))
    },

    follow(asked: LogAsked, signal: AbortSignal): AsyncIterable<Entry[]> {
      const { id, path } = found(asked.source)
      return entries(id, followLog(path, { ...queryOf(asked), signal }))
    },
  }
}

const readsAll = (actor: Actor): boolean => actor.role === 'admin' && actor.deployments === 'all'

async function* entries(service: string, batches: AsyncIterable<LogLine[]>): AsyncGenerator<Entry[]> {
  for await (const lines of batches)
    yield lines.map(({ time, line }) => ({ time: time?.toISOString() ?? null, service, stream: 'file', line }))
}

function queryOf({ tail, filter, deployment, since }: LogAsked): LogQuery {
  const moment = momentAt('since', since)
  return {
    tail,
    filter: deployment === undefined ? filter : aboutDeployment(deployment, filter),
    since: moment === undefined ? undefined : new Date(moment),
  }
}

function aboutDeployment(name: string, filter: string | undefined): (line: string) => boolean {
  const field = `"deployment":${JSON.stringify(name)}`
  const wanted = filter?.toLowerCase() ?? ''
  return line => line.includes(field) && deploymentOf(line) === name && line.toLowerCase().includes(wanted)
}

/** Only the field of the line itself counts: what a caller sent may hold anything. */
function deploymentOf(line: string): unknown {
  try {
    return (JSON.parse(line) as { deployment?: unknown }).deployment
  } catch {
    return undefined
  }
}
