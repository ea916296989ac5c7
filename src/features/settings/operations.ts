// Settings: the configuration as an administrator sees and changes it, comments of the file kept.

import { configSchema } from '../../config.ts'
import { command, query } from '../../core/operation.ts'
import { type Annotated, type TObject, type TSchema, Type } from '../../core/schema.ts'

const whole = configSchema('whole') as TObject
const patch = configSchema('patch') as TObject
const securityOf = (schema: TObject): TObject => section((schema as Annotated).properties?.security as TSchema)

const Settings = Type.Object(
  { ...(whole.properties as Record<string, TSchema>), restart_required: Type.Array(Type.String()) },
  {
    description: 'The nested keys of the configuration; `restart_required` lists changed ones that wait for a restart',
  },
)

export const get = query('settings.get', {
  summary: 'Show the settings',
  http: { method: 'GET', path: '/api/settings' },
  permission: 'settings:read',
  input: Type.Object({}),
  output: Settings,
  example: {},
  read: ({ settings }) => settings.shown() as never,
})

export const update = command('settings.update', {
  summary: 'Change settings; what is left out stays, null puts a key back to its default',
  http: { method: 'PUT', path: '/api/settings' },
  permission: 'admin',
  resource: { type: 'settings', id: () => null },
  locks: () => ['settings'],
  input: patch,
  output: Settings,
  example: { plans: { ttl_seconds: 3600 } } as never,
  decide: ({ settings }, changes) => settings.change(changes as object),
  reply: ({ settings }) => settings.shown() as never,
  message: 'The settings were changed.',
})

export const updateSecurity = command('settings.update_security', {
  summary: 'Change the security settings',
  http: { method: 'PUT', path: '/api/settings/security' },
  permission: 'admin',
  resource: { type: 'settings', id: () => 'security' },
  locks: () => ['settings'],
  input: securityOf(patch),
  output: securityOf(whole),
  example: { retention_days: 14 } as never,
  decide: ({ settings }, changes) => settings.change({ security: changes as object }),
  reply: ({ settings }) => settings.shown().security as never,
  message: 'The security settings were changed.',
})

function section(schema: TSchema): TObject {
  return schema as TObject
}
