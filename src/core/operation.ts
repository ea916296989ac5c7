// Operations: the values the agent is a list of. HTTP, OpenAPI, plan mode, audit and the client only read this list.

import type { Readable } from 'node:stream'
import { type Code, type Failure, fail } from './failure.ts'
import type { Fresh } from './fresh.ts'
import type { Access, Actor, Scope } from './permission.ts'
import {
  type Annotated,
  fromText,
  isPaged,
  type Static,
  type TObject,
  type TSchema,
  validate,
  validationErrors,
} from './schema.ts'
import type { Results, Step } from './step.ts'

/** What can be asked. Each area adds its reader here by declaration merging; readers are bound to the actor. */
// biome-ignore lint/suspicious/noEmptyInterface: filled by declaration merging
export interface Readers {}

/** Everything a `read` or `decide` is given: readers only, so it cannot change anything. */
export type Ask = Readers & {
  actor: Actor
  /** Ids and generated secrets: the only randomness a decision may use. */
  fresh: Fresh
  signal: AbortSignal
}

/** For whom a reader is made, and where it notes the files it has read. */
export interface Viewer {
  actor: Actor
  noteFile(path: string, sha256: string | null): void
}

export type ReaderFactories = { [K in keyof Readers]: (viewer: Viewer) => Readers[K] }

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface HttpLine {
  method: Method
  /** With `/api`, and `:name` for parameters. */
  path: string
  /** Further methods that mean the same. */
  also?: readonly Method[]
  status?: 200 | 201
  /** Fields that come in the query although the method has a body. */
  query?: readonly string[]
  /** The answer is the output itself, without `data` and `message`. */
  bare?: true
  /** The body is a stream of bytes, not JSON; all fields are in the query. */
  upload?: true
}

interface Common<I extends TObject, O extends TSchema> {
  summary: string
  description?: string
  http: HttpLine
  permission: Access
  /** Which deployments it touches and the level it needs there; may depend on the whole input. */
  scope?(input: Static<I>): Scope[]
  /** What permission and scope cannot say of the caller: throws for who may not. Asked again while a follow goes on. */
  admit?(actor: Actor, input: Static<I>): void
  input: I
  output: O
  /** Valid in the standard test world. */
  example: Static<I>
  /** Codes beyond those the mechanism itself can answer. */
  fails?: readonly Code[]
}

export interface QuerySpec<I extends TObject, O extends TSchema> extends Common<I, O> {
  /** A frozen answer, and each frozen item of a frozen list, is made into text once. */
  read(ask: Ask, input: Static<I>): Promise<Readonly<Static<O>>> | Readonly<Static<O>>
  /** The part of the answer that `If-Match` compares; by default the whole answer. */
  revision?(output: Static<O>): string
}

export interface CommandSpec<I extends TObject, O extends TSchema> extends Common<I, O> {
  resource: { type: string; id?(input: Static<I>, results: Results): string | number | null | undefined }
  /** The name in plans and audit events; `<resource type>.<last part of the id>` unless said otherwise. */
  action?: string
  /** Taken before it decides; `ask` is for what only looking can tell, such as the deployment a container belongs to. */
  locks?(input: Static<I>, ask: Ask): string[] | Promise<string[]>
  /** The deployment that the named thing belongs to, where `scope` cannot know: its plans and jobs are seen by who sees that. */
  belongs?(ask: Ask, input: Static<I>): Promise<string | null> | string | null
  decide(ask: Ask, input: Static<I>): Promise<Decided> | Decided
  reply?(ask: Ask, input: Static<I>, results: Results): Promise<Static<O>> | Static<O>
  message?: string
  /** What went wrong although all that was done stays: the answer is this failure, and nothing is undone. */
  settled?(results: Results): Failure | undefined
  /** It concerns nobody but its maker: others see its plans and jobs only as administrators. */
  personal?: true
  /** False for what plan mode refuses: logins, plans themselves, and tests of something outside. */
  plannable?: false
}

export interface DownloadSpec<I extends TObject> extends Omit<Common<I, TSchema>, 'output'> {
  mediaTypes: readonly string[]
  open(ask: Ask, input: Static<I>): Promise<Download> | Download
}

export interface FollowSpec<I extends TObject> extends Omit<Common<I, TSchema>, 'output'> {
  /** Frames until it ends or the signal says so. */
  open(ask: Ask, input: Static<I>): AsyncIterable<object> | Promise<AsyncIterable<object>>
}

export interface ApplySpec<I extends TObject> extends Omit<Common<I, TSchema>, 'output'> {
  plan(input: Static<I>): string
}

/** Steps, and where a login makes somebody known, who it was. */
export type Decided = Step[] | { steps: Step[]; actor: Actor }

export interface Download {
  mediaType: string
  /** Without a name it is shown in place instead of being saved. */
  filename?: string
  chunks: AsyncIterable<string | Uint8Array> | Readable
}

interface Base {
  readonly id: string
  readonly input: TObject
  readonly output: TSchema
  readonly fields: Fields
}

export interface Query extends Base, Omit<QuerySpec<TObject, TSchema>, keyof Base> {
  readonly kind: 'query'
}
export interface Command extends Base, Omit<CommandSpec<TObject, TSchema>, keyof Base> {
  readonly kind: 'command'
  readonly action: string
}
export interface DownloadOperation extends Base, Omit<DownloadSpec<TObject>, keyof Base> {
  readonly kind: 'download'
}
export interface FollowOperation extends Base, Omit<FollowSpec<TObject>, keyof Base> {
  readonly kind: 'follow'
}
export interface ApplyOperation extends Base, Omit<ApplySpec<TObject>, keyof Base> {
  readonly kind: 'apply'
}
export type Operation = Query | Command | DownloadOperation | FollowOperation | ApplyOperation

/** A question: it reads and changes nothing. */
export function query<I extends TObject, O extends TSchema>(id: string, spec: QuerySpec<I, O>): Query {
  return { kind: 'query', id, fields: fieldsOf(spec.http, spec.input), ...spec } as unknown as Query
}

/** A change: it decides on steps, and the runner acts. */
export function command<I extends TObject, O extends TSchema>(id: string, spec: CommandSpec<I, O>): Command {
  const action = spec.action ?? `${spec.resource.type}.${id.split('.').at(-1)}`
  return { kind: 'command', id, fields: fieldsOf(spec.http, spec.input), ...spec, action } as unknown as Command
}

/** A stream of bytes as a file. */
export function download<I extends TObject>(id: string, spec: DownloadSpec<I>): DownloadOperation {
  return {
    kind: 'download',
    id,
    fields: fieldsOf(spec.http, spec.input),
    output: {},
    ...spec,
  } as unknown as DownloadOperation
}

/** A websocket that follows something. */
export function follow<I extends TObject>(id: string, spec: FollowSpec<I>): FollowOperation {
  return {
    kind: 'follow',
    id,
    fields: fieldsOf(spec.http, spec.input),
    output: {},
    ...spec,
  } as unknown as FollowOperation
}

/** The one operation that performs another's stored request. */
export function apply<I extends TObject>(id: string, spec: ApplySpec<I>): ApplyOperation {
  return {
    kind: 'apply',
    id,
    fields: fieldsOf(spec.http, spec.input),
    output: {},
    ...spec,
  } as unknown as ApplyOperation
}

/** A list that is too long to gather: its items are sent as they come, in batches that are each small enough to hold. */
export class Streamed<T> {
  readonly batches: AsyncIterable<readonly T[]>
  constructor(batches: AsyncIterable<readonly T[]>) {
    this.batches = batches
  }
}

/** A streamed list where the schema says array. */
export const streamed = <T>(batches: AsyncIterable<readonly T[]>): T[] => new Streamed(batches) as unknown as T[]

/** Where each input field travels. */
export interface Fields {
  path: readonly string[]
  query: ReadonlySet<string>
  body: ReadonlySet<string>
  /** It takes no input at all. */
  none: boolean
}

export interface RawInput {
  params: Record<string, string>
  query: Record<string, unknown>
  body: unknown
}

/** The validated input, put together from path, query and body. */
export function readInput(operation: Operation, raw: RawInput): unknown {
  const { fields } = operation
  if (fields.none && raw.body == null && isEmpty(raw.query)) return {}
  const schemas = operation.input.properties as Record<string, TSchema>
  const input: Record<string, unknown> = {}
  const unknown: string[] = []
  for (const name of fields.path) input[name] = fromText(schemas[name] as TSchema, raw.params[name])
  for (const [name, text] of Object.entries(raw.query)) {
    if (fields.query.has(name)) input[name] = fromText(schemas[name] as TSchema, text)
    else unknown.push(name)
  }
  if (raw.body !== undefined && raw.body !== null) {
    if (typeof raw.body !== 'object' || Array.isArray(raw.body)) {
      fail('VALIDATION_FAILED', 'The body must be a JSON object.', [{ path: '', message: 'must be an object' }])
    }
    for (const [name, value] of Object.entries(raw.body)) {
      if (fields.body.has(name)) input[name] = value
      else unknown.push(name)
    }
  }
  if (unknown.length > 0) {
    const known = [...fields.query, ...fields.body]
    const sentence = `${unknown.map(name => `\`${name}\``).join(', ')} is not known here; known: ${known.join(', ') || 'none'}.`
    fail(
      'VALIDATION_FAILED',
      sentence,
      unknown.map(name => ({ path: name, message: 'is not known' })),
    )
  }
  return validate(operation.input, input)
}

export const isMutation = (operation: Operation): operation is Command | ApplyOperation =>
  operation.kind === 'command' || operation.kind === 'apply'

/** Logins and plans change nothing that could be previewed, so they are never jobs; nor are uploads, whose bytes come with the request. */
export const mayBeJob = (operation: Operation): boolean =>
  operation.kind === 'apply' ||
  (operation.kind === 'command' && operation.plannable !== false && !operation.http.upload)

/** The list is right, or the agent does not start. */
export function checkOperations(operations: readonly Operation[]): void {
  const ids = new Set<string>()
  const lines = new Set<string>()
  for (const operation of operations) {
    const wrong = (what: string): never => {
      throw new Error(`Operation ${operation.id}: ${what}`)
    }
    if (ids.has(operation.id)) wrong('its id is taken')
    ids.add(operation.id)
    if (!operation.permission) wrong('declares no permission')
    if (!operation.summary) wrong('has no summary')
    if (!operation.example) wrong('has no example')
    for (const method of [operation.http.method, ...(operation.http.also ?? [])]) {
      const line = `${method} ${operation.http.path}`
      if (lines.has(line)) wrong(`${line} is taken`)
      lines.add(line)
    }
    if (!operation.http.path.startsWith('/api/')) wrong('its path is not below /api/')
    if (isPaged(operation.output) && !operation.input.properties.limit) wrong('a paged list takes limit and offset')
  }
}

/** For tests: it compiles every schema, which would cost a start its speed. */
export function checkExamples(operations: readonly Operation[]): void {
  for (const { id, input, example } of operations) {
    const [fault] = validationErrors(input, example)
    if (fault) throw new Error(`Operation ${id}: its example is not valid: ${fault.path} ${fault.message}`)
  }
}

function fieldsOf(http: HttpLine, input: TObject): Fields {
  const path = [...http.path.matchAll(/:(\w+)/g)].map(match => match[1] as string)
  const rest = Object.keys((input as Annotated).properties ?? {}).filter(name => !path.includes(name))
  const inQuery = (name: string) =>
    http.upload || http.method === 'GET' || http.method === 'DELETE' || http.query?.includes(name)
  const deletes = http.method === 'DELETE' || http.also?.includes('DELETE')
  return {
    path,
    query: new Set(rest.filter(name => inQuery(name) || deletes)),
    body: new Set(rest.filter(name => !http.upload && (!inQuery(name) || deletes))),
    none: path.length + rest.length === 0,
  }
}

function isEmpty(query: Record<string, unknown>): boolean {
  for (const _ in query) return false
  return true
}
