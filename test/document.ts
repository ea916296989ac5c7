// The served OpenAPI document as the tests read it.

export interface Described {
  operationId: string
  summary: string
  tags: string[]
  parameters: { name: string; in: 'path' | 'query' | 'header'; required: boolean; schema: object; example?: unknown }[]
  requestBody?: { required: boolean; content: Record<string, { schema: object; example?: unknown }> }
  responses: Record<string, { $ref?: string; description?: string; content?: Record<string, { schema?: object }> }>
  security?: object[]
  'x-fairlead': { kind: string; permission: string; plan?: boolean; bare?: boolean; alias?: string }
}

export interface Document {
  openapi: string
  info: { title: string; version: string }
  tags: { name: string }[]
  paths: Record<string, Record<string, Described>>
  components: {
    schemas: Record<string, object>
    responses: Record<string, object>
    securitySchemes: Record<string, object>
  }
}

/** Every operation of the document with its method and path. */
export function operationsOf(
  document: Document,
): { line: string; method: string; path: string; described: Described }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([name, described]) => {
      const method = name.toUpperCase()
      return { line: `${method} ${path}`, method, path, described }
    }),
  )
}

/** What a `#/…` reference leads to, or undefined. */
export function resolveRef(document: Document, ref: string): unknown {
  if (!ref.startsWith('#/')) return undefined
  return ref
    .slice(2)
    .split('/')
    .reduce<unknown>((node, part) => (node as Record<string, unknown> | undefined)?.[part], document)
}

/** The schema with every reference replaced by what it leads to. */
export function inlined(document: Document, node: unknown): unknown {
  if (Array.isArray(node)) return node.map(item => inlined(document, item))
  if (node === null || typeof node !== 'object') return node
  const { $ref } = node as { $ref?: string }
  if (typeof $ref === 'string') return inlined(document, resolveRef(document, $ref))
  return Object.fromEntries(Object.entries(node).map(([key, inner]) => [key, inlined(document, inner)]))
}

/** The schema of the JSON that an operation answers with a status, references replaced; undefined where it documents none. */
export function answerSchemaOf(document: Document, described: Described, status: number): object | undefined {
  const answer = described.responses[status]
  const full = answer?.$ref ? (resolveRef(document, answer.$ref) as typeof answer) : answer
  return inlined(document, full?.content?.['application/json']?.schema) as object | undefined
}
