/** Calls under way by key: whoever makes the same call meanwhile waits for the first one. */

/** How the first call ended, as far as others can use it. */
export type Outcome<T> = { readonly type: 'answer'; readonly answer: T } | { readonly type: 'none' };

type Waiter<T> = (outcome: Outcome<T>) => void;

export class InFlight<T> {
  private readonly calls = new Map<string, Set<Waiter<T>>>();

  has(key: string): boolean {
    return this.calls.has(key);
  }

  /** Does the work as the first one. */
  async lead(key: string, work: () => Promise<T>): Promise<T> {
    const waiters = new Set<Waiter<T>>();
    this.calls.set(key, waiters);
    let outcome: Outcome<T> = { type: 'none' };
    try {
      const answer = await work();
      outcome = { type: 'answer', answer };
      return answer;
    } finally {
      this.calls.delete(key);
      for (const tell of waiters) tell(outcome);
    }
  }

  /** Waits for the first call, however long it takes; rejects with the reason of the signal when that aborts. */
  follow(key: string, signal: AbortSignal): Promise<Outcome<T>> {
    const waiters = this.calls.get(key)!;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
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
      waiters.add(told);
      signal.addEventListener('abort', aborted);
    });
  }
}
