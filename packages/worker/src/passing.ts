/** Is the failure of a run worth another try, later and perhaps on another worker? */
import { isTransient } from 'allium';

/** Of stores, and of limits that fill up again. */
const PASSING = new Set([
  'STORE_FAILED',
  'STORE_TIMEOUT',
  'SESSION_CONFLICT',
  'SESSION_BUSY',
  'RATE_LIMITED',
  'CONCURRENCY_LIMITED',
  'CIRCUIT_OPEN',
]);

/** A provider or a store that is down. Anything else fails the same way every time. */
export function isPassing(error: unknown): boolean {
  const { code, errors, cause } = (error ?? {}) as { code?: unknown; errors?: unknown; cause?: unknown };
  if (typeof code === 'string' && PASSING.has(code)) return true;
  if (isTransient(error)) return true;
  // Every model of a fallback failed: worth a try if one of them may be back.
  const all = errors ?? (cause as { errors?: unknown } | undefined)?.errors;
  return Array.isArray(all) && all.some(isTransient);
}
