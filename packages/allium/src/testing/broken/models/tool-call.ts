/** Breaks `tool-call`: it talks about tools instead of calling them. */
import type { Model, ModelPart } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function hesitantModel(): Model {
  return brokenParts((parts) =>
    parts.map(
      (part): ModelPart =>
        part.type === 'tool-call' ? { type: 'text', text: `I could ask ${part.name}.` } : part,
    ),
  );
}

/** Breaks it in another way: it calls what nobody offered. */
export function inventiveModel(): Model {
  return brokenParts((parts) =>
    parts.map((part) => (part.type === 'tool-call' ? { ...part, name: 'get_wether' } : part)),
  );
}
