// A plan as a coloured list of changes, like a diff.

import { type Colour, printable, printableLog, type Screen } from '../screen.ts'
import { isObject } from '../value.ts'
import { localTime } from './cell.ts'

export interface Plan {
  id: string
  action: string
  status: string
  resource: { type: string; id: string | null }
  changes: Change[]
  expires_at: string
  error?: string | null
}

interface Change {
  type: string
  id: string
  action: string
  reason?: string
  before?: unknown
  after?: unknown
  diff?: string
}

export function isPlan(value: unknown): value is Plan {
  return (
    isObject(value) &&
    Array.isArray(value.changes) &&
    isObject(value.resource) &&
    'expires_at' in value &&
    'status' in value
  )
}

/** `apply` is the command that performs it, shown while that is possible. */
export function planLines(screen: Screen, plan: Plan, apply: string): string[] {
  const about = `${plan.action} ${plan.resource.id ?? ''}`.trim()
  const head = `Plan ${screen.paint('bold', plan.id)}: ${printable(about)}`
  if (plan.status !== 'available') {
    const state = [`It is ${plan.status}.`, ...(plan.error ? [printable(plan.error)] : [])].join(' ')
    return [head, '', ...changeLines(screen, plan.changes), '', summaryLine(plan.changes), state]
  }
  const expires = screen.people ? localTime(new Date(plan.expires_at)) : printable(plan.expires_at)
  const until = `Nothing was done. Apply it until ${expires} with:`
  return [
    head,
    '',
    ...changeLines(screen, plan.changes),
    '',
    summaryLine(plan.changes),
    until,
    `  ${screen.paint('bold', apply)}`,
  ]
}

export function changeLines(screen: Screen, changes: readonly Change[]): string[] {
  if (changes.length === 0) return ['  Nothing changes.']
  return changes.flatMap(change => {
    const { sign, colour } = SIGNS[change.action] ?? UNKNOWN
    const reason = change.reason ? screen.paint('dim', ` (${printable(change.reason)})`) : ''
    const head = `  ${screen.paint(colour, `${sign} ${change.action} ${nounOf(change)}`)}${reason}`
    return [head, ...(change.diff ? diffLines(screen, change.diff) : fieldLines(screen, change))]
  })
}

export function summaryLine(changes: readonly Change[]): string {
  const counts = Object.keys(SIGNS).flatMap(action => {
    const count = changes.filter(change => change.action === action).length
    return count === 0 ? [] : [`${count} to ${action}`]
  })
  return counts.length === 0 ? 'Nothing to do.' : `${counts.join(', ')}.`
}

interface Sign {
  sign: string
  colour: Colour
}

const SIGNS: Record<string, Sign> = {
  create: { sign: '+', colour: 'green' },
  update: { sign: '~', colour: 'yellow' },
  replace: { sign: '±', colour: 'magenta' },
  delete: { sign: '-', colour: 'red' },
  run: { sign: '!', colour: 'blue' },
}
const UNKNOWN: Sign = { sign: '?', colour: 'blue' }

/** A record's id says already what it is: `user carol`. */
const nounOf = ({ type, id }: Change): string => printable(type === 'record' ? id : `${type} ${id}`)

function diffLines(screen: Screen, diff: string): string[] {
  const lines = diff.replace(/\n$/, '').split('\n')
  const body = lines.filter(line => !/^(---|\+\+\+) /.test(line))
  return body.map(line => {
    const text = `      ${printableLog(line)}`
    if (line.startsWith('+')) return screen.paint('green', text)
    if (line.startsWith('-')) return screen.paint('red', text)
    return screen.paint('dim', text)
  })
}

function fieldLines(screen: Screen, { before, after }: Change): string[] {
  if (!isObject(before) && !isObject(after)) {
    if (before === undefined && after === undefined) return []
    return [`      ${fromTo(screen, before, after)}`]
  }
  const [old, next] = [isObject(before) ? before : {}, isObject(after) ? after : {}]
  const names = [...new Set([...Object.keys(old), ...Object.keys(next)])]
  const changed = names.filter(name => shown(old[name]) !== shown(next[name]))
  return changed.map(name => `      ${printable(name.replaceAll('_', ' '))}: ${fromTo(screen, old[name], next[name])}`)
}

function fromTo(screen: Screen, before: unknown, after: unknown): string {
  if (before === undefined) return screen.paint('green', shown(after))
  if (after === undefined) return screen.paint('red', shown(before))
  return `${screen.paint('red', shown(before))} → ${screen.paint('green', shown(after))}`
}

function shown(value: unknown): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return value === '' ? '""' : printable(value)
  return printable(JSON.stringify(value))
}
