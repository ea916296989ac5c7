// The logs of a deployment as they are asked for: which containers or which file, read or followed.

import { join } from 'node:path'
import type { Engine } from '../../adapters/container-engine/engine.ts'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import { followLogs, type LogEntry, readLogs } from '../../adapters/container-engine/log-stream.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import type { Files } from '../../adapters/files/index.ts'
import { followLog, type LogLine, readLog } from '../../adapters/host/index.ts'
import { fail } from '../../core/failure.ts'
import { momentAt, Since } from '../../core/moment.ts'
import { Type, Words } from '../../core/schema.ts'
import type { DeploymentFolders, Folder } from './folders.ts'
import { logSources, type Source } from './log-sources.ts'
import { isMadeIn } from './made-in.ts'

export const LogLineSchema = Type.Object({
  time: Type.String({ description: 'RFC 3339; empty for a line of a file that has none' }),
  service: Type.String(),
  stream: Words(['stdout', 'stderr', 'file']),
  line: Type.String(),
})

export const logFields = {
  tail: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 100,
    description: 'The last so many lines; 0 is all',
  }),
  service: Type.Optional(Type.String({ maxLength: 100, description: 'One service; every one when left out' })),
  source: Type.Optional(
    Type.String({ maxLength: 100, description: '`stdout` for container output (default), or the id of a file source' }),
  ),
  filter: Type.Optional(Type.String({ maxLength: 1000, description: 'Only lines that contain this text' })),
  since: Type.Optional(Since('Not before this.')),
}

export interface LogQuery {
  tail: number
  service?: string
  source?: string
  filter?: string
  since?: string
}

export interface LogParts {
  folders: DeploymentFolders
  files: Files
  engine: Engine
  mirror: EngineMirror
}

export type Line = Omit<LogEntry, 'stream'> & { stream: 'stdout' | 'stderr' | 'file' }

export class DeploymentLogs {
  readonly #parts: LogParts

  constructor(parts: LogParts) {
    this.#parts = parts
  }

  async read(folder: Folder, query: LogQuery, signal: AbortSignal): Promise<AsyncIterable<readonly Line[]>> {
    const { engine } = this.#parts
    const since = sinceOf(query)
    const source = sourceOf(folder, query)
    if (source.type === 'file')
      return this.#lines(
        readLog(this.#path(folder, source), { ...this.#fileQuery(query, since), open: this.#open(folder, source) }),
        source,
      )
    return readLogs(engine, this.#containers(folder, query), { tail: query.tail, filter: query.filter, since, signal })
  }

  async follow(folder: Folder, query: LogQuery, signal: AbortSignal): Promise<AsyncIterable<readonly Line[]>> {
    const { engine, mirror } = this.#parts
    const since = sinceOf(query)
    const source = sourceOf(folder, query)
    if (source.type === 'file') {
      return this.#lines(
        followLog(this.#path(folder, source), {
          ...this.#fileQuery(query, since),
          open: this.#open(folder, source),
          signal,
        }),
        source,
      )
    }
    this.#containers(folder, query)
    const pick = () => this.#containers(folder, query)
    return followLogs(engine, mirror, pick, { tail: query.tail, filter: query.filter, since, signal })
  }

  #containers({ name, path, model }: Folder, { service }: LogQuery): ContainerEntry[] {
    const { mirror } = this.#parts
    if (mirror.state === 'down') fail('ENGINE_UNAVAILABLE', mirror.reason ?? 'The container engine does not answer.')
    const all = (model ? mirror.project(model.project) : []).filter(one => !one.compose?.oneoff && isMadeIn(one, path))
    if (service === undefined) return all
    const known = (model && Object.hasOwn(model.services, service)) || all.some(one => one.compose?.service === service)
    if (!known) fail('NOT_FOUND', `Deployment "${name}" has no service "${service}".`)
    return all.filter(one => one.compose?.service === service)
  }

  #path(folder: Folder, source: Source): string {
    return join(folder.path, source.path as string)
  }

  /** Only through the confined folder: a path or link that leaves it is refused. */
  #open(folder: Folder, source: Source) {
    const { files } = this.#parts
    const base = join(folder.path, source.path as string)
    return (path: string) => files.open(`${folder.name}/${source.path}${path.slice(base.length)}`)
  }

  #fileQuery({ tail, filter }: LogQuery, since: Date | undefined) {
    return { tail, ...(filter === undefined ? {} : { filter }), ...(since === undefined ? {} : { since }) }
  }

  async *#lines(batches: AsyncIterable<LogLine[]>, { id }: Source): AsyncGenerator<Line[]> {
    for await (const lines of batches)
      yield lines.map(({ line, time }) => ({ time: time?.toISOString() ?? '', service: id, stream: 'file', line }))
  }
}

function sinceOf({ since }: LogQuery): Date | undefined {
  const moment = momentAt('since', since)
  return moment === undefined ? undefined : new Date(moment)
}

function sourceOf(folder: Folder, { source = 'stdout' }: LogQuery): Source {
  const known = logSources(folder.model, folder.path, folder.metaText)
  return (
    known.find(one => one.id === source) ??
    fail(
      'NOT_FOUND',
      `Deployment "${folder.name}" has no log source "${source}". It has: ${known.map(({ id }) => id).join(', ')}.`,
    )
  )
}
