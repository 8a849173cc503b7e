/** Calls under way by key: whoever asks the same question meanwhile waits for the answer to the first one. */
import type { Clock } from '../../kernel/clock.js';
import { isControl } from '../../kernel/errors.js';

/** How the first call ended, as far as others can use it. */
export type Outcome<T> =
  | { readonly type: 'answer'; readonly answer: T }
  /** It failed, its answer is not to be shared, or it took too long. */
  | { readonly type: 'none' }
  /** It was stopped or aborted, which says nothing about the question. */
  | { readonly type: 'gone' };

type Waiter<T> = (outcome: Outcome<T>) => void;

const NONE = { type: 'none' } as const;

export class InFlight<T> {
  private readonly calls = new Map<string, Set<Waiter<T>>>();

  has(key: string): boolean {
    return this.calls.has(key);
  }

  /** Does the work as the first one; `share` picks what others may have of its result. */
  async lead<R>(key: string, work: () => Promise<R>, share: (result: R) => T | undefined): Promise<R> {
    const waiters = new Set<Waiter<T>>();
    this.calls.set(key, waiters);
    let outcome: Outcome<T> = NONE;
    try {
      const result = await work();
      const answer = share(result);
      if (answer !== undefined) outcome = { type: 'answer', answer };
      return result;
    } catch (error) {
      if (isControl(error)) outcome = { type: 'gone' };
      throw error;
    } finally {
      this.calls.delete(key);
      for (const tell of waiters) tell(outcome);
    }
  }

  /** Waits for the first call, for `maxWaitMs` at most; rejects with the reason of the signal when that aborts. */
  follow(key: string, signal: AbortSignal, clock: Clock, maxWaitMs: number): Promise<Outcome<T>> {
    const waiters = this.calls.get(key)!;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        cancel();
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
      const cancel = clock.setTimer(() => told(NONE), maxWaitMs);
      waiters.add(told);
      signal.addEventListener('abort', aborted);
    });
  }
}
