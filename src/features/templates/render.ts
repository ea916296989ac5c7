// A template and the values for it become a compose text and the variables of its `.env`.

import { fail } from '../../core/failure.ts'
import type { Fresh } from '../../core/fresh.ts'
import { type Fault, REDACTED, Secret, type Static, Type } from '../../core/schema.ts'
import type { Template } from './template.ts'
import { generatedValue, isLeftOut, type Variable, valueFault } from './variable.ts'

/** Which of them are secrets only the template knows, so none is ever shown. */
export const TemplateValues = Type.Record(
  Type.String(),
  Secret(
    Type.Union([Type.String({ maxLength: 65_536 }), Type.Number(), Type.Boolean()], {
      'x-hint': 'must be text, a number or a boolean',
    }),
  ),
  {
    description:
      'A value for each variable of the template, by its key; one left out gets its default, or is generated',
  },
)
export type TemplateValues = Static<typeof TemplateValues>

export interface Rendered {
  /** The template's own text, to the letter. */
  composeText: string
  /** Every variable of the template, in its order. */
  envVars: { key: string; value: string }[]
}

/** For a deployment: complete, with secrets made, or a `VALIDATION_FAILED` that names each variable that is not right. */
export function renderTemplate(template: Template, values: TemplateValues, fresh: Fresh): Rendered {
  requireRight(template, values, 'all')
  const made = (variable: Variable) => {
    const { key, generate } = variable
    return generate ? generatedValue(generate, fresh, `template ${template.id} ${key}`) : String(variable.default ?? '')
  }
  return { composeText: template.composeText, envVars: envVarsOf(template, values, made, value => value) }
}

/** For looking at: what is still missing is empty, and what is secret is not shown, given or generated. */
export function previewTemplate(template: Template, values: TemplateValues): Rendered {
  requireRight(template, values, 'given')
  const shown = (value: string, { secret }: Variable) => (secret && value !== '' ? REDACTED : value)
  const made = ({ generate, default: byDefault }: Variable) => (generate ? REDACTED : String(byDefault ?? ''))
  return { composeText: template.composeText, envVars: envVarsOf(template, values, made, shown) }
}

function envVarsOf(
  { variables }: Template,
  values: TemplateValues,
  made: (variable: Variable) => string,
  shown: (value: string, variable: Variable) => string,
): Rendered['envVars'] {
  return variables.map(variable => {
    const given = ownValue(values, variable.key)
    const value = given === undefined || isLeftOut(variable, given) ? made(variable) : String(given)
    return { key: variable.key, value: shown(value, variable) }
  })
}

function requireRight({ id, variables }: Template, values: TemplateValues, which: 'all' | 'given'): void {
  const known = new Set(variables.map(({ key }) => key))
  const unknown = Object.keys(values).filter(key => !known.has(key))
  const faults = [
    ...unknown.map((key): Fault => ({ path: `values.${key}`, message: 'is not a variable of this template' })),
    ...variables.flatMap((variable): Fault[] => {
      const message = faultOf(variable, ownValue(values, variable.key), which)
      return message ? [{ path: `values.${variable.key}`, message }] : []
    }),
  ]
  if (faults.length === 0) return
  const told = faults.slice(0, 3).map(({ path, message }) => `\`${path}\` ${message}`)
  fail('VALIDATION_FAILED', `The values for the template "${id}" are not valid: ${told.join('; ')}.`, faults)
}

function faultOf(
  variable: Variable,
  given: TemplateValues[string] | undefined,
  which: 'all' | 'given',
): string | undefined {
  if (given !== undefined && !isLeftOut(variable, given)) return valueFault(variable, given)
  const { required, generate, default: byDefault } = variable
  return which === 'all' && required && !generate && byDefault === null ? 'is required' : undefined
}

const ownValue = (values: TemplateValues, key: string) => (Object.hasOwn(values, key) ? values[key] : undefined)
