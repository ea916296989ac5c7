// Response headers as a hardened API sets them, and CORS for the listed origins only.

import type { FastifyReply, FastifyRequest } from 'fastify'

export interface CorsSettings {
  enabled: boolean
  origins: readonly string[]
}

export function hardenedHeaders(tls: boolean): Record<string, string> {
  return {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'interest-cohort=()',
    ...(tls ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  }
}

/** The viewer of the document needs its own scripts and styles. */
export const DOCS_POLICY =
  "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"

/** True when the request was a preflight and is answered. */
export function allowOrigin(cors: CorsSettings, request: FastifyRequest, reply: FastifyReply): boolean {
  if (!cors.enabled) return false
  reply.header('vary', 'origin')
  const { origin } = request.headers
  if (origin === undefined || !cors.origins.includes(origin)) return false
  reply
    .header('access-control-allow-origin', origin)
    .header('access-control-expose-headers', 'ETag, X-Request-Id, Content-Disposition')
    .header('cross-origin-resource-policy', 'cross-origin')
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false
  reply
    .header('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE')
    .header(
      'access-control-allow-headers',
      'Authorization, Content-Type, Accept, If-Match, If-None-Match, Idempotency-Key, Prefer',
    )
    .header('access-control-max-age', '600')
    .code(200)
    .send()
  return true
}
