// What Compose made of each folder, kept sealed in the store: a restart with many deployments need not ask it again.

import type { ModelMemory, Said } from '../../adapters/compose/model.ts'
import type { Database } from '../../store/database.ts'
import type { Vault } from '../../store/vault.ts'

/** Sealed, because a resolved model holds the values of `.env`. */
export function modelMemory(db: Database, vault: Vault): ModelMemory {
  return {
    recall(folder, key) {
      const row = db.get<{ sealed: string }>(
        'SELECT sealed FROM compose_models WHERE folder = ? AND key = ?',
        folder,
        key,
      )
      return row && vault.unseal<Said>(row.sealed)
    },
    keep: (folder, key, said) =>
      void db.run(
        'INSERT OR REPLACE INTO compose_models (folder, key, sealed) VALUES (?, ?, ?)',
        folder,
        key,
        vault.seal(said),
      ),
  }
}
