// The raw `.env` of a deployment: variables that steer Compose itself are refused, others may stand in a path.

/** The names of variables in the text that programs on the machine would obey, wherever a parser might see them. */
export function steeringVariables(envText: string): string[] {
  const found: string[] = []
  for (const line of envText.split('\n')) {
    // Without a quote, such a line is a comment, or lies within a value: in both cases it sets nothing.
    if (/^\s*#[^'"`]*$/.test(line)) continue
    for (const [, name = ''] of line.matchAll(assignment)) if (isSteering(name)) found.push(name)
  }
  return [...new Set(found)]
}

/** Compose would take other marks for spaces and line breaks than we do. */
export const hasHiddenBreaks = (envText: string): boolean => /[\0\u0085\u2028\u2029\ufeff]|\r(?!\n)/.test(envText)

/**
 * The value a variable has, when that is beyond doubt: null when it is not set, undefined when it cannot be told.
 * Every line must say by itself what it is, so that no quote can turn one into the value of another.
 */
export function plainVariable(envText: string | null, name: string): string | null | undefined {
  if (isSteering(name) || name.startsWith('COMPOSE_')) return undefined
  let value: string | null = null
  for (const line of (envText ?? '').split(/\r?\n/)) {
    if (/^\s*(?:#.*)?$/.test(line)) continue
    const parts = /^\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$/.exec(line)
    if (!parts) return undefined
    const raw = (parts[2] ?? '').trim()
    const quoted = /^(['"])([^'"\\]*)\1\s*(?:#.*)?$/.exec(raw)
    if (/^['"`]/.test(raw) && !quoted) return undefined
    if (parts[1] !== name) continue
    if (value !== null) return undefined
    value = quoted ? (quoted[2] ?? '') : raw
  }
  return value
}

/** After a quote that ends a value, the next variable may follow on the same line. */
const assignment = /(?<![\w.${-])(?:export\s*)?([A-Za-z_][\w]*)\s*[=:]/g

/** These of Compose's own only choose among what the file says; the project's name is judged on the model. */
const harmless = new Set(['COMPOSE_PROJECT_NAME', 'COMPOSE_PROFILES', 'COMPOSE_PARALLEL_LIMIT', 'COMPOSE_HTTP_TIMEOUT'])

/** Compose sets what `.env` says as its own environment, or did in older versions. */
function isSteering(name: string): boolean {
  if (harmless.has(name)) return false
  return (
    /^(?:COMPOSE|DOCKER|BUILDKIT|BUILDX|OTEL|LD|XDG)_/.test(name) ||
    own.has(name) ||
    /^(?:https?|all|no)_proxy$/i.test(name)
  )
}

const own = new Set([
  'PATH',
  'HOME',
  'PWD',
  'TMPDIR',
  'GODEBUG',
  'GOTRACEBACK',
  'SSH_AUTH_SOCK',
  'SSH_ASKPASS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
])
