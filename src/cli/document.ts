// The served OpenAPI document, read into what the client needs: one command for each operation.

import { ClientError } from './failure.ts'
import type { Schema } from './schema.ts'

/** An operation as a command. Plain data, so that it can be kept in a file. */
export interface Command {
  id: string
  /** What is typed: `['users', 'create']`. */
  words: string[]
  kind: 'query' | 'command' | 'download' | 'follow' | 'apply' | 'wait'
  summary: string
  description?: string
  permission: string
  deprecated?: true
  method: string
  /** With `{name}` for parameters. */
  path: string
  fields: Field[]
  /** Header parameters, as the document spells them. */
  headers: string[]
  plan: boolean
  upload: boolean
  /** The schema of what is printed: the answer's `data`, or the whole of a bare answer. */
  output?: Schema
  /** The answer is its output, without `data` around it. */
  bare: boolean
  /** The path of the websocket that goes on where this answer ends. */
  stream?: string
}

export interface Field {
  name: string
  where: 'path' | 'query' | 'body'
  required: boolean
  schema: Schema
  description?: string
  example?: unknown
}

export function commandsOf(text: string): Command[] {
  const document = parsed(text)
  const commands = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => commandOf(path, method.toUpperCase(), operation)),
  )
  const follows = new Set(commands.filter(command => command.kind === 'follow').map(command => command.path))
  for (const command of commands) {
    if (command.kind === 'query' && follows.has(`${command.path}/stream`)) command.stream = `${command.path}/stream`
  }
  return [...commands, ...waitingFor(commands)].sort((a, b) => (a.id < b.id ? -1 : 1))
}

interface Document {
  openapi: string
  paths: Record<string, Record<string, Operation>>
}

interface Operation {
  operationId: string
  summary?: string
  description?: string
  deprecated?: boolean
  parameters?: Parameter[]
  requestBody?: { content?: Record<string, { schema?: Schema; example?: Record<string, unknown> }> }
  responses?: Record<string, { content?: Record<string, { schema?: Schema }> }>
  'x-fairlead'?: {
    kind?: Command['kind']
    permission?: string
    arguments?: string[]
    plan?: boolean
    bare?: boolean
    alias?: string
  }
}

interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
  schema?: Schema
  example?: unknown
}

function parsed(text: string): Document {
  try {
    const document = JSON.parse(text) as Partial<Document>
    if (typeof document.openapi === 'string' && document.paths) return document as Document
  } catch {}
  throw new ClientError('The server does not serve an OpenAPI document at /api/openapi.json. Is it a Fairlead agent?')
}

function commandOf(path: string, method: string, operation: Operation): Command[] {
  const { operationId, parameters = [], 'x-fairlead': ours = {} } = operation
  if (!operationId || ours.alias) return []
  const output = outputOf(operation)
  return [
    {
      id: operationId,
      words: operationId.split('.').map(word => word.replaceAll('_', '-')),
      kind: ours.kind ?? (method === 'GET' ? 'query' : 'command'),
      summary: operation.summary ?? operationId,
      ...(operation.description ? { description: operation.description } : {}),
      permission: ours.permission ?? 'authenticated',
      ...(operation.deprecated ? { deprecated: true as const } : {}),
      method,
      path,
      fields: [...pathFields(parameters, ours.arguments), ...queryFields(parameters), ...bodyFields(operation)],
      headers: parameters.filter(one => one.in === 'header').map(one => one.name),
      plan: ours.plan ?? false,
      upload: operation.requestBody?.content?.['application/octet-stream'] !== undefined,
      ...(output ? { output } : {}),
      bare: ours.bare ?? false,
    },
  ]
}

function pathFields(parameters: Parameter[], order: string[] = []): Field[] {
  const fields = parameters.filter(one => one.in === 'path').map(one => fieldOf(one, 'path'))
  return fields.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
}

function queryFields(parameters: Parameter[]): Field[] {
  return parameters.filter(one => one.in === 'query' && one.name !== 'plan').map(one => fieldOf(one, 'query'))
}

function bodyFields({ requestBody }: Operation): Field[] {
  const { schema, example } = requestBody?.content?.['application/json'] ?? {}
  return Object.entries(schema?.properties ?? {}).map(([name, field]) =>
    fieldOf(
      {
        name,
        in: 'body',
        required: schema?.required?.includes(name) ?? false,
        schema: field,
        example: example?.[name],
      },
      'body',
    ),
  )
}

function fieldOf(
  { name, required = false, description, schema = {}, example }: Parameter,
  where: Field['where'],
): Field {
  const words = description ?? schema.description
  return {
    name,
    where,
    required,
    schema,
    ...(words ? { description: words } : {}),
    ...(example === undefined ? {} : { example }),
  }
}

/** Of the forms a success can take, the operation's own comes first. */
function outputOf({ responses = {}, 'x-fairlead': ours = {} }: Operation): Schema | undefined {
  const successes = [responses['201'], responses['200']].map(one => one?.content?.['application/json']?.schema)
  const forms = successes.flatMap(schema => schema?.anyOf ?? schema ?? [])
  const own = forms.find(form => !isMechanisms(form))
  return ours.bare ? own : own?.properties?.data
}

/** A plan or a job, which every change can answer, is a reference; an operation's own form is spelled out. */
const isMechanisms = (form: Schema): boolean => form.$ref !== undefined || form.properties?.data?.$ref !== undefined

/** Waiting is the client's own: it looks at a job until it has ended. */
function waitingFor(commands: Command[]): Command[] {
  const job = commands.find(command => command.id === 'jobs.get')
  if (!job) return []
  const timeout: Field = {
    name: 'timeout',
    where: 'query',
    required: false,
    schema: { type: 'integer' },
    description: 'Give up after so many seconds; the job goes on',
  }
  return [
    {
      ...job,
      id: 'jobs.wait',
      words: ['jobs', 'wait'],
      kind: 'wait',
      summary: 'Wait until a job has ended, and print its answer',
      fields: [...job.fields, timeout],
    },
  ]
}
