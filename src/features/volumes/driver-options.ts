// What a volume may be made of: administrators choose freely, others get plain volumes and memory.

import { fail } from '../../core/failure.ts'
import { type Actor, isAdministrator } from '../../core/permission.ts'

export interface DriverChoice {
  driver: string
  driver_opts: Readonly<Record<string, string>>
}

/** An allow-list: an option that binds a folder of the host, or mounts a share, is for administrators. */
export function requireHarmless(actor: Actor, { driver, driver_opts }: DriverChoice): void {
  if (isAdministrator(actor)) return
  const refuse = (path: string, what: string): never =>
    fail('FORBIDDEN', `Only an administrator can make a volume with ${what}.`, [
      { path, message: 'is for administrators' },
    ])
  if (driver !== 'local') refuse('driver', `the driver "${driver}"`)
  const options = Object.entries(driver_opts)
  if (options.length === 0 || isMemory(driver_opts)) return
  refuse('driver_opts', `the driver options ${options.map(([name]) => name).join(', ')}`)
}

function isMemory({ type, device, o = '', ...rest }: Readonly<Record<string, string>>): boolean {
  const harmless = /^(size=\d+[kmg%]?|mode=[0-7]+|uid=\d+|gid=\d+|nr_inodes=\d+[kmg]?|nosuid|nodev|noexec)$/i
  return (
    type === 'tmpfs' &&
    device === 'tmpfs' &&
    Object.keys(rest).length === 0 &&
    (o === '' || o.split(',').every(option => harmless.test(option)))
  )
}
