// Settings, as the wiring sees them.

export { Configuration, type SettingsReader, settingsReader, writeConfiguration } from './configuration.ts'
export * as settingsOperations from './operations.ts'
