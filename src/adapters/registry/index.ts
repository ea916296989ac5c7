// Registries of images: their addresses, logging in, and where the agent never fetches from.

export { isLoopback, parseAddress, type RegistryAddress } from './address.ts'
export { guardedLookup, hostName, isForbidden, requireFetchable } from './guard.ts'
export { type Login, type LoginOutcome, registryLogin } from './login.ts'
export { commonHost, DOCKER_HUB, parseReference, type Reference, registryOf } from './reference.ts'
