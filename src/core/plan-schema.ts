// The shape of a plan in answers and in the OpenAPI document.

import { planStatuses } from './plan.ts'
import { Nullable, Time, Type, Words } from './schema.ts'
import { changeActions, changeTypes } from './step.ts'

export const ActorSchema = Type.Object({
  type: Words(['user', 'api_key', 'system']),
  id: Nullable(Type.Integer()),
  name: Type.String(),
})

export const ChangeSchema = Type.Object({
  type: Words(changeTypes),
  id: Type.String(),
  action: Words(changeActions),
  reason: Type.Optional(Type.String()),
  before: Type.Optional(Type.Unknown()),
  after: Type.Optional(Type.Unknown()),
  diff: Type.Optional(Type.String()),
  sensitive: Type.Optional(Type.Boolean()),
})

export const PlanSchema = Type.Object({
  id: Type.String(),
  action: Type.String(),
  status: Words(planStatuses),
  resource: Type.Object({ type: Type.String(), id: Nullable(Type.String()) }),
  request: Type.Object({ method: Type.String(), path: Type.String(), query: Type.Unknown(), body: Type.Unknown() }),
  changes: Type.Array(ChangeSchema),
  summary: Type.Object({
    create: Type.Integer(),
    update: Type.Integer(),
    replace: Type.Integer(),
    delete: Type.Integer(),
    run: Type.Integer(),
  }),
  files: Type.Array(Type.Object({ path: Type.String(), sha256: Nullable(Type.String()) })),
  created_at: Time(),
  created_by: ActorSchema,
  expires_at: Time(),
  applied_at: Nullable(Time()),
  applied_by: Nullable(ActorSchema),
  error: Nullable(Type.String()),
})
