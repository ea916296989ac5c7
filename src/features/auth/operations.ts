// Authentication: whether it is on, logging in with a key or a password, and whether a token still holds.

import { fail } from '../../core/failure.ts'
import { command, query } from '../../core/operation.ts'
import { Nullable, Secret, Time, Type } from '../../core/schema.ts'
import type { AuthReader } from './session.ts'

declare module '../../core/operation.ts' {
  interface Readers {
    auth: AuthReader
  }
}

export const status = query('auth.status', {
  summary: 'Whether authentication is on',
  http: { method: 'GET', path: '/api/auth/status', bare: true },
  permission: 'public',
  input: Type.Object({}),
  output: Type.Object({ enabled: Type.Boolean() }),
  example: {},
  read: ({ auth }) => ({ enabled: auth.enabled() }),
})

export const login = command('auth.login', {
  summary: 'Log in with an API key, or with a username and password',
  http: { method: 'POST', path: '/api/auth/login', bare: true },
  permission: 'public',
  plannable: false,
  resource: { type: 'user', id: ({ username, api_key }) => username ?? (api_key === undefined ? null : 'API key') },
  input: Type.Object({
    api_key: Type.Optional(Secret(Type.String({ minLength: 1, maxLength: 1024 }))),
    username: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    password: Type.Optional(Secret(Type.String({ minLength: 1, maxLength: 1024 }))),
  }),
  output: Type.Object({ token: Secret(Type.String()), expires_at: Time() }),
  example: { username: 'alice', password: 'correct horse battery' },
  fails: ['UNAUTHENTICATED'],
  async decide({ auth }, { api_key, username, password }) {
    if (api_key !== undefined && username === undefined && password === undefined) {
      return { steps: [], actor: await auth.byApiKey(api_key) }
    }
    if (api_key === undefined && username !== undefined && password !== undefined) {
      return { steps: [], actor: await auth.byPassword(username, password) }
    }
    return fail('VALIDATION_FAILED', 'Send either `api_key`, or `username` and `password`.', [
      { path: 'api_key', message: 'or username and password, exactly one of the two' },
    ])
  },
  reply: ({ auth, actor }) => auth.issue(actor),
})

export const validate = query('auth.validate', {
  summary: 'Whether the token holds, and until when',
  http: { method: 'GET', path: '/api/auth/validate', bare: true },
  permission: 'authenticated',
  input: Type.Object({}),
  output: Type.Object({ valid: Type.Boolean(), expires_at: Nullable(Time()) }),
  example: {},
  read: ({ auth, actor }) => ({ valid: true, expires_at: auth.expiryOf(actor) }),
})
