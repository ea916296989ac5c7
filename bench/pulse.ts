// A steady light load from a process of its own: node bench/pulse.ts URL, and each line on standard input answers the
// latencies since the last one, in milliseconds, as a line of JSON.

import { Agent, get } from 'node:http'
import { createInterface } from 'node:readline'

const EVERY_MS = 5
const url = new URL(process.argv[2] as string)
const agent = new Agent({ keepAlive: true, maxSockets: 4 })
let latencies: number[] = []

const beat = setInterval(() => {
  const began = performance.now()
  get(url, { agent }, answer => {
    answer.resume()
    answer.on('end', () => latencies.push(performance.now() - began))
  }).on('error', error => {
    console.error(String(error))
    process.exit(1)
  })
}, EVERY_MS)

createInterface({ input: process.stdin })
  .on('line', () => {
    process.stdout.write(`${JSON.stringify(latencies)}\n`)
    latencies = []
  })
  .on('close', () => {
    clearInterval(beat)
    agent.destroy()
  })
