/** Breaks `finish`: its answers just end. */
import type { Model } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function endlessModel(): Model {
  return brokenParts((parts) => parts.slice(0, -1));
}

/** Breaks it in another way: something comes after the end. */
export function afterthoughtModel(): Model {
  return brokenParts((parts) => [...parts.slice(0, -1), parts.at(-1)!, { type: 'text', text: '' }]);
}
