// The steps that change the engine directly: images pulled, volumes removed by name.

import { fail } from '../../core/failure.ts'
import { stepKind } from '../../core/step.ts'
import { EngineError } from './client.ts'
import type { Engine } from './engine.ts'
import type { EngineMirror } from './mirror.ts'

declare module '../../core/step.ts' {
  interface World {
    engine: Engine
    mirror: EngineMirror
  }
}

/** Gets an image that is not there. Nothing to undo: an image more harms nobody. */
export const pullImage = stepKind<{ image: string }>('image.pull', {
  describe: ({ image }) => ({ type: 'image', id: image, action: 'create' }),
  async perform({ engine, mirror }, { image }, { progress, signal }) {
    const layers = new Map<string, { current: number; total: number }>()
    await engine.images.pull(image, {
      signal,
      onProgress: ({ layer, status, current = 0, total }) => {
        if (layer && total) layers.set(layer, { current, total })
        progress(share(layers), `pulling ${image}: ${status}`)
      },
    })
    await mirror.refreshImages()
  },
  end: 'harmless',
})

/** Removes a volume with all its data: asked for by name, and for good. */
export const removeVolume = stepKind<{ volume: string }>('volume.remove', {
  describe: ({ volume }) => ({ type: 'volume', id: volume, action: 'delete', reason: 'with all its data, for good' }),
  async perform({ engine, mirror }, { volume }) {
    await engine.volumes.remove(volume).catch((error: unknown) => {
      const status = error instanceof EngineError ? error.engineStatus : 0
      if (status === 409) fail('IN_USE', `Volume "${volume}" is still in use, and was not removed.`, undefined, error)
      if (status !== 404) throw error
    })
    await mirror.refreshVolumes()
  },
  end: 'repeatable',
})

function share(layers: ReadonlyMap<string, { current: number; total: number }>): number {
  const [current, total] = [...layers.values()].reduce(([c, t], layer) => [c + layer.current, t + layer.total], [0, 0])
  return total === 0 ? 0 : Math.floor((current / total) * 100)
}
