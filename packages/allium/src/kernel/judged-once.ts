/** What guards say about a thing is asked for once, however many attempts want to know. */
import type { Context } from './context.js';
import { controlKind } from './errors.js';

/** A map, weak or not. */
interface Known<K, T> {
  get(key: K): Promise<T> | undefined;
  set(key: K, judged: Promise<T>): unknown;
  delete(key: K): unknown;
}

/** What was said about `key`, or what `judge` says. An attempt that is given up takes its own verdicts with it. */
export function judgedOnce<K, T>(
  known: Known<K, T>,
  key: K,
  ctx: Context,
  judge: () => Promise<T>,
): Promise<T> {
  const before = known.get(key);
  if (before)
    return before.catch((error) => {
      if (!isOthersAbort(error, ctx)) throw error;
      return judgedOnce(known, key, ctx, judge);
    });
  const judged = judge();
  known.set(key, judged);
  judged.catch(() => {
    if (known.get(key) === judged) known.delete(key);
  });
  return judged;
}

/** Was it another attempt that was given up? Then this one asks for itself. */
function isOthersAbort(error: unknown, ctx: Context): boolean {
  return controlKind(error) === 'abort' && !ctx._scope.aborted;
}
