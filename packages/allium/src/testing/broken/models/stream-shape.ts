/**
 * Breaks `stream-shape`: it returns a stream that is also a promise, so an async function that returns it loses it.
 */
import type { Model, ModelPart } from '../../../index.js';
import { broken, soundParts, soundStream } from './delegate.js';

export function promisingModel(): Model {
  return broken({
    stream(request, { signal }) {
      const parts = soundStream(soundParts(request), signal);
      return Object.assign(Promise.resolve(), {
        [Symbol.asyncIterator]: () => parts,
      }) as AsyncIterable<ModelPart>;
    },
  });
}

/** Breaks it in another way: it has no name. */
export function namelessModel(): Model {
  return broken({ id: '' });
}
