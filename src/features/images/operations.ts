// Images: those of the engine, pulled with the credential of their registry, and deleted when nothing needs them.

import { pullImage, removeImage } from '../../adapters/container-engine/steps.ts'
import { fail } from '../../core/failure.ts'
import { command, query } from '../../core/operation.ts'
import { Nothing, Nullable, Type } from '../../core/schema.ts'
import { CredentialId } from '../credentials/index.ts'
import { Image } from './image.ts'

export const list = query('images.list', {
  summary: 'List images',
  http: { method: 'GET', path: '/api/images' },
  permission: 'images:read',
  input: Type.Object({}),
  output: Type.Array(Image),
  example: {},
  fails: ['ENGINE_UNAVAILABLE'],
  read: ({ images }) => images.list(),
})

export const pull = command('images.pull', {
  summary: 'Pull an image, or its newest version',
  http: { method: 'POST', path: '/api/images/pull' },
  permission: 'images:write',
  resource: { type: 'image', id: ({ image }) => image },
  locks: ({ image }) => [`image:${image}`],
  input: Type.Object({
    image: Type.String({
      minLength: 1,
      maxLength: 500,
      description: 'As in a compose file: `redis:7`, `registry.example.com/team/app@sha256:…`',
    }),
    credential_id: Type.Optional(
      Nullable({ ...CredentialId, description: 'By default the one of its registry; null pulls without any' }),
    ),
  }),
  output: Image,
  example: { image: 'registry.example.com/team/app:1.2' },
  fails: ['NOT_FOUND', 'ENGINE_UNAVAILABLE', 'UPSTREAM_FAILED', 'TIMEOUT'],
  async decide({ images, registries }, { image, credential_id }) {
    const credential = registries.credentialFor(image, { asked: credential_id })
    return [pullImage({ image, credential, present: await images.isPresent(image) })]
  },
  reply: ({ images }, { image }) => images.detail(image),
  message: 'The image was pulled.',
})

export const remove = command('images.delete', {
  summary: 'Delete an image, or one of its names',
  description: 'An image that a container was made from, or that the compose file of a deployment names, is in use.',
  http: { method: 'DELETE', path: '/api/images/:id' },
  permission: 'images:write',
  resource: { type: 'image', id: ({ id }) => id },
  locks: ({ id }) => [`image:${id}`],
  input: Type.Object({
    id: Type.String({
      minLength: 1,
      maxLength: 500,
      description: 'Its id, the beginning of it, or a name; a name of several only takes that name',
    }),
    force: Type.Optional(
      Type.Boolean({ default: false, description: 'Also when stopped containers or compose files refer to it' }),
    ),
  }),
  output: Nothing,
  example: { id: 'fairlead-test/spare:1' },
  fails: ['IN_USE', 'CONFLICT', 'ENGINE_UNAVAILABLE', 'UPSTREAM_FAILED', 'TIMEOUT'],
  async decide({ images }, { id, force = false }) {
    const { image, names, neededBy, runs } = await images.removal(id)
    if (neededBy.length > 0 && (runs || !force)) {
      const advice = runs ? 'Stop and remove what runs first.' : 'Remove those first, or use `force`.'
      fail('IN_USE', `Image "${id}" is in use by ${neededBy.join(', ')}. ${advice}`, neededBy)
    }
    return [removeImage({ id: image.id, names, force })]
  },
  message: 'The image was deleted.',
})
