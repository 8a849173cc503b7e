/** Who has spent how much: in memory for one process, or in a store that several share. */

import type { Awaitable, Price } from '../../index.js';
import { invalidOption, isThenable, type MeteredUsage } from '../../kit/index.js';

export interface Amount {
  readonly tokens: number;
  readonly usd: number;
}

export const NOTHING: Amount = Object.freeze({ tokens: 0, usd: 0 });

/** Numbers that several processes share. Atomic: of two that add at once, one sees the sum of both. */
export interface BudgetStore {
  /** Adds to the number under `key`, which starts at 0, and returns the sum. `by` may be negative, 0 or a fraction. */
  increment(key: string, by: number): Awaitable<number>;
}

/** A Map, a Keyv, …: safe within one process only. */
export interface BudgetMap {
  get(key: string): Awaitable<unknown>;
  set(key: string, value: number): Awaitable<unknown>;
}

/** What is spent and set aside of one budget. */
export interface Account {
  /** What the kernel has counted and is not booked yet. */
  readonly unbooked: MeteredUsage[];
  /** The price of the call before. A model further in whose price is unknown is assumed to cost the same. */
  lastPrice: Price | undefined;
  /** Adds, and returns the total of what is spent and set aside. `whole`: if a part can't be added, nothing is. */
  add(amount: Amount, whole?: boolean): Awaitable<Amount>;
  /** A call begins, beside those in progress. */
  enter(): SideBySide;
  /** The call is over. */
  leave(): void;
  /** Books after a call that is over and that nobody here waits for. */
  later(book: () => Awaitable<unknown>, failed: (problem: unknown) => void): void;
  /** Settles when all of that is done. */
  readonly settled: Promise<unknown> | undefined;
}

/** What both kinds of accounts share. */
abstract class Booking {
  settled: Promise<unknown> | undefined = undefined;

  abstract leave(): void;

  later(book: () => Awaitable<unknown>, failed: (problem: unknown) => void): void {
    this.leave();
    try {
      const done = book();
      if (!isThenable(done)) return;
      const noted = Promise.resolve(done).catch(failed);
      this.settled = this.settled ? Promise.all([this.settled, noted]) : noted;
    } catch (problem) {
      failed(problem);
    }
  }
}

/** The calls of this process in progress on an account. */
export interface SideBySide {
  calls: number;
  /** What they have asked a store for that hasn't answered yet, so nobody finds it there. */
  asked: Amount;
}

/** The account of a run or session while a run is in progress. Sub-agents use the account of their root. */
export class RunAccount extends Booking implements Account {
  readonly unbooked: MeteredUsage[] = [];
  lastPrice: Price | undefined;
  private reservedTokens = 0;
  private reservedUsd = 0;
  private readonly side: SideBySide = { calls: 0, asked: NOTHING };

  constructor(
    readonly runId: string,
    /** Spent before this run. */
    private readonly base: Amount,
    /** Booked in it. */
    private own: Amount,
    /** What the kernel has counted for the run, including what is not booked yet. */
    private readonly counted: {
      readonly usage: { readonly totalTokens: number };
      readonly costUsd: number | undefined;
    },
  ) {
    super();
  }

  /** Spent, without what is set aside. */
  get spent(): Amount {
    const { base, own, counted } = this;
    return {
      tokens: base.tokens + Math.max(own.tokens, counted.usage.totalTokens),
      usd: base.usd + Math.max(own.usd, counted.costUsd ?? 0),
    };
  }

  /** For the cell: a resumed run starts from the same base, a new one from the total. */
  get stored(): StoredAmount {
    return { run: this.runId, base: this.base, total: this.spent };
  }

  /** Sets aside. What is spent is not included: the kernel counts that. */
  add({ tokens, usd }: Amount): Amount {
    this.reservedTokens += tokens;
    this.reservedUsd += usd;
    const { spent } = this;
    return { tokens: spent.tokens + this.reservedTokens, usd: spent.usd + this.reservedUsd };
  }

  enter(): SideBySide {
    this.side.calls++;
    return this.side;
  }

  leave(): void {
    this.side.calls--;
  }

  /** Books what was used instead of what was set aside. */
  settle({ tokens, usd }: Amount, used: Amount): void {
    this.own = sum(this.own, used);
    this.reservedTokens -= tokens;
    this.reservedUsd -= usd;
  }
}

export interface StoredAmount {
  readonly run: string;
  readonly base: Amount;
  readonly total: Amount;
}

/** Was it stored earlier in the same run? */
export function isBehind({ run, total }: StoredAmount, other: StoredAmount): boolean {
  return run === other.run && total.tokens <= other.total.tokens && total.usd <= other.total.usd;
}

/** An account that outlives runs: of a tenant, or of whatever a key names. */
export class SharedAccount extends Booking implements Account {
  readonly unbooked: MeteredUsage[] = [];
  lastPrice: Price | undefined;

  constructor(
    private readonly increment: BudgetStore['increment'],
    private readonly key: string,
    /** Only what is limited is counted. */
    private readonly counts: { readonly tokens: boolean; readonly usd: boolean },
    /** By key, because every run has its own account object. Those without calls are not kept. */
    private readonly sides: Map<string, SideBySide>,
  ) {
    super();
  }

  enter(): SideBySide {
    const side = this.sides.get(this.key) ?? { calls: 0, asked: NOTHING };
    this.sides.set(this.key, side);
    side.calls++;
    return side;
  }

  leave(): void {
    const side = this.sides.get(this.key);
    if (side && --side.calls === 0) this.sides.delete(this.key);
  }

  async add(amount: Amount, whole = false): Promise<Amount> {
    const [tokens, usd] = await Promise.allSettled([this.addTo('tokens', amount), this.addTo('usd', amount)]);
    if (tokens.status === 'fulfilled' && usd.status === 'fulfilled')
      return { tokens: tokens.value, usd: usd.value };
    if (whole && tokens.status === 'fulfilled') await this.addTo('tokens', minus(amount)).catch(ignore);
    if (whole && usd.status === 'fulfilled') await this.addTo('usd', minus(amount)).catch(ignore);
    throw tokens.status === 'rejected' ? tokens.reason : (usd as PromiseRejectedResult).reason;
  }

  private async addTo(unit: keyof Amount, { [unit]: by }: Amount): Promise<number> {
    if (!this.counts[unit]) return 0;
    return checkedAmount('store.increment()', await this.increment(`${this.key}:${unit}`, by));
  }
}

/** `increment` for a store that can only get and set: one after the other per key, within this process. */
export function incrementOf(store: BudgetStore | BudgetMap): BudgetStore['increment'] {
  if ('increment' in store) return (key, by) => store.increment(key, by);
  const last = new Map<string, Promise<unknown>>();
  const add = (key: string, by: number): Awaitable<number> => {
    const found = store.get(key);
    return isThenable(found)
      ? Promise.resolve(found).then((value) => put(key, value, by))
      : put(key, found, by);
  };
  const put = (key: string, value: unknown, by: number): Awaitable<number> => {
    const next = checkedAmount('store.get()', value ?? 0) + by;
    const done = store.set(key, next);
    return isThenable(done)
      ? Promise.resolve(done).then((kept) => checkKept(kept, next))
      : checkKept(done, next);
  };
  return (key, by) => {
    const before = last.get(key);
    const now = before ? before.then(() => add(key, by)) : add(key, by);
    if (!isThenable(now)) return now;
    const settled = now.then(ignore, ignore).then(() => {
      if (last.get(key) === settled) last.delete(key);
    });
    last.set(key, settled);
    return now;
  };
}

/** A text, such as Redis answers with, would be joined to the next number, and anything else would limit nothing. */
function checkedAmount(option: string, amount: unknown): number {
  if (typeof amount === 'number' && Number.isFinite(amount)) return amount;
  throw invalidOption(option, 'a function that returns a finite number', amount);
}

/** A Keyv whose database is down says only this. */
function checkKept(kept: unknown, amount: number): number {
  if (kept === false)
    throw new Error('The store of the budget did not keep an amount: its set() returned false.');
  return amount;
}

function ignore(): void {}

export function sum(a: Amount, b: Amount): Amount {
  return { tokens: a.tokens + b.tokens, usd: a.usd + b.usd };
}

export function minus(amount: Amount): Amount {
  return { tokens: -amount.tokens, usd: -amount.usd };
}
