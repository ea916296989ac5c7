// All templates: the built-in ones and those of the user's folder, read when first asked for and again on request.

import type { FileEntry, FilesReader } from '../../adapters/files/index.ts'
import { asFailure, fail } from '../../core/failure.ts'
import { COMPOSE_FILE, TEMPLATE_FILE, type Template, templateOf } from './template.ts'

/** What could not be read: it hides nothing else, and an override that is broken leaves the built-in one in place. */
export interface TemplateError {
  path: string
  error: string
}

/** Opened at each reading, so that a folder made later is found; undefined when there is none. */
export interface TemplateFolders {
  builtin(): Promise<FilesReader>
  local(): Promise<FilesReader | undefined>
}

export class TemplateLibrary {
  readonly #folders: TemplateFolders
  #read: Promise<Shelf> | undefined

  constructor(folders: TemplateFolders) {
    this.#folders = folders
  }

  /** By name. */
  async all(): Promise<readonly Template[]> {
    return (await this.#shelf()).templates
  }

  async get(id: string): Promise<Template | undefined> {
    return (await this.#shelf()).byId.get(id)
  }

  /** Reads all folders anew; who asks meanwhile still gets the old ones. */
  async refresh(): Promise<{ count: number; errors: TemplateError[] }> {
    const { shelf, errors } = await readAll(this.#folders)
    this.#read = Promise.resolve(shelf)
    return { count: shelf.templates.length, errors }
  }

  #shelf(): Promise<Shelf> {
    this.#read ??= readAll(this.#folders).then(({ shelf }) => shelf)
    return this.#read
  }
}

interface Shelf {
  templates: readonly Template[]
  byId: ReadonlyMap<string, Template>
}

const ID = /^[a-z0-9][a-z0-9-]{0,62}$/
const MAX_FOLDERS = 500
const MAX_TEMPLATE_BYTES = 64 * 1024
const MAX_COMPOSE_BYTES = 256 * 1024

async function readAll(folders: TemplateFolders): Promise<{ shelf: Shelf; errors: TemplateError[] }> {
  const [builtin, local] = await Promise.all([
    readFolder('builtin', folders.builtin),
    readFolder('local', folders.local),
  ])
  const byId = new Map([...builtin.templates, ...local.templates].map(template => [template.id, template]))
  const templates = [...byId.values()].sort((a, b) => a.name.localeCompare(b.name, 'en'))
  return { shelf: { templates, byId }, errors: [...builtin.errors, ...local.errors] }
}

async function readFolder(
  source: Template['source'],
  open: () => Promise<FilesReader | undefined>,
): Promise<{ templates: Template[]; errors: TemplateError[] }> {
  const errors: TemplateError[] = []
  const attempt = async <T>(path: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (thrown) {
      errors.push({ path, error: asFailure(thrown).message })
      return undefined
    }
  }
  const found = await attempt('.', async () => {
    const files = await open().catch(notReadable)
    const entries = ((await files?.list('')) ?? []).filter(({ name, type }) => type !== 'file' && !name.startsWith('.'))
    return { files, entries }
  })
  if (!found?.files) return { templates: [], errors }
  const { files, entries } = found
  if (entries.length > MAX_FOLDERS)
    errors.push({ path: '.', error: `Only the first ${MAX_FOLDERS} of ${entries.length} folders are read.` })
  const templates: Template[] = []
  // One after the other: parsing them all at once would keep everybody else waiting.
  for (const entry of entries.slice(0, MAX_FOLDERS)) {
    const template = await attempt(entry.name, () => readTemplate(files, source, entry))
    if (template) templates.push(template)
  }
  return { templates, errors }
}

async function readTemplate(files: FilesReader, source: Template['source'], entry: FileEntry): Promise<Template> {
  const id = entry.name
  if (entry.type !== 'folder')
    fail('VALIDATION_FAILED', 'It is a link or something else that is not a folder; templates are real folders.')
  if (!ID.test(id))
    fail(
      'VALIDATION_FAILED',
      'The name of the folder is the id of the template, and must be 1 to 63 of a-z, 0-9 and -.',
    )
  const text = async (file: string, max: number) => {
    const read = await files.read(`${id}/${file}`, { max })
    return read?.content.toString() ?? fail('NOT_FOUND', `There is no ${file}.`)
  }
  return templateOf(
    id,
    source,
    await text(TEMPLATE_FILE, MAX_TEMPLATE_BYTES),
    await text(COMPOSE_FILE, MAX_COMPOSE_BYTES),
  )
}

function notReadable(error: NodeJS.ErrnoException): never {
  return fail('SERVICE_UNAVAILABLE', `The folder of templates cannot be read (${error.code ?? 'unknown reason'}).`)
}
