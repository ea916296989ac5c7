// Plans: previews of changes, which are looked at, applied or discarded.

import { fail } from '../../core/failure.ts'
import { apply as applyOperation, command, query } from '../../core/operation.ts'
import { planStatuses } from '../../core/plan.ts'
import { PlanSchema } from '../../core/plan-schema.ts'
import { Limit, Nothing, Offset, Paged, Type, Words } from '../../core/schema.ts'
import { discard as discardStep } from './plan-reader.ts'

const PlanId = Type.String({ minLength: 1, maxLength: 64 })
const A_PLAN = '00000000-0000-4000-8000-000000000001'

export const list = query('plans.list', {
  summary: 'List plans and their status, newest first',
  http: { method: 'GET', path: '/api/plans' },
  permission: 'plans:read',
  input: Type.Object({ status: Type.Optional(Words(planStatuses)), limit: Limit(50), offset: Offset }),
  output: Paged(PlanSchema),
  example: { limit: 10, offset: 0 },
  read: ({ plans }, { status, limit, offset }) => plans.page(status, limit, offset),
})

export const get = query('plans.get', {
  summary: 'Show a plan; secret values are redacted',
  http: { method: 'GET', path: '/api/plans/:id' },
  permission: 'plans:read',
  input: Type.Object({ id: PlanId }),
  output: PlanSchema,
  example: { id: A_PLAN },
  read: ({ plans }, { id }) => plans.one(id),
})

export const apply = applyOperation('plans.apply', {
  summary: 'Apply a plan: do what it shows, or nothing when the world has moved',
  http: { method: 'POST', path: '/api/plans/:id/apply' },
  permission: 'plans:write',
  input: Type.Object({ id: PlanId }),
  example: { id: A_PLAN },
  plan: ({ id }) => id,
})

export const discard = command('plans.discard', {
  summary: 'Discard a plan; an applied one only leaves the list',
  http: { method: 'DELETE', path: '/api/plans/:id' },
  permission: 'plans:write',
  plannable: false,
  resource: { type: 'plan', id: ({ id }) => id },
  locks: ({ id }) => [`plan:${id}`],
  input: Type.Object({ id: PlanId }),
  output: Nothing,
  example: { id: A_PLAN },
  fails: ['PLAN_NOT_APPLICABLE'],
  decide({ plans }, { id }) {
    const { status } = plans.one(id)
    if (status === 'applying') fail('PLAN_NOT_APPLICABLE', `Plan ${id} is being applied and cannot be discarded.`)
    return [discardStep({ id, hide: status !== 'available' && status !== 'obsolete' })]
  },
  message: 'The plan was discarded.',
})
