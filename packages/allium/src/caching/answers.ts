/** Finds in a store what was answered before; whoever asks the same at the same time waits for the first one. */
import type { Clock } from '../kernel/clock.js';
import type { Context } from '../kernel/context.js';
import { invalidOption, isControl, isThenable } from '../kernel/errors.js';
import { checkInteger, checkMethods } from '../kernel/options.js';
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
  async find(ctx: Context, id: string, make: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
    const { calls } = this;
    const { clock = ctx.agent.clock, maxWaitMs } = this.options;
    // Each for itself after an error: it is nobody else's, and a queue of failing calls helps nobody.
    let alone = false;
    while (!alone && calls.has(id)) {
      const first = await calls.follow(id, ctx.signal, { clock, maxWaitMs });
      if (first.type === 'answer') return first.answer;
      alone = first.type === 'none';
    }
    if (!alone) calls.begin(id);
    let outcome: Outcome<Answer> = NONE;
    try {
      const found = this.stored(ctx, id, clock);
      const stored = isThenable(found) ? await found : found;
      const answer = stored ?? (await make());
      if (answer !== undefined) outcome = { type: 'answer', answer };
      if (answer !== undefined && stored === undefined) {
        const kept = this.keep(ctx, id, answer, clock);
        if (kept !== undefined) await kept;
      }
      return stored;
    } catch (error) {
      if (isControl(error)) outcome = GONE;
      throw error;
    } finally {
      if (!alone) calls.end(id, outcome);
    }
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
