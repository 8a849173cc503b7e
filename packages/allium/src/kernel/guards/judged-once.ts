/** Verdicts that several attempts want to know, asked for once. */
import type { Context } from '../context/context.js';
import { controlKind } from '../protocol/signals.js';

/** A map, weak or not. */
interface Known<K, T> {
  get(key: K): Promise<T> | undefined;
  set(key: K, judged: Promise<T>): unknown;
  delete(key: K): unknown;
}

/**
 * What was said about `key`, or what `judge` says: asked for once, however many attempts want to know. An attempt that
 * is given up takes its own verdicts with it.
 */
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
      // It was another attempt that was given up: this one asks for itself.
      return judgedOnce(known, key, ctx, judge);
    });
  const judged = judge();
  known.set(key, judged);
  judged.catch(() => {
    if (known.get(key) === judged) known.delete(key);
  });
  return judged;
}
