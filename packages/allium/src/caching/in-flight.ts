/** Calls under way by key: whoever asks the same question meanwhile waits for the answer to the first one. */
import type { Clock } from '../kernel/clock.js';

/** How the first call ended, as far as others can use it. */
export type Outcome<T> =
  | { readonly type: 'answer'; readonly answer: T }
  /** It failed, its answer is not to be shared, or it took too long. */
  | { readonly type: 'none' }
  /** It was stopped or aborted, which says nothing about the question. */
  | { readonly type: 'gone' };

export const NONE = { type: 'none' } as const;
export const GONE = { type: 'gone' } as const;

type Waiter<T> = (outcome: Outcome<T>) => void;

export class InFlight<T> {
  // Most calls have nobody waiting for them, and no set for those.
  private readonly calls = new Map<string, Set<Waiter<T>> | undefined>();

  has(key: string): boolean {
    return this.calls.has(key);
  }

  /** The first call begins; `end` has to follow, however it ends. */
  begin(key: string): void {
    this.calls.set(key, undefined);
  }

  end(key: string, outcome: Outcome<T>): void {
    const waiters = this.calls.get(key);
    this.calls.delete(key);
    if (waiters !== undefined) for (const tell of waiters) tell(outcome);
  }

  /** Waits for the first call, not longer than `patience` says; rejects with the reason of the signal when that aborts. */
  follow(
    key: string,
    signal: AbortSignal,
    patience?: { readonly clock: Clock; readonly maxWaitMs: number },
  ): Promise<Outcome<T>> {
    const waiters = this.calls.get(key) ?? new Set<Waiter<T>>();
    this.calls.set(key, waiters);
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        cancel?.();
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
      waiters.add(told);
      signal.addEventListener('abort', aborted);
    });
  }
}
