/** Breaks `tool-arguments`: it writes arguments as JavaScript. */
import type { Model } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function sloppyModel(): Model {
  return brokenParts((parts) =>
    parts.map((part) => (part.type === 'tool-call' ? { ...part, arguments: "{ city: 'Oslo' }" } : part)),
  );
}

/** Breaks it in another way: it encodes them twice. */
export function doublyEncodingModel(): Model {
  return brokenParts((parts) =>
    parts.map((part) =>
      part.type === 'tool-call' ? { ...part, arguments: JSON.stringify(part.arguments) } : part,
    ),
  );
}
