// What can be asked about templates, and the one step that changes what is known of them.

import { stepKind } from '../../core/step.ts'
import type { TemplateError, TemplateLibrary } from './library.ts'
import type { Template } from './template.ts'

declare module '../../core/operation.ts' {
  interface Readers {
    templates: TemplateReader
  }
}
declare module '../../core/step.ts' {
  interface World {
    templates: TemplateLibrary
  }
}

export type TemplateReader = ReturnType<typeof templateReader>

export function templateReader(library: TemplateLibrary) {
  return {
    find: (id: string): Promise<Template | undefined> => library.get(id),

    async list({ category, search = '' }: { category?: string; search?: string }) {
      const words = search.toLowerCase().split(/\s+/).filter(Boolean)
      const fits = (template: Template) =>
        (category === undefined || template.category === category) &&
        words.every(word => textOf(template).includes(word))
      return (await library.all()).filter(fits).map(shown)
    },

    async categories() {
      const counts = new Map<string, number>()
      for (const { category } of await library.all()) counts.set(category, (counts.get(category) ?? 0) + 1)
      return [...counts]
        .map(([id, count]) => ({ id, name: categoryName(id), count }))
        .sort((a, b) => a.name.localeCompare(b.name, 'en'))
    },
  }
}

export const refreshTemplates = stepKind<object, undefined, { count: number; errors: TemplateError[] }>(
  'templates.refresh',
  {
    describe: () => ({ type: 'record', id: 'templates', action: 'update', reason: 'they are read from disk again' }),
    perform: ({ templates }) => templates.refresh(),
    end: 'harmless',
  },
)

/** The categories of the built-in templates; a local one may have any other. */
export const categoryNames: Readonly<Record<string, string>> = {
  analytics: 'Analytics',
  automation: 'Automation',
  cms: 'Websites and blogs',
  databases: 'Databases',
  development: 'Development',
  documents: 'Documents and notes',
  files: 'Files and storage',
  home: 'Home and household',
  media: 'Photos, music and books',
  monitoring: 'Monitoring',
  news: 'News and bookmarks',
  security: 'Passwords and accounts',
  web: 'Web servers',
}

function categoryName(id: string): string {
  const words = id.replaceAll('-', ' ')
  return Object.hasOwn(categoryNames, id)
    ? (categoryNames[id] as string)
    : words.charAt(0).toUpperCase() + words.slice(1)
}

const textOf = ({ id, name, description, tags }: Template): string =>
  [id, name, description, ...tags].join('\n').toLowerCase()

function shown({ composeText: _, variables, ...template }: Template) {
  return { ...template, variables: variables.map(variable => ({ ...variable, generate: variable.generate !== null })) }
}
