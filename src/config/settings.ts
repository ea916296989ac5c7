// The catalogue of every setting: key, type, default and meaning. All else about the configuration derives from it.

import { type Static, type TSchema, Type } from '../lib/type.ts'

export interface Setting {
  readonly key: string
  readonly schema: TSchema
  readonly default: unknown
  readonly meaning: string
  /** Never shown. */
  readonly secret?: true
  /** In force only after a restart. */
  readonly restart?: true
  /** A path; a relative one starts at the folder of the configuration file. */
  readonly path?: true
  /** What the schema cannot say: answers what is expected instead, or nothing when the value is fine. */
  readonly check?: (value: never) => string | undefined
}

const Flag = Type.Boolean()
const Text = Type.String()
const Path = Type.String({ minLength: 1 })
const List = Type.Array(Type.String({ minLength: 1 }))
const Whole = (minimum: number, maximum = Number.MAX_SAFE_INTEGER) => Type.Integer({ minimum, maximum })
const Word = <const T extends readonly string[]>(words: T) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...words] })

const DAY = 86_400
const YEARS = 100 * 365 * DAY

export const settings = [
  setting('auth.enabled', Flag, true, 'Whether callers must log in. When false, every caller is an administrator.'),
  setting('auth.api_keys', List, [], 'Keys accepted at login; each is an administrator.', { secret: true }),
  setting(
    'auth.jwt_secret',
    Text,
    '',
    'Signs the tokens given out at login. Empty: the agent keeps one it generated.',
    { secret: true },
  ),
  setting('auth.token_ttl', Whole(1, YEARS), DAY, 'How long a token is valid, in seconds.'),

  setting('api.host', Text, '127.0.0.1', 'The address to listen on.', { restart: true, check: host }),
  setting('api.port', Whole(0, 65_535), 8090, 'The port to listen on; 0 takes any free one.', { restart: true }),
  setting(
    'api.max_body_bytes',
    Whole(1024, 1024 ** 3),
    10 * 1024 ** 2,
    'The largest JSON body taken. Uploads are streamed and not bounded by it.',
    { restart: true },
  ),
  setting(
    'api.trust_proxy',
    Flag,
    false,
    'Take the address of the caller from X-Forwarded-For. Only behind a proxy that sets it.',
    { restart: true },
  ),
  setting('api.enable_cors', Flag, false, 'Answer browsers that come from the origins below.'),
  setting(
    'api.allowed_origins',
    List,
    [],
    'The origins allowed when CORS is on, each as https://console.example.com; "*" is refused.',
    { check: origins },
  ),
  setting(
    'api.domain',
    Text,
    '',
    'A domain under which the agent publishes itself through its own proxy. Not in use yet.',
    { check: domain },
  ),
  setting('api.tls.cert', Text, '', 'File with the certificate chain (PEM) to serve HTTPS directly.', {
    path: true,
    restart: true,
  }),
  setting('api.tls.key', Text, '', 'File with the private key (PEM) of that certificate.', {
    path: true,
    restart: true,
  }),

  setting('deployments_path', Path, './deployments', 'The folder of all deployments, a folder each.', {
    path: true,
    restart: true,
  }),
  setting('data_path', Path, './data', "The agent's own memory: its database, its master key, its log.", {
    path: true,
    restart: true,
  }),
  setting('templates_path', Path, './templates', 'Templates of your own, beside the built-in ones.', {
    path: true,
    restart: true,
  }),
  setting('plugins_path', Path, './plugins', 'Plugins of your own, a folder each. Not in use yet.', {
    path: true,
    restart: true,
  }),

  setting(
    'engine.socket',
    Text,
    '',
    "The container engine: a path, or an address with unix://, tcp:// or ssh://. Empty: DOCKER_HOST, else Docker's socket, else Podman's.",
    { restart: true, check: engineAddress },
  ),

  setting('plans.ttl_seconds', Whole(1, YEARS), DAY, 'How long a plan can be applied, in seconds.'),
  setting(
    'deployments.ready_timeout',
    Whole(1, DAY),
    120,
    'How long a started deployment may take to run and be healthy, in seconds.',
  ),
  setting('jobs.retention_days', Whole(1, 36_500), 30, 'How long finished jobs are kept.'),
  setting('audit.retention_days', Whole(1, 36_500), 365, 'How long audit events are kept.'),

  setting(
    'security.enabled',
    Flag,
    true,
    'Whether requests at the proxy are watched for attacks. These keys are kept, and not in use yet.',
  ),
  setting('security.retention_days', Whole(1, 36_500), 30, 'How long security events are kept.'),
  setting('security.auto_block.enabled', Flag, false, 'Whether an address that attacks is blocked by itself.'),
  setting('security.auto_block.threshold', Whole(1), 10, 'How many events from one address block it.'),
  setting('security.auto_block.window_seconds', Whole(1, YEARS), 60, 'The time within which they must come.'),
  setting('security.auto_block.duration', Whole(1, YEARS), 3600, 'How long such a block lasts, in seconds.'),
  setting('security.thresholds.not_found', Whole(1), 20, 'Answers 404 to one address in a window that make an event.'),
  setting(
    'security.thresholds.auth_failure',
    Whole(1),
    5,
    'Failed logins from one address in a window that make an event.',
  ),
  setting(
    'security.thresholds.unique_paths',
    Whole(1),
    30,
    'Different paths asked by one address in a window that make an event.',
  ),
  setting('security.thresholds.requests', Whole(1), 300, 'Requests from one address in a window that make an event.'),

  setting('log.level', Word(['trace', 'debug', 'info', 'warn', 'error']), 'info', 'How much the log tells.'),
  setting(
    'log.format',
    Word(['auto', 'json', 'pretty']),
    'auto',
    'How lines look on standard output. auto: pretty on a terminal, json elsewhere. The log file is always JSON.',
    { restart: true },
  ),
] as const

/** The configuration as the agent uses it: nested, complete, paths absolute. */
export type Config = Joined<
  Entry extends infer One ? (One extends Entry ? Nested<One['key'], Static<One['schema']>> : never) : never
>

function setting<const K extends string, S extends TSchema>(
  key: K,
  schema: S,
  byDefault: Static<S>,
  meaning: string,
  marks: Marks<Static<S>> = {},
) {
  return { key, schema, default: byDefault, meaning, ...marks }
}

type Marks<V> = Pick<Setting, 'secret' | 'restart' | 'path'> & { check?: (value: V) => string | undefined }
type Entry = (typeof settings)[number]
type Nested<K extends string, V> = K extends `${infer Head}.${infer Rest}`
  ? { [P in Head]: Nested<Rest, V> }
  : { [P in K]: V }
type Joined<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer I) => void ? I : never

function origins(list: string[]): string | undefined {
  const wrong = list.find(text => !URL.canParse(text) || new URL(text).origin !== text || !/^https?:[^*]+$/.test(text))
  return wrong === undefined ? undefined : `origins such as https://console.example.com, and "${wrong}" is none`
}

function host(text: string): string | undefined {
  return /^[A-Za-z0-9._:-]+$/.test(text) ? undefined : 'an IP address or a host name'
}

function domain(text: string): string | undefined {
  return text === '' || /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/.test(text)
    ? undefined
    : 'a domain such as agent.example.com'
}

function engineAddress(text: string): string | undefined {
  return text === '' || /^(\/|unix:\/\/\/|tcp:\/\/.|ssh:\/\/.)/.test(text)
    ? undefined
    : 'an absolute path, or an address with unix://, tcp:// or ssh://'
}
