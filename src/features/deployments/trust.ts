// Whose compose files may do what: the policy holds for everybody but administrators, and what these stored stays allowed.

import type { ComposeModel } from '../../adapters/compose/model.ts'
import type { EngineMirror } from '../../adapters/container-engine/mirror.ts'
import { Failure } from '../../core/failure.ts'
import { type Actor, isAdministrator } from '../../core/permission.ts'
import { putRecord } from '../../core/record.ts'
import type { Step } from '../../core/step.ts'
import type { Database } from '../../store/database.ts'
import type { Folder } from './folders.ts'
import { ownersOf, type PolicyFolder, refuseModel, refuseRawOutside, writtenBy } from './policy/index.ts'
import { trusted } from './records.ts'

export interface Judged {
  folder: Pick<Folder, 'name' | 'path' | 'model'>
  exists: boolean
  composeText: string
  envText: string | null
  /** Reads the model; called only after the first pass has found nothing outside. */
  model(): Promise<ComposeModel>
}

export interface TrustParts {
  db: Database
  mirror: EngineMirror
  /** All deployments there are. */
  others(): Promise<readonly Folder[]>
}

/** The model of files this actor may use, and the step that remembers an administrator's wider ones. */
export async function judged(
  parts: TrustParts,
  actor: Actor,
  files: Judged,
): Promise<{ model: ComposeModel; trust: Step[] }> {
  const { name } = files.folder
  const known = trusted.get(parts.db, { deployment_name: name })
  if (isAdministrator(actor)) {
    const model = await files.model()
    const wide = await isWide(parts, files, model)
    const trust =
      wide && known?.fingerprint !== model.fingerprint
        ? [
            putRecord(
              trusted,
              known,
              { deployment_name: name, fingerprint: model.fingerprint },
              { cause: 'an administrator stored them' },
            ),
          ]
        : []
    return { model, trust }
  }
  if (known !== undefined && files.folder.model?.fingerprint === known.fingerprint) {
    const model = await files.model()
    if (model.fingerprint === known.fingerprint) return { model, trust: [] }
  }
  return { model: await permitted(parts, files, files.model), trust: [] }
}

async function isWide(parts: TrustParts, files: Judged, model: ComposeModel): Promise<boolean> {
  try {
    await permitted(parts, files, async () => model)
    return false
  } catch (refusal) {
    if (refusal instanceof Failure && refusal.code === 'COMPOSE_INVALID') return true
    throw refusal
  }
}

async function permitted(
  { mirror, others }: TrustParts,
  files: Judged,
  modelOf: () => Promise<ComposeModel>,
): Promise<ComposeModel> {
  const { folder, exists, composeText, envText } = files
  const former = folder.model?.project
  const all = (await others()).filter(other => other.name !== folder.name)
  const place: PolicyFolder = {
    path: folder.path,
    exists,
    written: writtenBy(former === undefined ? [] : mirror.project(former)),
  }
  const reads = await refuseRawOutside({ composeText, envText }, place)
  const model = await modelOf()
  const owners = ownersOf(
    { networks: mirror.networks.values(), volumes: mirror.volumes.values(), containers: mirror.containers.values() },
    all.flatMap(other => other.model ?? []),
  )
  await refuseModel(model, { project: former ?? folder.name, folder: place, owners, reads })
  return model
}
