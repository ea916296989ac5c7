// The table of files that reach further than the compose policy allows, because an administrator stored them so.

import { table } from '../../store/table.ts'

export interface TrustedRow {
  deployment_name: string
  /** Of all files that Compose reads; another file, another fingerprint, and the policy holds again. */
  fingerprint: string
}

export const trusted = table<TrustedRow>('trusted_files', {
  noun: 'trust in the files of',
  key: ['deployment_name'],
  columns: ['deployment_name', 'fingerprint'],
  label: one => one.deployment_name,
})
