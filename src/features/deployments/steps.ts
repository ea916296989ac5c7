// The steps of deployments: files first, then images, then Compose. Other areas join these to their own.

import type { ComposeModel } from '../../adapters/compose/model.ts'
import { LONG_SETTLE_MS } from '../../adapters/compose/ready.ts'
import {
  composeDown,
  composeStop,
  composeUp,
  type Old,
  restartContainers,
  type Up,
} from '../../adapters/compose/steps.ts'
import type { ContainerEntry } from '../../adapters/container-engine/entries.ts'
import { pullImage } from '../../adapters/container-engine/steps.ts'
import { writeFile } from '../../adapters/files/steps.ts'
import type { Step } from '../../core/step.ts'
import { awaitedOf, type Existing, expectDown, expectUp, imagesToPull } from './decide.ts'
import type { Observed } from './observe.ts'

export interface Wanted {
  model: ComposeModel
  services: string[] | null
  readySeconds: number
  settleMs: number
  existing: Existing
  engine: Parameters<typeof expectUp>[2]
  /** The id of the credential that an image of this deployment is pulled with. */
  credentialFor(image: string, deployment: string): string | null
}

/**
 * How long containers without a health check must be seen to run. A new version takes the place of one that works, so it
 * has to show more than what the files have said all along.
 */
export const SETTLE_MS = { start: 50, newVersion: LONG_SETTLE_MS }

/** Pulls what is missing and brings the deployment up; nothing when all is as it should be. */
export function upSteps(observed: Pick<Observed, 'folder' | 'containers'>, wanted: Wanted): Step[] {
  const { folder, containers } = observed
  const { model, services, engine } = wanted
  const expect = expectUp(model, containers, engine, wanted.existing, services)
  if (expect.length === 0) return []
  const pulls = imagesToPull(model, engine, services).map(image =>
    pullImage({ image, credential: wanted.credentialFor(image, folder.name) }, { cause: 'it is not on this machine' }),
  )
  const up = composeUp({
    deployment: folder.name,
    folder: folder.path,
    project: model.project,
    services,
    awaited: awaitedOf(model, services),
    expect,
    readySeconds: wanted.readySeconds,
    settleMs: wanted.settleMs,
    old: oldOf(observed),
  })
  return [...pulls, up]
}

export function downSteps(observed: Observed, existing: Existing): Step[] {
  const { folder, containers } = observed
  const expect = expectDown(folder.model, containers, existing)
  if (expect.length === 0 || !folder.model) return []
  return [
    composeDown({
      deployment: folder.name,
      folder: folder.path,
      project: folder.model.project,
      expect,
      running: running(containers),
    }),
  ]
}

/** Stops what runs; nothing when nothing does. */
export function stopSteps({ folder, containers }: Observed, services: string[] | null): Step[] {
  const own = containers.filter(
    one => isUp(one) && (services === null || services.includes(one.compose?.service ?? '')),
  )
  if (own.length === 0 || !folder.model) return []
  return [
    composeStop({
      deployment: folder.name,
      folder: folder.path,
      project: folder.model.project,
      services,
      containers: own.map(one => one.name),
    }),
  ]
}

/** Restarts what runs and starts what does not. */
export function restartSteps(observed: Observed, wanted: Wanted): Step[] {
  const { folder, containers } = observed
  const { model, services } = wanted
  const own = containers.filter(
    one =>
      isUp(one) &&
      one.compose &&
      one.compose.service in model.services &&
      (services === null || services.includes(one.compose.service)),
  )
  const up = upSteps(observed, wanted)
  // What `up` replaces or starts is new already.
  const touched = new Set(
    up.flatMap(step => (step.kind === 'compose.up' ? (step.data as Up).expect.map(({ id }) => id) : [])),
  )
  const again = own.filter(one => !touched.has(one.name))
  if (again.length === 0) return up
  return [
    ...up,
    restartContainers({
      deployment: folder.name,
      project: model.project,
      containers: again.map(one => one.name),
      awaited: Object.fromEntries(
        Object.entries(awaitedOf(model, services)).filter(([name]) => again.some(one => one.compose?.service === name)),
      ),
      readySeconds: wanted.readySeconds,
      settleMs: wanted.settleMs,
    }),
  ]
}

/** The write of one file of a deployment; none when it stays as it is. */
export function fileStep(name: string, file: string, before: string | null, after: string, mode?: number): Step[] {
  if (before === after) return []
  return [writeFile({ path: `${name}/${file}`, before, after, shown: file, ...(mode === undefined ? {} : { mode }) })]
}

function oldOf({ folder, containers }: Pick<Observed, 'folder' | 'containers'>): Old {
  const { name, composeFile, composeText, envText } = folder
  return {
    files: [
      { path: `${name}/${composeFile}`, content: composeText },
      { path: `${name}/.env`, content: envText },
    ],
    images: [...new Map(containers.map(one => [one.image, one.imageId]))]
      .filter(([tag]) => !tag.startsWith('sha256:'))
      .map(([tag, id]) => ({ tag, id })),
    containers: containers.map(one => one.name),
    running: running(containers),
  }
}

const isUp = (one: ContainerEntry): boolean =>
  one.state === 'running' || one.state === 'restarting' || one.state === 'paused'
const running = (containers: Observed['containers']): string[] => containers.filter(isUp).map(one => one.name)
