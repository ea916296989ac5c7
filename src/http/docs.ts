// The OpenAPI document for people: a viewer from npm, served by the agent itself, with no outside address.

import { createReadStream } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Download } from '../core/operation.ts'

const assets: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
}
const own: Record<string, string> = {
  'docs.js': 'text/javascript; charset=utf-8',
  'docs.css': 'text/css; charset=utf-8',
}

export function docsPage(): Download {
  return {
    mediaType: 'text/html; charset=utf-8',
    chunks: createReadStream(new URL('./docs/index.html', import.meta.url)),
  }
}

/** The files of the page. They hold nothing of this agent, so they need no token; the document itself does. */
export function serveDocs(app: FastifyInstance): void {
  const viewer = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
  for (const [name, type] of Object.entries(assets)) {
    app.get(`/api/docs/${name}`, (_request, reply) =>
      reply
        .type(type)
        .header('cache-control', 'max-age=86400')
        .send(createReadStream(join(viewer, name))),
    )
  }
  for (const [name, type] of Object.entries(own)) {
    app.get(`/api/docs/${name}`, (_request, reply) =>
      reply.type(type).send(createReadStream(new URL(`./docs/${name}`, import.meta.url))),
    )
  }
}
