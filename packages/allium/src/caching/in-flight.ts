/** Calls under way, by key: a call with the same key waits for the first answer. */

import type { Clock, Context } from '../index.js';

/** How the first call ended, for those who wait. */
export type Outcome<T> =
  | { readonly type: 'answer'; readonly answer: T }
  /** It failed, its answer can't be shared, or it took too long. */
  | { readonly type: 'none' }
  /** It was stopped or aborted, which says nothing about the question. */
  | { readonly type: 'gone' }
  /** Nobody reads its stream, so it makes no progress. */
  | { readonly type: 'stalled' };

/** A call under way, and who waits for it. */
export interface Underway<T> {
  /** Who makes the call. A call from inside it, such as a sub-agent's, must not wait for it, because it waits for that call. */
  readonly by: Context;
  /** Most calls have nobody waiting for them, and no set for those. */
  waiters: Set<Waiter<T>> | undefined;
  /** How long its run has been held up by its reader so far; undefined if that doesn't matter. */
  readonly pausedMs: (() => number) | undefined;
}

export const NONE = { type: 'none' } as const;
export const GONE = { type: 'gone' } as const;
const STALLED = { type: 'stalled' } as const;
/** Milliseconds for which a reader may hold up those who ask the same. */
const STALL_MS = 1000;

type Waiter<T> = (outcome: Outcome<T>) => void;

export class InFlight<T> {
  private readonly calls = new Map<string, Underway<T>>();

  /** The call that others wait for, if there is one. */
  get(key: string): Underway<T> | undefined {
    return this.calls.get(key);
  }

  /** A call begins, and replaces one that is held up. `end` has to follow, however it ends. */
  begin(key: string, by: Context, pausedMs?: () => number): Underway<T> {
    const call: Underway<T> = { by, waiters: undefined, pausedMs };
    this.calls.set(key, call);
    return call;
  }

  end(key: string, call: Underway<T>, outcome: Outcome<T>): void {
    if (this.calls.get(key) === call) this.calls.delete(key);
    if (call.waiters !== undefined) for (const tell of call.waiters) tell(outcome);
  }

  /**
   * Waits for the first call, at most as long as `patience` says. Rejects with the signal's reason if that aborts.
   */
  follow(
    key: string,
    signal: AbortSignal,
    patience?: { readonly clock: Clock; readonly maxWaitMs: number },
  ): Promise<Outcome<T>> {
    const call = this.calls.get(key)!;
    call.waiters ??= new Set();
    const { waiters, pausedMs } = call;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        cancel?.();
        unwatch?.();
        waiters.delete(told);
        signal.removeEventListener('abort', aborted);
      };
      const told: Waiter<T> = (outcome) => {
        leave();
        resolve(outcome);
      };
      const aborted = (): void => {
        leave();
        reject(signal.reason);
      };
      const cancel = patience?.clock.setTimer(() => told(NONE), patience.maxWaitMs);
      // Held up during all of the time since the last look. A reader that keeps pace isn't.
      const watch = (before: number): (() => void) | undefined =>
        patience?.clock.setTimer(() => {
          const now = pausedMs!();
          if (now - before >= STALL_MS) told(STALLED);
          else unwatch = watch(now);
        }, STALL_MS);
      let unwatch = pausedMs && watch(pausedMs());
      waiters.add(told);
      signal.addEventListener('abort', aborted);
    });
  }
}
