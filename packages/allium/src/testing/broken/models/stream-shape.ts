/** Breaks `stream-shape`: what it returns is a stream and a promise, and whoever returns it from an async function loses it. */
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

/** Breaks it in another way: nobody can say what it is called. */
export function namelessModel(): Model {
  return broken({ id: '' });
}
