/** Breaks `abort`: it never looks at the signal. */
import type { Model, ModelPart } from '../../../index.js';
import { broken, soundParts, soundStream } from './delegate.js';

export function deafModel(): Model {
  return broken({ stream: (request) => soundStream(soundParts(request), new AbortController().signal) });
}

/** Breaks it in another way: once aborted, it neither continues nor ends. */
export function frozenModel(): Model {
  return broken({
    async *stream(request, { signal }) {
      for (const part of soundParts(request)) {
        if (signal.aborted) await new Promise(() => {});
        yield part;
      }
    },
  });
}

/** Breaks it in another way: it only looks at the signal until its answer has begun. */
export function absorbedModel(): Model {
  return broken({
    async *stream(request, { signal }) {
      // Some text to get absorbed in.
      const long = soundParts(request).flatMap((part) =>
        Array<ModelPart>(part.type === 'text' ? 2 : 1).fill(part),
      );
      for (const [i, part] of long.entries()) {
        if (i < 2) signal.throwIfAborted();
        yield part;
      }
    },
  });
}
