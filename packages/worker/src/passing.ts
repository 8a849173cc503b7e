/** Is the failure of a run worth another try, later and perhaps on another worker? */
import { AlliumError, isTransient, type Store } from 'allium';

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

/**
 * The error of a run whose session was deleted meanwhile; any other as it is. Another try would make the session again, and
 * would repeat what the run had done.
 */
export async function ofDeleted(error: unknown, store: Store, sessionId: string): Promise<unknown> {
  if ((error as { code?: unknown } | undefined)?.code !== 'SESSION_CONFLICT') return error;
  try {
    if ((await store.head(sessionId)) > 0) return error;
  } catch {
    // The store is down, so nobody can say.
    return error;
  }
  return new AlliumError(
    'SESSION_UNKNOWN',
    `Session "${sessionId}" was deleted while its run was under way, so the job is not tried again. To say the same to a new session, enqueue it again or redrive it.`,
    { cause: error, data: { sessionId } },
  );
}
