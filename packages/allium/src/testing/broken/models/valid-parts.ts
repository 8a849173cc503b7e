/** Breaks `valid-parts`: it passes on an event of its provider as it came. */
import type { Model, ModelPart } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function rawModel(): Model {
  return brokenParts((parts) => [
    { type: 'content_block_start', index: 0 } as unknown as ModelPart,
    ...parts,
  ]);
}
