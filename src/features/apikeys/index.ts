// API keys, as other areas see them.

export { type ApiKeyReader, apiKeyReader, hashKey } from './key.ts'
export * as apikeyOperations from './operations.ts'
export { type ApiKeyRow, apiKeys } from './records.ts'
