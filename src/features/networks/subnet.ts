// IPv4 subnets as they are asked for: whether they are well-formed, and whether two of them overlap. Pure.

export interface Subnet {
  /** The first address, as a number. */
  base: number
  prefix: number
}

/** `10.20.0.0/16`; undefined for anything else, also when the address is not the first of its subnet. */
export function parseSubnet(text: string): Subnet | undefined {
  const [address = '', length = ''] = text.split('/')
  const number = parseIPv4(address)
  const prefix = /^\d{1,2}$/.test(length) ? Number(length) : -1
  if (number === undefined || prefix < 8 || prefix > 30) return undefined
  const base = firstOf(number, prefix)
  return base === number ? { base, prefix } : undefined
}

/** One that a host can have: neither the first nor the last address. */
export function holds({ base, prefix }: Subnet, address: string): boolean {
  const number = parseIPv4(address)
  if (number === undefined) return false
  return number > base && number < base + sizeOf(prefix) - 1
}

export function overlap(a: Subnet, b: Subnet): boolean {
  return a.base < b.base + sizeOf(b.prefix) && b.base < a.base + sizeOf(a.prefix)
}

/** Also one whose address is that of a host in it, as interfaces tell it. */
export function subnetOf(text: string): Subnet | undefined {
  const [address = '', length = '32'] = text.split('/')
  const number = parseIPv4(address)
  const prefix = Number(length)
  return number === undefined || !(prefix >= 0 && prefix <= 32) ? undefined : { base: firstOf(number, prefix), prefix }
}

/** Those that belong to nobody outside. */
export function isPrivate(subnet: Subnet): boolean {
  const within = (text: string) => {
    const range = subnetOf(text) as Subnet
    return subnet.prefix >= range.prefix && overlap(subnet, range)
  }
  return ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'].some(within)
}

function parseIPv4(text: string): number | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every(part => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255))
    return undefined
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0)
}

const sizeOf = (prefix: number): number => 2 ** (32 - prefix)
const firstOf = (number: number, prefix: number): number => number - (number % sizeOf(prefix))
