// The list of operations, area by area: the table of contents of the API.

import type { Operation } from '../core/operation.ts'
import { apikeyOperations } from './apikeys/index.ts'
import { auditOperations } from './audit/index.ts'
import { authOperations } from './auth/index.ts'
import { containerOperations } from './containers/index.ts'
import { credentialOperations } from './credentials/index.ts'
import { deploymentOperations } from './deployments/index.ts'
import { imageOperations } from './images/index.ts'
import { jobOperations } from './jobs/index.ts'
import { networkOperations } from './networks/index.ts'
import { planOperations } from './plans/index.ts'
import { registryOperations } from './registries/index.ts'
import { settingsOperations } from './settings/index.ts'
import { systemOperations } from './system/index.ts'
import { templateOperations } from './templates/index.ts'
import { userOperations } from './users/index.ts'
import { volumeOperations } from './volumes/index.ts'

export const operations: readonly Operation[] = [
  authOperations,
  userOperations,
  apikeyOperations,
  auditOperations,
  planOperations,
  jobOperations,
  settingsOperations,
  systemOperations,
  deploymentOperations,
  containerOperations,
  imageOperations,
  volumeOperations,
  networkOperations,
  registryOperations,
  credentialOperations,
  templateOperations,
].flatMap(area => Object.values(area) as Operation[])
