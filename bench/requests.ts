// Requests per second of the smallest answers, against a bare Fastify route with the same payload, logger and headers.

import { against } from './against.ts'
import { type AgentProcess, agentFolder, startAgent } from './agent-process.ts'
import { type Figure, short } from './table.ts'

export async function requests(rounds: number): Promise<Figure[]> {
  const agent = await startAgent(await agentFolder())
  try {
    const headers = { authorization: `Bearer ${await agent.token('user')}` }
    return [
      await figure(agent, '/api/health', {}, 0.8, rounds),
      await figure(agent, '/api/users/me', headers, 0.5, rounds),
    ]
  } finally {
    await agent.stop()
  }
}

async function figure(
  agent: AgentProcess,
  path: string,
  headers: Record<string, string>,
  atLeast: number,
  rounds: number,
): Promise<Figure> {
  const { ours, theirs, perSecond } = await against(agent, path, headers, { rounds, seconds: 3, bytes: false })
  return {
    what: `GET ${path} against a bare route`,
    value: perSecond,
    target: { atLeast },
    unit: '',
    measured: `${short(ours.perSecond)} of ${short(theirs.perSecond)} requests/s, median of ${rounds} rounds`,
  }
}
