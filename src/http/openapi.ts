// The OpenAPI 3.1 document, made from the list of operations. The command-line client is made from this document.

import { type Code, catalogue } from '../core/failure.ts'
import { isMutation, type Method, mayBeJob, type Operation } from '../core/operation.ts'
import { PlanSchema } from '../core/plan-schema.ts'
import { type Annotated, isPaged, redact, type TSchema, Type } from '../core/schema.ts'

export type OpenApi = Record<string, unknown>

export function openApiOf(operations: readonly Operation[], version: string): OpenApi {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations.toSorted((a, b) => (readingOrder(a) < readingOrder(b) ? -1 : 1))) {
    const path = operation.http.path.replace(/:(\w+)/g, '{$1}')
    paths[path] ??= {}
    const methods = [operation.http.method, ...(operation.http.also ?? [])]
    for (const [index, method] of methods.entries()) {
      paths[path][method.toLowerCase()] = describe(
        operation,
        method,
        index === 0 ? operation.id : `${operation.id}_${method.toLowerCase()}`,
      )
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Fairlead',
      version,
      description:
        'Controls Docker Compose deployments and all that surrounds them. Every change can be previewed with `plan=true`, is done as previewed or undone, and is on record.',
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    tags: [...new Set(operations.map(tagOf))].map(name => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      schemas: { Plan: PlanSchema, Error: ErrorSchema, Job: JobStarted },
      responses: Object.fromEntries(
        [...byStatus(Object.keys(catalogue) as Code[])].map(([status, codes]) => [status, errorResponse(codes)]),
      ),
    },
  }
}

/** By path, and within it as one comes to it: look, make, change, remove. */
const readingOrder = ({ http }: Operation): string =>
  `${http.path} ${'GET POST PUT PATCH DELETE'.indexOf(http.method) + 10}`

const ErrorSchema = Type.Object({
  error: Type.String(),
  code: Type.Optional(Type.String()),
  details: Type.Optional(Type.Unknown()),
})
const JobStarted = Type.Object({ job_id: Type.String(), message: Type.String() })
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

function describe(operation: Operation, method: Method, operationId: string): object {
  const { http, summary, description, permission, fields } = operation
  const body = method === 'DELETE' ? undefined : bodyOf(operation)
  return {
    operationId,
    summary,
    ...(description ? { description } : {}),
    tags: [tagOf(operation)],
    ...(permission === 'public' ? { security: [] } : {}),
    parameters: parametersOf(operation, method),
    ...(body ? { requestBody: body } : {}),
    responses: responsesOf(operation),
    'x-fairlead': {
      kind: operation.kind,
      permission,
      arguments: [...fields.path],
      ...(isMutation(operation) ? { plan: plannable(operation) } : {}),
      ...(http.bare ? { bare: true } : {}),
      ...(isPaged(operation.output) ? { paged: true } : {}),
      ...(operationId === operation.id ? {} : { alias: operation.id }),
    },
  }
}

function parametersOf(operation: Operation, method: Method): object[] {
  const { fields, input, example } = operation
  const schemas = input.properties as Record<string, TSchema>
  const parameter = (name: string, where: 'path' | 'query') => {
    const schema = schemas[name] as TSchema
    const shown = redact(schema, (example as Record<string, unknown>)[name])
    return {
      name,
      in: where,
      required: where === 'path' || isRequired(operation, name),
      ...(description(schema) ? { description: description(schema) } : {}),
      schema: forInput(schema),
      ...(shown === undefined ? {} : { example: shown }),
    }
  }
  const inQuery = [...fields.query].filter(name => method === 'DELETE' || !fields.body.has(name))
  return [
    ...fields.path.map(name => parameter(name, 'path')),
    ...inQuery.map(name => parameter(name, 'query')),
    ...(plannable(operation) ? [planParameter] : []),
    ...(isMutation(operation) && operation.permission !== 'public' ? [idempotencyKey] : []),
    ...(mayBeJob(operation) ? [prefer] : []),
    ...(isMutation(operation) && ['PUT', 'PATCH', 'DELETE'].includes(method) ? [ifMatch] : []),
    ...(operation.kind === 'query' && method === 'GET' ? [ifNoneMatch] : []),
  ]
}

const planParameter = {
  name: 'plan',
  in: 'query',
  required: false,
  description: 'Preview: answer the plan and change nothing.',
  schema: { type: 'boolean', default: false },
}
const header = (name: string, text: string) => ({
  name,
  in: 'header',
  required: false,
  description: text,
  schema: { type: 'string' },
})
const idempotencyKey = header('Idempotency-Key', 'The same key and request within 24 h returns the first answer.')
const prefer = header('Prefer', '`respond-async`: answer 201 with a job at once.')
const ifMatch = header('If-Match', 'Only when this is still the version: 412 otherwise.')
const ifNoneMatch = header('If-None-Match', '304 when this is still the version.')

function bodyOf(operation: Operation): object | undefined {
  const { fields, input, example, http } = operation
  if (http.upload)
    return { required: true, content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } } }
  if (fields.body.size === 0) return undefined
  const names = [...fields.body]
  const required = names.filter(name => isRequired(operation, name))
  const schema = {
    type: 'object',
    properties: Object.fromEntries(
      names.map(name => [name, forInput((input.properties as Record<string, TSchema>)[name] as TSchema)]),
    ),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  }
  const shown = redact(input, example) as Record<string, unknown>
  const body = Object.fromEntries(names.filter(name => shown[name] !== undefined).map(name => [name, shown[name]]))
  return { required: required.length > 0, content: { 'application/json': { schema, example: body } } }
}

function responsesOf(operation: Operation): Record<string, object> {
  const success: Record<string, object> = {}
  const json = (text: string, schema: object) => ({ description: text, content: { 'application/json': { schema } } })
  const planned = {
    type: 'object',
    properties: { data: ref('Plan'), message: { type: 'string' } },
    required: ['data', 'message'],
  }
  const status = operation.http.status ?? 200
  if (operation.kind === 'download') {
    success[200] = {
      description: 'The file',
      content: Object.fromEntries(operation.mediaTypes.map(type => [type, {}])),
    }
  } else if (operation.kind === 'follow') {
    success[101] = { description: 'A websocket; the first message is the token' }
  } else if (operation.kind === 'apply') {
    success[200] = json('What the planned request answers, with the plan', { type: 'object' })
    success[201] = json('What the planned request answers, with the plan', { type: 'object' })
  } else {
    const own = answerSchema(operation)
    const options = [
      own,
      ...(plannable(operation) && status === 200 ? [planned] : []),
      ...(mayBeJob(operation) && status === 201 ? [ref('Job')] : []),
    ]
    success[status] = json('Done', options.length > 1 ? { anyOf: options } : own)
    if (plannable(operation) && status === 201) success[200] = json('The plan, with plan=true', planned)
    if (mayBeJob(operation) && status === 200)
      success[201] = json('Started as a job, with Prefer: respond-async', ref('Job'))
  }
  if (isMutation(operation)) success[200] = { ...success[200], content: { ...contentOf(success[200]), ...stepLines } }
  if (operation.kind === 'query' && operation.http.method === 'GET') success[304] = { description: 'Not changed' }
  const errors = [...byStatus(codesOf(operation))].map(([code]) => [code, { $ref: `#/components/responses/${code}` }])
  return { ...success, ...Object.fromEntries(errors) }
}

const contentOf = (answer: object | undefined): object => (answer as { content?: object } | undefined)?.content ?? {}

const stepLines = {
  'application/x-ndjson': {
    schema: {
      type: 'string',
      description:
        'A line of JSON for each step as it happens; the last one is `{"type":"result","status":…,"body":…}`',
    },
  },
}

/** Every code an operation can answer: the mechanism's own, and what it declares. */
export function codesOf(operation: Operation): Code[] {
  const { permission, fields, http } = operation
  const codes: Code[] = ['VALIDATION_FAILED', 'INTERNAL', ...(operation.fails ?? [])]
  if (permission !== 'public' || operation.fails?.includes('UNAUTHENTICATED')) codes.push('UNAUTHENTICATED')
  if (permission !== 'public' && permission !== 'authenticated') codes.push('FORBIDDEN')
  if (fields.path.length > 0 || operation.scope) codes.push('NOT_FOUND', 'FORBIDDEN')
  if (http.method !== 'GET') codes.push('INVALID_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE')
  if (isMutation(operation)) codes.push('BUSY', 'CONFLICT', 'PRECONDITION_FAILED', 'SERVICE_UNAVAILABLE')
  if (operation.kind === 'apply')
    codes.push('PLAN_STALE', 'PLAN_EXPIRED', 'PLAN_NOT_APPLICABLE', 'FORBIDDEN', 'UPSTREAM_FAILED', 'TIMEOUT')
  if (operation.kind === 'follow') codes.push('UPGRADE_REQUIRED')
  return [...new Set(codes)]
}

function answerSchema(operation: Operation): object {
  if (operation.http.bare) return operation.output
  const { output } = operation
  if (isPaged(output)) {
    const page = output as unknown as { properties: object; required: string[] }
    return {
      ...page,
      properties: { ...page.properties, message: { type: 'string' } },
      required: [...page.required, 'message'],
    }
  }
  return { type: 'object', properties: { data: output, message: { type: 'string' } }, required: ['data', 'message'] }
}

function errorResponse(codes: Code[]): object {
  return {
    description: codes.map(code => `\`${code}\`: ${catalogue[code][1]}`).join('\n\n'),
    content: { 'application/json': { schema: ref('Error') } },
  }
}

function byStatus(codes: readonly Code[]): Map<number, Code[]> {
  const found = new Map<number, Code[]>()
  for (const code of codes) found.set(catalogue[code][0], [...(found.get(catalogue[code][0]) ?? []), code])
  return new Map([...found].sort(([a], [b]) => a - b))
}

/** A field with a default need not be sent. */
function forInput(schema: TSchema): TSchema {
  const node = schema as Annotated
  if (node.items) return { ...node, items: forInput(node.items) } as TSchema
  if (!node.properties) return schema
  const properties = Object.fromEntries(Object.entries(node.properties).map(([name, field]) => [name, forInput(field)]))
  const required = (node.required ?? []).filter(
    name => (node.properties?.[name] as Annotated | undefined)?.default === undefined,
  )
  const { required: _, ...rest } = node
  return { ...rest, properties, ...(required.length > 0 ? { required } : {}), additionalProperties: false } as TSchema
}

function isRequired(operation: Operation, name: string): boolean {
  const { required, properties } = operation.input as Annotated
  return (required?.includes(name) ?? false) && (properties?.[name] as Annotated | undefined)?.default === undefined
}

const plannable = (operation: Operation): boolean => operation.kind === 'command' && operation.plannable !== false
const tagOf = (operation: Operation): string => operation.id.split('.')[0] as string
const description = (schema: TSchema): string | undefined => (schema as { description?: string }).description
