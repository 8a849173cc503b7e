/** Breaks `call-ids`: it names calls after their tool. */
import type { Model } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function confusingModel(): Model {
  return brokenParts((parts) =>
    parts.map((part) => (part.type === 'tool-call' ? { ...part, id: part.name } : part)),
  );
}
