/** Breaks `text`: it has nothing to say. */
import type { Model } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function speechlessModel(): Model {
  return brokenParts((parts) => parts.map((part) => (part.type === 'text' ? { ...part, text: '' } : part)));
}
