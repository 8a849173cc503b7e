/** What the features of a sentence weigh. */
import { FEATURES, featureName } from './features.js';
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
  return Float64Array.from({ length: FEATURES }, (_, id) => byName.get(featureName(id)) ?? 0);
}
