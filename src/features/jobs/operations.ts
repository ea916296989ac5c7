// Jobs: long work that answers at once and goes on; it can be watched and cancelled.

import { fail } from '../../core/failure.ts'
import { command, query } from '../../core/operation.ts'
import { Limit, Offset, Paged, Type, Words } from '../../core/schema.ts'
import { cancelJob, Job, jobStatuses } from './job-reader.ts'

const JobId = Type.String({ minLength: 1, maxLength: 64 })
const A_JOB = '00000000-0000-4000-8000-000000000002'

export const list = query('jobs.list', {
  summary: 'List jobs, newest first',
  http: { method: 'GET', path: '/api/jobs' },
  permission: 'authenticated',
  input: Type.Object({ status: Type.Optional(Words(jobStatuses)), limit: Limit(50), offset: Offset }),
  output: Paged(Job),
  example: { limit: 10, offset: 0 },
  read: ({ jobs }, { status, limit, offset }) => jobs.page(status, limit, offset),
})

export const get = query('jobs.get', {
  summary: 'Show a job with its progress',
  http: { method: 'GET', path: '/api/jobs/:id' },
  permission: 'authenticated',
  input: Type.Object({ id: JobId }),
  output: Job,
  example: { id: A_JOB },
  read: ({ jobs }, { id }) => jobs.one(id),
})

export const cancel = command('jobs.cancel', {
  summary: 'Cancel a job: end its work and undo what it had done',
  http: { method: 'POST', path: '/api/jobs/:id/cancel' },
  permission: 'authenticated',
  resource: { type: 'job', id: ({ id }) => id },
  input: Type.Object({ id: JobId }),
  output: Job,
  example: { id: A_JOB },
  fails: ['FORBIDDEN'],
  decide({ jobs, actor }, { id }) {
    const { status } = jobs.cancellable(id)
    if (status !== 'pending' && status !== 'running')
      fail('CONFLICT', `Job ${id} is ${status}; only a job under way can be cancelled.`)
    return [cancelJob({ id, by: actor.name })]
  },
  reply: ({ jobs }, { id }) => jobs.one(id),
  message: 'The job was cancelled.',
})
