// Registries: where images come from, and the credential that is used there.

import { isDeepStrictEqual } from 'node:util'
import { fail } from '../../core/failure.ts'
import { type Ask, command, query } from '../../core/operation.ts'
import { requireAccess } from '../../core/permission.ts'
import { deleteRecord, putRecord } from '../../core/record.ts'
import { Nothing, Nullable, Type } from '../../core/schema.ts'
import { CredentialId } from '../credentials/index.ts'
import { registries } from './records.ts'
import { Registry, requireAddress, Slug } from './registry.ts'

const fields = {
  name: Type.String({
    minLength: 1,
    maxLength: 100,
    pattern: '^[^\\u0000-\\u001f]+$',
    'x-hint': 'must have 1 to 100 characters on one line',
  }),
  url: Type.String({
    minLength: 1,
    maxLength: 500,
    description: 'With or without https://; a path limits it to the images below',
  }),
  type: Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
    description: 'What it is, for people: generic, ghcr, gitlab, …',
    'x-hint': 'must be one word of a-z, 0-9, _ and -',
  }),
  insecure: Type.Boolean({
    description:
      'Its certificate is not checked, and plain HTTP is tried. The engine has a setting of its own for pulls (`insecure-registries`)',
  }),
  credential_id: Nullable({ ...CredentialId, description: 'Used for every pull from here by who may use it' }),
}

const resource = { type: 'registry', id: ({ slug }: { slug: string }) => slug }
const locks = () => ['credentials']
/** A registry of the standard test world. */
const example = { slug: 'local' }

export const list = query('registries.list', {
  summary: 'List registries',
  http: { method: 'GET', path: '/api/registries' },
  permission: 'registries:read',
  input: Type.Object({}),
  output: Type.Array(Registry),
  example: {},
  read: ({ registries }) => registries.list(),
})

export const get = query('registries.get', {
  summary: 'Show a registry',
  http: { method: 'GET', path: '/api/registries/:slug' },
  permission: 'registries:read',
  input: Type.Object({ slug: Slug }),
  output: Registry,
  example,
  read: ({ registries }, { slug }) => registries.row(slug),
})

export const create = command('registries.create', {
  summary: 'Create a registry',
  http: { method: 'POST', path: '/api/registries', status: 201 },
  permission: 'registries:write',
  resource: { type: 'registry', id: input => slugOf(input) },
  locks,
  input: Type.Object({
    slug: Type.Optional({ ...Slug, description: 'Made from the name when left out' }),
    name: fields.name,
    url: fields.url,
    type: Type.Optional(fields.type),
    insecure: Type.Optional(fields.insecure),
    credential_id: Type.Optional(fields.credential_id),
  }),
  output: Registry,
  example: { name: 'Team registry', url: 'https://registry.example.com', type: 'generic' },
  fails: ['ALREADY_EXISTS', 'NOT_FOUND'],
  decide(ask, input) {
    const slug = slugOf(input)
    const { name, url, type = 'generic', insecure = false, credential_id = null } = input
    requireAddress(url, insecure)
    requireCredential(ask, credential_id)
    if (ask.registries.list().some(one => one.slug === slug))
      fail('ALREADY_EXISTS', `There is a registry "${slug}" already. Choose another slug.`)
    return [putRecord(registries, null, { slug, name, url, type, insecure, credential_id })]
  },
  reply: ({ registries }, input) => registries.row(slugOf(input)),
  message: 'The registry was created.',
})

export const update = command('registries.update', {
  summary: 'Change a registry',
  http: { method: 'PUT', path: '/api/registries/:slug' },
  permission: 'registries:write',
  resource,
  locks,
  input: Type.Object({
    slug: Slug,
    name: Type.Optional(fields.name),
    url: Type.Optional(fields.url),
    type: Type.Optional(fields.type),
    insecure: Type.Optional(fields.insecure),
    credential_id: Type.Optional(fields.credential_id),
  }),
  output: Registry,
  example: { ...example, name: 'Our registry' },
  fails: ['NOT_FOUND'],
  decide(ask, { slug, ...changes }) {
    const before = ask.registries.row(slug)
    const after = { ...before, ...changes }
    requireAddress(after.url, after.insecure)
    const moves = after.url !== before.url || after.insecure !== before.insecure
    if (moves || after.credential_id !== before.credential_id) requireCredential(ask, after.credential_id)
    return isDeepStrictEqual({ ...after }, { ...before }) ? [] : [putRecord(registries, before, after)]
  },
  reply: ({ registries }, { slug }) => registries.row(slug),
  message: 'The registry was changed.',
})

export const remove = command('registries.delete', {
  summary: 'Delete a registry; its images and its credential stay',
  http: { method: 'DELETE', path: '/api/registries/:slug' },
  permission: 'registries:write',
  resource,
  locks,
  input: Type.Object({ slug: Slug }),
  output: Nothing,
  example,
  decide: (ask, { slug }) => [deleteRecord(registries, ask.registries.row(slug))],
  message: 'The registry was deleted.',
})

function slugOf({ slug, name }: { slug?: string; name: string }): string {
  if (slug !== undefined) return slug
  const made = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 63)
  return (
    made ||
    fail('VALIDATION_FAILED', '`slug` is required: none can be made from this name.', [
      { path: 'slug', message: 'is required' },
    ])
  )
}

/** The stored password goes where a registry says, so to bind or move one needs more than having been given it. */
function requireCredential({ credentials, actor }: Ask, id: string | null): void {
  if (id === null) return
  requireAccess(actor, 'credentials:read')
  const { name, type } = credentials.row(id)
  if (type === 'registry') return
  fail('VALIDATION_FAILED', `The credential "${name}" is of type ${type}, not for a registry.`, [
    { path: 'credential_id', message: 'must be of type registry' },
  ])
}
