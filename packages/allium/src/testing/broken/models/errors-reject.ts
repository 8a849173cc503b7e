/** Breaks `errors-reject`: when its provider fails, it says so in an answer. */
import type { Model } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function apologeticModel(): Model {
  return brokenParts((parts) => [
    { type: 'text', text: 'Error 500.' },
    { type: 'finish', reason: 'error', usage: (parts.at(-1) as { usage?: object }).usage },
  ]);
}
