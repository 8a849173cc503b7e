/** Medians and spreads. */

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of what was measured, with its lowest and highest. */
export function summary(values) {
  return { median: median(values), low: Math.min(...values), high: Math.max(...values), values };
}

/** Combines the figures of the same round, so that a slow moment of the machine weighs on both. */
export function byRound(a, b, combine) {
  const rounds = Math.min(a.values.length, b.values.length);
  return summary(Array.from({ length: rounds }, (_, i) => combine(a.values[i], b.values[i])));
}

export const difference = (a, b) => byRound(a, b, (x, y) => x - y);
export const ratio = (a, b) => byRound(a, b, (x, y) => x / y);

/** The median of many values, with the interval in which the true one lies in 95 of 100 cases as its spread. */
export function medianOfMany(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const off = Math.ceil(0.98 * Math.sqrt(sorted.length));
  const middle = (sorted.length - 1) / 2;
  return {
    median: median(values),
    low: sorted[Math.max(0, Math.floor(middle - off))],
    high: sorted[Math.min(sorted.length - 1, Math.ceil(middle + off))],
    values,
  };
}
