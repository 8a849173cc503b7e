/** A store with a time limit on its answers. */

import { type Clock, monotonic, systemClock } from '../lib/clock.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import * as kinds from '../lib/kinds.js';
import type { Scope } from '../lib/scope.js';
import { checkFields } from '../lib/shapes.js';
import type {
  Awaitable,
  Entry,
  InboxItem,
  ListOptions,
  NewEntry,
  Posted,
  SessionPage,
  Snapshot,
  Store,
  Tail,
} from '../protocol/store.js';

/** How long to wait for an answer of the store by default. */
export const STORE_TIMEOUT_MS = 30_000;

export interface StoreTimeoutOptions {
  /** Milliseconds one answer may take; `Infinity` for no limit. @default 30000 */
  readonly timeoutMs?: number;
  /** @default the system clock */
  readonly clock?: Clock;
}

/**
 * Puts a time limit on every answer of a store: a late one rejects with `STORE_TIMEOUT`. Agents do this by themselves
 * (`storeTimeoutMs`); use this if you call a store directly.
 *
 * @example
 * const { sessions } = await withStoreTimeout(store, { timeoutMs: 5000 }).list();
 */
export function withStoreTimeout(store: Store, options: StoreTimeoutOptions = {}): Store {
  const fields = { timeoutMs: kinds.number(1, Number.POSITIVE_INFINITY), clock: kinds.anything };
  checkFields('withStoreTimeout()', fields, options);
  const { timeoutMs = STORE_TIMEOUT_MS, clock = systemClock } = options;
  return new BoundedStore(store, clock, timeoutMs);
}

/** The run that waits. */
interface Waiter {
  /** Once it is aborted, an answer may only take `graceMs`, but at least a second. */
  readonly scope: Scope;
  readonly graceMs: number;
  /** The store of the parent run. If the store doesn't answer one of the two, both fail. */
  readonly above: BoundedStore | undefined;
}

export class BoundedStore implements Store {
  /** The store was late once, so the run can't go on and doesn't wait again. */
  private lost: AlliumError | undefined = undefined;
  /** Set by the first wait of a run that is ending. */
  private endsBy: number | undefined = undefined;

  constructor(
    readonly raw: Store,
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    private readonly waiter?: Waiter,
  ) {
    // It's the caller's store, so the caller's limit holds too.
    this.timeoutMs = Math.min(timeoutMs, waiter?.above?.timeoutMs ?? timeoutMs);
  }

  // Every turn calls `append` and `take`. Without a function to pass to `bounded`, it allocates 3 % less.

  append(
    sessionId: string,
    expectedSeq: number,
    entries: readonly NewEntry[],
    snapshot?: Snapshot,
  ): Awaitable<number> {
    if (this.lost !== undefined) throw this.lost;
    try {
      const { raw } = this;
      const seq = snapshot
        ? raw.append(sessionId, expectedSeq, entries, snapshot)
        : raw.append(sessionId, expectedSeq, entries);
      return isThenable(seq) ? this.wait('append', seq) : seq;
    } catch (error) {
      throw noted(error);
    }
  }

  /** Only there if the store has it. */
  get tail(): Store['tail'] {
    return this.raw.tail && this.readTail;
  }

  private readTail(sessionId: string): Awaitable<Tail> {
    return this.bounded('tail', () => this.raw.tail!(sessionId));
  }

  read(sessionId: string, fromSeq: number): Awaitable<readonly Entry[]> {
    return this.bounded('read', () => this.raw.read(sessionId, fromSeq));
  }

  head(sessionId: string): Awaitable<number> {
    return this.bounded('head', () => this.raw.head(sessionId));
  }

  list(options?: ListOptions): Awaitable<SessionPage> {
    return this.bounded('list', () => this.raw.list(options));
  }

  fork(sessionId: string, seq: number, newId: string): Awaitable<void> {
    return this.bounded('fork', () => this.raw.fork(sessionId, seq, newId));
  }

  delete(sessionId: string): Awaitable<void> {
    return this.bounded('delete', () => this.raw.delete(sessionId));
  }

  post(sessionId: string, item: InboxItem): Awaitable<void> {
    return this.bounded('post', () => this.raw.post(sessionId, item));
  }

  take(sessionId: string, after: number): Awaitable<readonly Posted[]> {
    if (this.lost !== undefined) throw this.lost;
    try {
      const posted = this.raw.take(sessionId, after);
      return isThenable(posted) ? this.wait('take', posted) : posted;
    } catch (error) {
      throw noted(error);
    }
  }

  close(): Awaitable<void> {
    return this.bounded('close', () => this.raw.close?.());
  }

  /** Stores that answer at once cost no timer. */
  private bounded<T>(method: keyof Store, ask: () => Awaitable<T>): Awaitable<T> {
    if (this.lost !== undefined) throw this.lost;
    try {
      const answer = ask();
      return isThenable(answer) ? this.wait(method, answer) : answer;
    } catch (error) {
      throw noted(error);
    }
  }

  private wait<T>(method: keyof Store, answer: PromiseLike<T>): Promise<T> {
    const { clock, timeoutMs, waiter } = this;
    return new Promise((resolve, reject) => {
      const alarm = (ms: number): (() => void) =>
        ms === Number.POSITIVE_INFINITY ? nothing : clock.setTimer(() => late(ms), ms);
      let cancel = alarm(timeoutMs);
      const unlink = waiter?.scope.onAbort(() => {
        cancel();
        cancel = alarm(this.grace(waiter));
      });
      const over = (): void => {
        cancel();
        unlink?.();
      };
      const late = (ms: number): void => {
        over();
        reject(this.timedOut(method, ms));
      };
      answer.then(
        (value) => {
          over();
          resolve(value);
        },
        (error) => {
          over();
          reject(noted(error));
        },
      );
    });
  }

  /**
   * How long one wait may take while the run is ending. All waits together, including sub-agents, may take twice as long, so
   * a store that is a little late each time doesn't delay the end forever.
   */
  private grace({ graceMs, above }: Waiter): number {
    const most = Math.min(this.timeoutMs, Math.max(graceMs, LEAST_GRACE_MS));
    if (above?.waiter?.scope.aborted) return Math.min(most, above.grace(above.waiter));
    const now = monotonic(this.clock);
    this.endsBy ??= now + 2 * most;
    return Math.max(0, Math.min(most, this.endsBy - now));
  }

  private timedOut(method: keyof Store, ms: number): AlliumError {
    const aborted = this.waiter?.scope.aborted ? ' after the run was told to end' : '';
    const error = new AlliumError(
      'STORE_TIMEOUT',
      `${method}() of the store did not answer within ${ms} ms${aborted}. The operation may still complete. Check the store, then resume the session. To allow more time, raise \`storeTimeoutMs\` of the agent.`,
      { data: { method, ms } },
    );
    if (this.waiter !== undefined) this.lose(error);
    return error;
  }

  private lose(error: AlliumError): void {
    this.lost ??= error;
    this.waiter?.above?.lose(error);
  }
}

const thrown = new WeakSet<object>();

/**
 * Marks an error as the store's: it passes handlers, layers and parents of sub-agents, and none of them has failed.
 */
function noted(error: unknown): unknown {
  if (typeof error === 'object' && error !== null) thrown.add(error);
  return error;
}

/** Did a store throw this? */
export function isThrownByStore(error: unknown): boolean {
  return thrown.has(error as object);
}

/** Enough for a working store to finish writing, however little time tools are given. */
const LEAST_GRACE_MS = 1000;

function nothing(): void {}
