/** Time, injectable. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once after `ms`; returns what cancels it. */
  setTimer(fn: () => void, ms: number): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimer(fn, ms) {
    const timer = setTimeout(fn, Math.min(ms, 2_147_483_647));
    return () => clearTimeout(timer);
  },
};

const immediate = globalThis.setImmediate;

/** Calls `fn` once what can go on has gone on, before the process waits for anything. No clock has a say in it. */
export function soon(fn: () => void): void {
  if (immediate) immediate(fn);
  else setTimeout(fn, 0);
}

/** Calls `fn` as soon as every promise that can go on has gone on: sooner than `soon`. */
export const whenIdle: (fn: () => void) => void =
  (globalThis as { process?: { nextTick?: (fn: () => void) => void } }).process?.nextTick ?? queueMicrotask;

/** Waits `ms`, or rejects with the signal's reason as soon as it aborts. The timer never outlives the wait. */
export function sleep(ms: number, signal?: AbortSignal, clock: Clock = systemClock): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      cancel();
      reject(signal!.reason);
    };
    const cancel = clock.setTimer(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
