// Credentials, as other areas see them.

export {
  CredentialId,
  type CredentialReader,
  credentialReader,
  registryAuthOf,
  type Use,
} from './credential.ts'
export * as credentialOperations from './operations.ts'
export { type CredentialRow, sealedCredentials } from './records.ts'
