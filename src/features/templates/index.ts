// Templates, as other areas see them.

export { TemplateLibrary } from './library.ts'
export * as templateOperations from './operations.ts'
export { refreshTemplates, type TemplateReader, templateReader } from './reader.ts'
export { type Rendered, renderTemplate, TemplateValues } from './render.ts'
export type { Template } from './template.ts'
