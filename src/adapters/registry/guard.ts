// Which addresses the agent never fetches from: those that hand out a machine's own secrets. Loopback is fine.

import { type LookupAddress, lookup } from 'node:dns'
import { lookup as lookupSoon } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { Failure, fail } from '../../core/failure.ts'

/** True for link-local addresses and those of cloud metadata services, in any spelling of an address. */
export function isForbidden(address: string): boolean {
  const [plain = ''] = address.replace(/^\[|\]$/g, '').split('%')
  const family = isIP(plain)
  return family !== 0 && forbidden.check(plain, family === 4 ? 'ipv4' : 'ipv6')
}

/** A host name or address, with or without a port. A name that is not known here is left to who fetches. */
export async function requireFetchable(host: string): Promise<void> {
  const name = hostName(host)
  if (isForbidden(name)) refuse(host)
  if (isIP(name) !== 0) return
  const found = await lookupSoon(name, { all: true }).catch(() => [])
  if (found.some(({ address }) => isForbidden(address))) refuse(host)
}

/** For `http.request`: looks up a name and connects only where it may, so that nothing can change in between. */
export const guardedLookup: LookupFunction = (name, options, done) => {
  lookup(name, { ...options, all: true }, (error, found: LookupAddress[]) => {
    if (error) return done(error, '', 0)
    const bad = found.find(({ address }) => isForbidden(address))
    if (bad) return done(new Failure('VALIDATION_FAILED', sentence(name)), '', 0)
    const [first] = found
    if (options.all) return done(null, found)
    return first ? done(null, first.address, first.family) : done(new Error(`${name} has no address`), '', 0)
  })
}

export const hostName = (host: string): string => host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')

const forbidden = new BlockList()
forbidden.addSubnet('169.254.0.0', 16, 'ipv4')
forbidden.addAddress('100.100.100.200', 'ipv4')
forbidden.addAddress('192.0.0.192', 'ipv4')
forbidden.addSubnet('fe80::', 10, 'ipv6')
forbidden.addAddress('fd00:ec2::254', 'ipv6')
forbidden.addAddress('fd20:ce::254', 'ipv6')
// 169.254.0.0/16 as seen through NAT64.
forbidden.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6')

const refuse = (host: string): never => fail('VALIDATION_FAILED', sentence(host))
const sentence = (host: string): string =>
  `${host} is a link-local or metadata address: the agent does not fetch from there.`
