/** Breaks `thinking`: it keeps its thoughts to itself. */
import type { Model } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function secretiveModel(): Model {
  return brokenParts((parts) => parts.filter((part) => part.type !== 'thinking'));
}
