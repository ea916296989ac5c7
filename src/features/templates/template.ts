// What a template is: the text of its two files, read strictly, with every fault named.

import { parseDocument } from 'yaml'
import { fail } from '../../core/failure.ts'
import { Type, validate } from '../../core/schema.ts'
import { type Variable, VariableFile, variableFault, variableOf } from './variable.ts'

export const TEMPLATE_FILE = 'template.yml'
export const COMPOSE_FILE = 'compose.yml'

export interface Template {
  id: string
  source: 'builtin' | 'local'
  name: string
  description: string
  category: string
  icon: string
  tags: string[]
  version: string
  variables: Variable[]
  composeText: string
}

const Line = (maxLength: number) => Type.String({ minLength: 1, maxLength })
const Word = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,39}$', 'x-hint': 'must be a word of a-z, 0-9 and -' })

const TemplateFile = Type.Object({
  name: Line(100),
  description: Line(500),
  category: Word,
  icon: Type.Optional(Type.String({ maxLength: 100 })),
  tags: Type.Optional(Type.Array(Word, { maxItems: 20 })),
  version: Type.String({ minLength: 1, maxLength: 50, 'x-hint': 'must be text: put it in quotes' }),
  variables: Type.Optional(Type.Array(VariableFile, { maxItems: 100 })),
})

/** The template of these texts, or a failure whose sentence says what to mend. */
export function templateOf(
  id: string,
  source: Template['source'],
  templateText: string,
  composeText: string,
): Template {
  const file = validate(TemplateFile, yamlOf(TEMPLATE_FILE, templateText), TEMPLATE_FILE)
  const variables = (file.variables ?? []).map(variableOf)
  requireSound(variables)
  // Those that ship with the agent are tested; what a person writes is looked at when it is read.
  if (source === 'local') requireCompose(composeText, variables)
  return {
    id,
    source,
    name: file.name,
    description: file.description,
    category: file.category,
    icon: file.icon ?? '',
    tags: file.tags ?? [],
    version: file.version,
    variables,
    composeText,
  }
}

/** The variables that a compose text cannot do without: those it names without giving a default in place. */
export function neededVariables(compose: unknown): Set<string> {
  const found = new Set<string>()
  for (const text of textsOf(compose)) {
    for (const [, plain, name, operator] of text.matchAll(reference)) {
      if (plain ?? (!operator?.match(/[-+]/) && name)) found.add((plain ?? name) as string)
    }
  }
  return found
}

function requireSound(variables: readonly Variable[]): void {
  const seen = new Set<string>()
  for (const variable of variables) {
    const fault = seen.has(variable.key) ? 'is declared twice' : variableFault(variable)
    if (fault) fail('VALIDATION_FAILED', `${TEMPLATE_FILE} is not valid: the variable ${variable.key} ${fault}.`)
    seen.add(variable.key)
  }
}

export function requireCompose(text: string, variables: readonly Variable[]): void {
  const compose = yamlOf(COMPOSE_FILE, text)
  const services = isMap(compose) ? compose.services : undefined
  if (!isMap(services) || Object.keys(services).length === 0)
    fail('VALIDATION_FAILED', `${COMPOSE_FILE} is not valid: it has no services.`)
  const declared = new Set(variables.map(({ key }) => key))
  const unknown = [...neededVariables(compose)].find(name => !declared.has(name))
  if (unknown)
    fail('VALIDATION_FAILED', `${COMPOSE_FILE} refers to \${${unknown}}, which is not a variable of ${TEMPLATE_FILE}.`)
}

function yamlOf(file: string, text: string): unknown {
  const document = parseDocument(text, { merge: true, prettyErrors: true })
  const [error] = document.errors
  if (error)
    fail('VALIDATION_FAILED', `${file} is not valid YAML: ${error.message.split('\n', 1)[0]?.replace(/:$/, '')}.`)
  try {
    return document.toJS()
  } catch (thrown) {
    return fail('VALIDATION_FAILED', `${file} is not valid YAML: ${(thrown as Error).message}.`)
  }
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return value !== null && typeof value === 'object' ? Object.values(value).flatMap(textsOf) : []
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
/** `$$`, `$NAME`, or the beginning of `${NAME}` with its operator; what an operator brings along is looked at in turn. */
const reference = /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(:?[-+?])?)/g
