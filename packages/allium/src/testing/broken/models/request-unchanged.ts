/** Breaks `request-unchanged`: it writes its defaults into the settings of its caller. */
import type { Model } from '../../../index.js';
import { broken, soundParts, soundStream } from './delegate.js';

export function presumptuousModel(): Model {
  return broken({
    stream(request, { signal }) {
      Object.assign(request.settings, { maxOutputTokens: 1024 });
      return soundStream(soundParts(request), signal);
    },
  });
}

/** Breaks it in another way: it sorts the caller's settings if they can be changed, and fails if not. */
export function tidyingModel(): Model {
  return broken({
    stream(request, { signal }) {
      Object.assign(request, { systemPrompt: request.systemPrompt });
      return soundStream(soundParts(request), signal);
    },
  });
}
