// The page that documents every setting, generated from the catalogue.

import type { Setting } from './settings.ts'
import { allSettings, environmentName, expectation } from './shape.ts'

/** The text of docs/reference/configuration.md. */
export function configurationReference(): string {
  return `${HEAD}\n${allSettings.map(row).join('\n')}\n`
}

const HEAD = `# Configuration

One YAML file, looked for at \`--config FILE\`, \`FAIRLEAD_CONFIG\`, \`./.fairlead/config.yml\` and \`/etc/fairlead/config.yml\`;
with none of them, the first start makes \`./.fairlead/config.yml\`. Dots in a key stand for nesting: \`api.port\` is \`port:\`
below \`api:\`. Each key can also be set by an environment variable, which wins over the file; lists are separated by
commas, booleans are \`true\` or \`false\`. Relative paths start at the folder of the file. An unknown key, a wrong type or an
impossible value stops the start with its line. Keys marked ↻ take a restart; the others are in force at once when they
are changed through the API.

| Key | Takes | Default | Environment | Meaning |
|---|---|---|---|---|`

function row(setting: Setting): string {
  const { key, meaning, restart, secret } = setting
  const marks = `${restart ? ' ↻' : ''}${secret ? ' (secret)' : ''}`
  return `| \`${key}\`${marks} | ${expectation(setting)} | ${shown(setting.default)} | \`${environmentName(key)}\` | ${meaning} |`
}

const shown = (value: unknown) => (value === '' ? 'empty' : `\`${Array.isArray(value) ? '[]' : String(value)}\``)
