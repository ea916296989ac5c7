// Loaded into an agent under test: each SIGUSR2 writes the longest delay of its event loop since the last one, in
// milliseconds, to the file that BENCH_DELAY_FILE names.

import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 1
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
process.on('SIGUSR2', () => {
  writeFileSync(process.env.BENCH_DELAY_FILE as string, String(Math.max(0, delay.max / 1e6 - RESOLUTION_MS)))
  // Not before the delay of this writing is counted.
  setTimeout(() => delay.reset(), 20)
})
