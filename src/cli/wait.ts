// Waiting for a job: looks at it in growing pauses and shows how far it has come.

import { onInterrupt } from './call.ts'
import { ClientError, Refusal } from './failure.ts'
import { doneText } from './http.ts'
import { Progress } from './progress.ts'
import { printable, type Screen } from './screen.ts'
import type { Session } from './session.ts'

export interface Job {
  id: string
  type: string
  status: string
  progress: number
  phase: string
  error: string | null
  result: { status: number; body: unknown } | null
}

const FIRST_PAUSE_MS = 150
const LONGEST_PAUSE_MS = 2000

export interface Waiting {
  screen: Screen
  /** `fairlead`, with the profile when one was named. */
  program: string
  limitSeconds?: number | undefined
}

/** The job when it has ended, and the text it came in. */
export async function waitForJob(session: Session, id: string, waiting: Waiting): Promise<{ job: Job; text: string }> {
  const { screen, program, limitSeconds } = waiting
  const progress = screen.live ? new Progress(process.stderr, `job ${id}`) : undefined
  const forget = onInterrupt(() => {
    screen.note(`The job goes on. Look again with: ${program} jobs wait ${id}`)
    screen.note(`End it with: ${program} jobs cancel ${id}`)
  })
  const until = limitSeconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + limitSeconds * 1000
  try {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) {
      const found = await look(session, id)
      if (found.job.status !== 'pending' && found.job.status !== 'running') return found
      progress?.at(found.job.progress / 100, printable(found.job.phase || found.job.type))
      if (performance.now() + pause > until)
        throw new ClientError(`Job ${id} is still ${found.job.status} after ${limitSeconds} s; it goes on.`)
      await new Promise(resolve => setTimeout(resolve, pause))
    }
  } finally {
    progress?.end()
    forget()
  }
}

/** The failure of a job, in the server's own words. */
export function jobFailure({ id, status, error, result }: Job): Error {
  if (result && result.status >= 400) return new Refusal(result.status, JSON.stringify(result.body))
  return new ClientError(error ?? `Job ${id} was ${status}.`)
}

async function look(session: Session, id: string): Promise<{ job: Job; text: string }> {
  const answer = await session.ask({ method: 'GET', path: `/api/jobs/${encodeURIComponent(id)}` })
  const text = await doneText(answer)
  return { job: (JSON.parse(text) as { data: Job }).data, text }
}
