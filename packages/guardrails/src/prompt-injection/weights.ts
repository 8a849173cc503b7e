/** What the features of a sentence weigh. */
import { featureName, WORDS } from './features.js';
import { GRAM_STEP, GRAM_WEIGHTS } from './gram-weights-data.js';
import { GRAMS } from './grams.js';
import { WEIGHTS } from './weights-data.js';

let weights: Float64Array | undefined;

export function weightOf(feature: number): number {
  weights ??= read();
  return weights[feature]!;
}

function read(): Float64Array {
  const byName = new Map(
    WEIGHTS.trim()
      .split(/\s+/)
      .map((entry) => {
        const at = entry.lastIndexOf('=');
        return [entry.slice(0, at), Number(entry.slice(at + 1))] as const;
      }),
  );
  // A byte for each word.
  const grams = new Int8Array(Buffer.from(GRAM_WEIGHTS, 'base64'));
  return Float64Array.from({ length: WORDS + GRAMS }, (_, id) =>
    id < WORDS ? (byName.get(featureName(id)) ?? 0) : grams[id - WORDS]! * GRAM_STEP,
  );
}
