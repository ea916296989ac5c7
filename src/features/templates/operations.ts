// Templates: ready-made compositions with variables, built in or of the user's own.

import { notFound } from '../../core/failure.ts'
import { command, query } from '../../core/operation.ts'
import { Nullable, Type, Words } from '../../core/schema.ts'
import { refreshTemplates } from './reader.ts'
import { previewTemplate, TemplateValues } from './render.ts'
import { variableTypes } from './variable.ts'

const Variable = Type.Object({
  key: Type.String(),
  label: Type.String(),
  description: Type.String(),
  type: Words(variableTypes),
  default: Nullable(Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
  required: Type.Boolean(),
  secret: Type.Boolean(),
  generate: Type.Boolean({ description: 'A value is made when none is given' }),
  options: Type.Array(Type.String(), { description: 'What a choice can be' }),
})

const Template = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  category: Type.String(),
  icon: Type.String({ description: 'An emoji, or whatever the author of a local template wrote' }),
  tags: Type.Array(Type.String()),
  version: Type.String({ description: 'Of the software' }),
  variables: Type.Array(Variable),
  source: Words(['builtin', 'local']),
})

const TemplateId = Type.String({ maxLength: 63 })

export const list = query('templates.list', {
  summary: 'List templates',
  http: { method: 'GET', path: '/api/templates' },
  permission: 'templates:read',
  input: Type.Object({
    category: Type.Optional(Type.String({ maxLength: 100 })),
    search: Type.Optional(
      Type.String({ maxLength: 200, description: 'Words that occur in id, name, description or tags' }),
    ),
  }),
  output: Type.Array(Template),
  example: { search: 'blog' },
  read: ({ templates }, filter) => templates.list(filter),
})

export const categories = query('templates.categories', {
  summary: 'List the categories of templates with how many are in each',
  http: { method: 'GET', path: '/api/templates/categories' },
  permission: 'templates:read',
  input: Type.Object({}),
  output: Type.Array(Type.Object({ id: Type.String(), name: Type.String(), count: Type.Integer() })),
  example: {},
  read: ({ templates }) => templates.categories(),
})

export const refresh = command('templates.refresh', {
  summary: 'Read the templates from disk again',
  http: { method: 'POST', path: '/api/templates/refresh' },
  permission: 'templates:write',
  resource: { type: 'template', id: () => null },
  locks: () => ['templates'],
  input: Type.Object({}),
  output: Type.Object({
    count: Type.Integer(),
    errors: Type.Array(Type.Object({ path: Type.String(), error: Type.String() }), {
      description: 'Templates that are not usable, and why',
    }),
  }),
  example: {},
  decide: () => [refreshTemplates({}, { as: 'read' })],
  reply: (_ask, _input, { read }) => read as Awaited<ReturnType<typeof refreshTemplates.perform>>,
  message: 'The templates were read again.',
})

export const compose = query('templates.compose', {
  summary: 'Show what a template becomes with some values',
  description: 'Secrets are not shown. Those that are generated are made when a deployment is created, anew for each.',
  http: { method: 'GET', path: '/api/templates/:id/compose' },
  permission: 'templates:read',
  input: Type.Object({ id: TemplateId, values: Type.Optional(TemplateValues) }),
  output: Type.Object({
    id: Type.String(),
    compose_content: Type.String(),
    env_vars: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
  }),
  example: { id: 'nginx', values: { HTTP_PORT: 8888 } },
  async read({ templates }, { id, values = {} }) {
    const template = (await templates.find(id)) ?? notFound('template', id)
    const { composeText, envVars } = previewTemplate(template, values)
    return { id, compose_content: composeText, env_vars: envVars }
  },
})
