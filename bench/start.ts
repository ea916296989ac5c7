// From the start of the process to the first healthy answer, and what it then holds in memory.

import { setTimeout as sleep } from 'node:timers/promises'
import { agentFolder, startAgent } from './agent-process.ts'
import { type Figure, median, short } from './table.ts'

const MB = 1024 * 1024

export async function start(rounds: number): Promise<Figure[]> {
  const folder = await agentFolder()
  const first = await startAgent(folder)
  await first.stop('keep')
  const times: number[] = []
  const resident: number[] = []
  for (let round = 0; round < rounds; round++) {
    const agent = await startAgent(folder)
    times.push(agent.startMs)
    await sleep(3000)
    resident.push((await agent.resident()) / MB)
    await agent.stop(round === rounds - 1 ? undefined : 'keep')
  }
  const list = (values: number[]) => values.map(short).join(', ')
  return [
    {
      what: 'start to the first healthy answer, from the second start on',
      value: median(times),
      target: { atMost: 600 },
      unit: ' ms',
      measured: `median of ${list(times)}; the first start took ${short(first.startMs)}`,
    },
    {
      what: 'resident memory, idle',
      value: median(resident),
      target: { atMost: 110 },
      unit: ' MB',
      measured: `median of ${list(resident)}`,
    },
  ]
}
