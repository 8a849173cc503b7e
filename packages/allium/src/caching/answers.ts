/** Finds in a store what was answered before; whoever asks the same at the same time waits for the first one. */
import type { Clock } from '../kernel/clock.js';
import type { Context } from '../kernel/context.js';
import { invalidOption, isControl, isThenable } from '../kernel/errors.js';
import { checkInteger, checkMethods } from '../kernel/options.js';
import type { Awaitable } from '../kernel/store.js';
import { abortable } from './abortable.js';
import { GONE, InFlight, NONE, type Outcome } from './in-flight.js';
import { Lru } from './lru.js';

/** Who shares answers. */
export type Scope = 'tenant' | 'session' | 'all';

export const SCOPES: readonly Scope[] = ['tenant', 'session', 'all'];

/** A Keyv, a Map, or anything like them. */
export interface AnswerStore<Entry> {
  get(key: string): unknown;
  set(key: string, value: Entry, ttlMs?: number): unknown;
  delete(key: string): unknown;
}

export interface AnswersOptions<Answer, Entry> {
  readonly store: AnswerStore<Entry>;
  /** Milliseconds an answer is good for; for ever when absent. */
  readonly ttlMs: number | undefined;
  /** Milliseconds to wait for the same question of another run. */
  readonly maxWaitMs: number;
  readonly clock: Clock | undefined;
  /** The answer in what a store holds, if it is one: stores hold what others wrote, too. */
  readonly read: (
    stored: unknown,
  ) => { readonly answer: Answer; readonly expiresAt: number | undefined } | undefined;
  readonly entry: (answer: Answer, expiresAt: number | undefined) => Entry;
}

export class Answers<Answer, Entry> {
  private readonly calls = new InFlight<Answer>();

  constructor(private readonly options: AnswersOptions<Answer, Entry>) {}

  /** The answer that was there, or undefined after `make` has made the call; what it returns is stored. */
  find(ctx: Context, id: string, make: () => Promise<Answer | undefined>): Awaitable<Answer | undefined> {
    const { calls } = this;
    const { clock = ctx.agent.clock } = this.options;
    if (calls.has(id)) return this.follow(ctx, id, make, clock);
    calls.begin(id);
    return this.ask(ctx, id, make, clock, false);
  }

  /** Somebody asks the same already. */
  private async follow(
    ctx: Context,
    id: string,
    make: () => Promise<Answer | undefined>,
    clock: Clock,
  ): Promise<Answer | undefined> {
    const { calls } = this;
    const { maxWaitMs } = this.options;
    // Each for itself after an error: it is nobody else's, and a queue of failing calls helps nobody.
    let alone = false;
    while (!alone && calls.has(id)) {
      const first = await calls.follow(id, ctx.signal, { clock, maxWaitMs });
      if (first.type === 'answer') return first.answer;
      alone = first.type === 'none';
    }
    if (!alone) calls.begin(id);
    return this.ask(ctx, id, make, clock, alone);
  }

  /** Looks in the store, then makes the call. Written with `then`: a store in memory has nothing to wait for. */
  private ask(
    ctx: Context,
    id: string,
    make: () => Promise<Answer | undefined>,
    clock: Clock,
    alone: boolean,
  ): Awaitable<Answer | undefined> {
    const ended = (outcome: Outcome<Answer>): void => {
      if (!alone) this.calls.end(id, outcome);
    };
    const failed = (error: unknown): never => {
      ended(isControl(error) ? GONE : NONE);
      throw error;
    };
    const made = (answer: Answer | undefined): Awaitable<undefined> => {
      if (answer === undefined) return void ended(NONE);
      const kept = this.kept(ctx, id, answer, clock, ended);
      if (kept === undefined) return void ended({ type: 'answer', answer });
      return kept;
    };
    const looked = (stored: Answer | undefined): Awaitable<Answer | undefined> => {
      if (stored === undefined) return make().then(made, failed);
      ended({ type: 'answer', answer: stored });
      return stored;
    };
    try {
      const found = this.stored(ctx, id, clock);
      return isThenable(found) ? found.then(looked, failed) : looked(found);
    } catch (error) {
      return failed(error);
    }
  }

  /** Stores an answer. One that cannot be stored is an answer all the same for those who wait for it. */
  private kept(
    ctx: Context,
    id: string,
    answer: Answer,
    clock: Clock,
    ended: (outcome: Outcome<Answer>) => void,
  ): Promise<undefined> | undefined {
    const whole = { type: 'answer', answer } as const;
    let wait: Promise<unknown> | undefined;
    try {
      wait = this.keep(ctx, id, answer, clock);
    } catch (error) {
      ended(isControl(error) ? GONE : whole);
      throw error;
    }
    return wait?.then(
      () => void ended(whole),
      (error) => {
        ended(isControl(error) ? GONE : whole);
        throw error;
      },
    );
  }

  private stored(ctx: Context, id: string, clock: Clock): Answer | undefined | Promise<Answer | undefined> {
    const { store, read } = this.options;
    const fresh = (value: unknown): Answer | undefined | Promise<undefined> => {
      const found = read(value);
      if (!found) return undefined;
      if (found.expiresAt === undefined || found.expiresAt > clock.now()) return found.answer;
      const gone = store.delete(id);
      return isThenable(gone) ? abortable(gone, ctx.signal).then(() => undefined) : undefined;
    };
    const got = store.get(id);
    return isThenable(got) ? abortable(got, ctx.signal).then(fresh) : fresh(got);
  }

  private keep(ctx: Context, id: string, answer: Answer, clock: Clock): Promise<unknown> | undefined {
    const { store, entry, ttlMs } = this.options;
    const expiresAt = ttlMs === undefined ? undefined : clock.now() + ttlMs;
    const kept = store.set(id, entry(answer, expiresAt), ttlMs);
    return isThenable(kept) ? abortable(kept, ctx.signal) : undefined;
  }
}

/** The store of the options, or one in memory. */
export function storeOf<Entry>(options: {
  readonly store?: AnswerStore<Entry>;
  readonly maxEntries?: number;
}): AnswerStore<Entry> {
  const { store, maxEntries = 1000 } = options;
  checkInteger('maxEntries', maxEntries, 1);
  if (store === undefined) return new Lru<Entry>(maxEntries);
  checkMethods('store', store, ['get', 'set', 'delete']);
  if (options.maxEntries !== undefined)
    throw invalidOption(
      'maxEntries',
      'left out when there is a `store`, which has its own bounds',
      maxEntries,
    );
  return store;
}

/** Part of every key, so that no key of your own can mix tenants. */
export function ownerOf(ctx: Context, scope: Scope): string {
  const owner = scope === 'all' ? undefined : scope === 'session' ? ctx.sessionId : ctx.tenant;
  return owner === undefined ? scope : `${scope}:${owner}`;
}
