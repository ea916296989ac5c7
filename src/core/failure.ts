// The catalogue of everything that can go wrong towards a caller: code, status, and what the code means.

export const catalogue = {
  INVALID_JSON: [400, 'The body is not valid JSON.'],
  VALIDATION_FAILED: [400, 'A field is missing, unknown or has an impossible value; details name each.'],
  COMPOSE_INVALID: [400, 'The compose file is not valid, or reaches for what the caller may not use.'],
  UNAUTHENTICATED: [401, 'The token or the login is missing or wrong. The answer carries only `error`.'],
  FORBIDDEN: [403, 'The caller is known, but lacks the right to this operation.'],
  NOT_FOUND: [404, 'No such path, or no such record that the caller may see.'],
  METHOD_NOT_ALLOWED: [405, 'The path exists, but not with this method; `Allow` lists those it has.'],
  ALREADY_EXISTS: [409, 'A record with this name exists.'],
  CONFLICT: [409, 'The request contradicts the present state.'],
  BUSY: [409, 'Another change holds the same thing; details name it.'],
  CONTAINER_RUNNING: [409, 'The container runs; stop it first.'],
  IN_USE: [409, 'Something still uses this.'],
  PLAN_STALE: [409, 'What the plan was made from has changed; details name it. Make a new plan.'],
  PLAN_NOT_APPLICABLE: [409, 'The plan is being applied, or was applied, failed or discarded.'],
  PLAN_EXPIRED: [410, 'The plan is too old. Make a new one.'],
  PRECONDITION_FAILED: [412, '`If-Match` names another version than the present one.'],
  PAYLOAD_TOO_LARGE: [413, 'The body is larger than `api.max_body_bytes`.'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The body is not JSON.'],
  UPGRADE_REQUIRED: [426, 'This path is a websocket.'],
  INTERNAL: [500, 'A defect of the agent. The log has the cause under the request id.'],
  DEPLOY_FAILED: [502, 'The deployment did not come up; details say why and what was put back.'],
  UPSTREAM_FAILED: [502, 'An outside program refused or failed; its own words are in the sentence.'],
  ENGINE_UNAVAILABLE: [503, 'The container engine does not answer.'],
  SERVICE_UNAVAILABLE: [503, 'Something the request needs is not there.'],
  TIMEOUT: [504, 'An outside program did not answer in time.'],
} as const satisfies Record<string, readonly [status: number, meaning: string]>

export type Code = keyof typeof catalogue

/** An error whose sentence is for the caller. Its cause is for the log and never sent. */
export class Failure extends Error {
  readonly code: Code
  readonly details: unknown

  constructor(code: Code, sentence: string, details?: unknown, cause?: unknown) {
    super(sentence, cause === undefined ? undefined : { cause })
    this.name = 'Failure'
    this.code = code
    this.details = details
  }

  get status(): number {
    return catalogue[this.code][0]
  }

  /** What is sent. The 401 texts carry only `error`, as the specification says. */
  body(): { error: string; code?: Code; details?: unknown } {
    if (this.code === 'UNAUTHENTICATED') return { error: this.message }
    return { error: this.message, code: this.code, ...(this.details === undefined ? {} : { details: this.details }) }
  }
}

export function fail(code: Code, sentence: string, details?: unknown, cause?: unknown): never {
  throw new Failure(code, sentence, details, cause)
}

/** Any thrown value as a Failure; what is not one of ours is a defect and says nothing about itself. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown
  return new Failure(
    'INTERNAL',
    'The agent failed on this request. Its log has the cause under the request id.',
    undefined,
    thrown,
  )
}

export const notFound = (noun: string, id: string | number): never => fail('NOT_FOUND', `There is no ${noun} "${id}".`)
