/** Breaks `concurrent-calls`: it remembers one request, the latest. */
import type { Model, ModelRequest } from '../../../index.js';
import { broken, pause, soundParts, soundStream } from './delegate.js';

export function singleMindedModel(): Model {
  let current: ModelRequest;
  return broken({
    async *stream(request, { signal }) {
      current = request;
      await pause();
      yield* soundStream(soundParts(current), signal);
    },
  });
}
