// Compose's variables, as far as paths need them: reads `.env` files and fills in `${NAME:-default}`.

export type Variables = Readonly<Record<string, string>>

export function parseEnv(text: string): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const line of text.split(/\r?\n/)) {
    const parts = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*[=:]\s*(.*)$/.exec(line)
    if (parts?.[1]) variables[parts[1]] = envValue(parts[2] ?? '', variables)
  }
  return variables
}

/** Fills in `$NAME`, `${NAME}` and the forms with `:-`, `-`, `:+`, `+`, `:?`, `?`; `$$` is a dollar. */
export function interpolate(text: string, variables: Variables): string {
  return text.replaceAll(variable, (_whole, escaped, plain, name, operator, word) => {
    if (escaped) return '$'
    const value = variables[plain ?? name]
    const isSet = operator?.startsWith(':') ? value !== undefined && value !== '' : value !== undefined
    switch (operator?.at(-1)) {
      case '-':
        return isSet ? (value ?? '') : interpolate(word ?? '', variables)
      case '+':
        return isSet ? interpolate(word ?? '', variables) : ''
      default:
        return value ?? ''
    }
  })
}

const variable = /(\$\$)|\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)(?:(:?[-+?])((?:[^{}]|\$\{[^{}]*\})*))?\}/g

function envValue(raw: string, variables: Variables): string {
  const single = /^'([^']*)'/.exec(raw)
  if (single) return single[1] ?? ''
  const double = /^"((?:[^"\\]|\\.)*)"/.exec(raw)
  const bare = double ? (double[1] ?? '').replaceAll(/\\(.)/g, '$1') : raw.replace(/\s+#.*$/, '').trim()
  return interpolate(bare, variables)
}
