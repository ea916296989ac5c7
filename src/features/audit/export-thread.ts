// The thread of a long export: it reads the store by itself and sends texts, at a priority below everything else.

import { once } from 'node:events'
import { setPriority } from 'node:os'
import { setTimeout as rest } from 'node:timers/promises'
import { isMainThread, type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { Database } from '../../store/database.ts'
import { auditReader } from './events.ts'
import { exportText, type ThreadTask } from './export.ts'

const PRIORITY = 10
const PACE = { size: 100, momentMs: 1 }
const AHEAD = 4
const LENGTH = 64 * 1024

if (!isMainThread && parentPort) await run(parentPort, workerData as ThreadTask)

async function run(port: MessagePort, { folder, actor, format, filter, limit }: ThreadTask): Promise<void> {
  // On Linux this is the priority of the calling thread alone.
  setPriority(0, PRIORITY)
  const db = Database.reader(folder)
  const { all } = auditReader(db, { actor, noteFile: () => {} })
  let ahead = 0
  let text = ''
  let began = performance.now()
  const send = async (part: string | null) => {
    while (ahead >= AHEAD) {
      await once(port, 'message')
      ahead--
    }
    port.postMessage(part)
    ahead++
  }
  for await (const part of exportText(format, all(filter, limit, PACE))) {
    text += part
    if (text.length < LENGTH) continue
    const worked = performance.now() - began
    await send(text)
    text = ''
    // Half of a core at most, however fast it is read.
    await rest(worked)
    began = performance.now()
  }
  await send(text)
  await send(null)
  db.close()
}
