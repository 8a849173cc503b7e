/** Asks guards once, however many attempts need the verdict. */

import type { Context } from '../context/context.js';
import { controlKind } from '../protocol/signals.js';

/** A Map or WeakMap. */
interface Known<K, T> {
  get(key: K): Promise<T> | undefined;
  set(key: K, judged: Promise<T>): unknown;
  delete(key: K): unknown;
}

/** Returns the known verdict about `key`, or asks `judge`. Verdicts of an abandoned attempt are dropped. */
export function judgedOnce<K, T>(
  known: Known<K, T>,
  key: K,
  ctx: Context,
  judge: () => Promise<T>,
): Promise<T> {
  const before = known.get(key);
  if (before)
    return before.catch((error) => {
      if (controlKind(error) !== 'abort' || ctx._scope.aborted) throw error;
      // Another attempt was abandoned, so this one asks again.
      return judgedOnce(known, key, ctx, judge);
    });
  const judged = judge();
  known.set(key, judged);
  judged.catch(() => {
    if (known.get(key) === judged) known.delete(key);
  });
  return judged;
}
