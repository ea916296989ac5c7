// The one place that renders an error: its sentence to the caller, its cause to the log under the request id.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { asFailure, Failure } from '../core/failure.ts'

export function renderFailure(failure: Failure, request: FastifyRequest, reply: FastifyReply): void {
  if (failure.code === 'INTERNAL')
    request.log.error({ reqId: request.id, err: failure.cause ?? failure }, 'a request failed')
  else if (failure.cause !== undefined) request.log.debug({ reqId: request.id, err: failure.cause }, failure.message)
  reply
    .code(failure.status)
    .header('cache-control', 'no-store')
    .header('x-request-id', request.id)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(failure.body()))
}

/** The framework's own refusals, in our words. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  const { code, statusCode } = error as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new Failure('UNSUPPORTED_MEDIA_TYPE', 'The body must be JSON: send it with Content-Type: application/json.')
  }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Failure('PAYLOAD_TOO_LARGE', 'The body is larger than the agent takes (api.max_body_bytes).')
  }
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH')
    return new Failure('INVALID_JSON', 'The body is not as long as Content-Length says.')
  if (code === 'FST_ERR_BAD_URL')
    return new Failure('VALIDATION_FAILED', 'The path is not a valid URL: a % must be followed by two hex digits.')
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new Failure('VALIDATION_FAILED', 'The request is malformed.', undefined, error)
  return asFailure(error)
}
