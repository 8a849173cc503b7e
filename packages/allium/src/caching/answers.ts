/** Looks up answers in a store. Those who ask the same at the same time wait for the first. */

import { type Awaitable, type Clock, type Context, isControl, monotonic } from '../index.js';
import { invalidOption, isThenable, kinds, type TypeOf } from '../kit/index.js';
import { abortable } from './abortable.js';
import { GONE, InFlight, NONE, type Outcome, type Underway } from './in-flight.js';
import { Lru } from './lru.js';

/** Who shares answers. */
export const SCOPE = kinds.oneOf('tenant', 'session', 'all');

export type Scope = TypeOf<typeof SCOPE>;

/** A Keyv, a Map, or anything like them. */
export interface AnswerStore<Entry> {
  get(key: string): unknown;
  set(key: string, value: Entry, ttlMs?: number): unknown;
  delete(key: string): unknown;
}

export interface AnswersOptions<Call extends Context, Result, Answer, Entry> {
  readonly store: AnswerStore<Entry>;
  /** Milliseconds an answer is good for; forever if absent. */
  readonly ttlMs: number | undefined;
  /** Milliseconds to wait while another run asks the same. */
  readonly maxWaitMs: number;
  /** Doesn't wait for a call whose stream nobody reads. */
  readonly leavesStalled?: boolean;
  readonly clock: Clock | undefined;
  /** Reads an answer from what a store holds, if it is one: stores also hold what others wrote. */
  readonly read: (
    stored: unknown,
  ) => { readonly answer: Answer; readonly expiresAt: number | undefined } | undefined;
  readonly entry: (answer: Answer, expiresAt: number | undefined) => Entry;
  /** The part of a result that others may have; undefined if it isn't for anybody else. */
  readonly answerIn: (ctx: Call, result: Result) => Answer | undefined;
  /** The result of a call that gets a stored answer. */
  readonly given: (ctx: Call, answer: Answer) => Result;
}

export class Answers<Call extends Context, Result, Answer, Entry> {
  readonly calls = new InFlight<Answer>();

  constructor(readonly options: AnswersOptions<Call, Result, Answer, Entry>) {}

  /** A result made from a stored answer, or the result of `make`, whose answer is then stored. */
  find(ctx: Call, id: string, make: () => Promise<Result>): Awaitable<Result> {
    const { clock = ctx.agent.clock } = this.options;
    const ahead = this.calls.get(id);
    if (ahead === undefined) return this.first(ctx, id, clock, make);
    return ctx.isInside(ahead.by) ? this.alone(ctx, id, clock, make) : this.follow(ctx, id, make, clock);
  }

  /** Others who ask the same wait for this one. */
  private first(ctx: Call, id: string, clock: Clock, make: () => Promise<Result>): Awaitable<Result> {
    const call = this.calls.begin(id, ctx, this.options.leavesStalled ? () => ctx.pausedMs : undefined);
    return new Question(this, ctx, id, clock, call).ask(make);
  }

  /** Nobody waits for this one. */
  private alone(ctx: Call, id: string, clock: Clock, make: () => Promise<Result>): Awaitable<Result> {
    return new Question(this, ctx, id, clock, undefined).ask(make);
  }

  /** Somebody else is asking the same already. */
  private async follow(ctx: Call, id: string, make: () => Promise<Result>, clock: Clock): Promise<Result> {
    const { calls } = this;
    const { maxWaitMs, given } = this.options;
    // After an error each goes on alone: the error belongs to one call, and a queue of failing calls helps nobody.
    for (let ahead = calls.get(id); ahead !== undefined; ahead = calls.get(id)) {
      const first = await calls.follow(id, ctx.signal, { clock, maxWaitMs });
      if (first.type === 'answer') return given(ctx, first.answer);
      if (first.type === 'none') return this.alone(ctx, id, clock, make);
      // The first to notice takes its place, and the others wait for that one.
      if (first.type === 'stalled' && calls.get(id) === ahead) break;
    }
    return this.first(ctx, id, clock, make);
  }
}

/** Looks in the store, then makes the call. Written with `then`: a store in memory has nothing to wait for. */
class Question<Call extends Context, Result, Answer, Entry> {
  constructor(
    private readonly answers: Answers<Call, Result, Answer, Entry>,
    private readonly ctx: Call,
    private readonly id: string,
    private readonly clock: Clock,
    /** The call that others wait for; undefined if nobody does. */
    private readonly call: Underway<Answer> | undefined,
  ) {}

  ask(make: () => Promise<Result>): Awaitable<Result> {
    try {
      const found = this.stored();
      if (!isThenable(found)) return this.looked(found, make);
      return found.then(
        (stored) => this.looked(stored, make),
        (error) => this.failed(error),
      );
    } catch (error) {
      return this.failed(error);
    }
  }

  private looked(stored: Answer | undefined, make: () => Promise<Result>): Awaitable<Result> {
    if (stored === undefined)
      return make().then(
        (result) => this.made(result),
        (error) => this.failed(error),
      );
    this.ended({ type: 'answer', answer: stored });
    return this.answers.options.given(this.ctx, stored);
  }

  /** Stores the answer. If it can't be stored, those who wait for it still get it. */
  private made(result: Result): Awaitable<Result> {
    let outcome: Outcome<Answer> = NONE;
    let wait: Promise<unknown> | undefined;
    try {
      const answer = this.answers.options.answerIn(this.ctx, result);
      if (answer !== undefined) {
        outcome = { type: 'answer', answer };
        wait = this.keep(answer);
      }
    } catch (error) {
      this.ended(isControl(error) ? GONE : outcome);
      throw error;
    }
    if (wait === undefined) {
      this.ended(outcome);
      return result;
    }
    return wait.then(
      () => {
        this.ended(outcome);
        return result;
      },
      (error) => {
        this.ended(isControl(error) ? GONE : outcome);
        throw error;
      },
    );
  }

  private failed(error: unknown): never {
    this.ended(isControl(error) ? GONE : NONE);
    throw error;
  }

  private ended(outcome: Outcome<Answer>): void {
    if (this.call) this.answers.calls.end(this.id, this.call, outcome);
  }

  private stored(): Answer | undefined | Promise<Answer | undefined> {
    const { ctx, id } = this;
    const got = this.answers.options.store.get(id);
    if (got === undefined) return undefined;
    return isThenable(got) ? abortable(got, ctx.signal).then((value) => this.fresh(value)) : this.fresh(got);
  }

  private fresh(value: unknown): Answer | undefined | Promise<undefined> {
    const { ctx, id, clock } = this;
    const { store, read } = this.answers.options;
    const found = read(value);
    if (!found) return undefined;
    if (found.expiresAt === undefined || found.expiresAt > timeOf(store, clock)) return found.answer;
    const gone = store.delete(id);
    return isThenable(gone) ? abortable(gone, ctx.signal).then(() => undefined) : undefined;
  }

  private keep(answer: Answer): Promise<unknown> | undefined {
    const { ctx, id, clock } = this;
    const { store, entry, ttlMs } = this.answers.options;
    const expiresAt = ttlMs === undefined ? undefined : timeOf(store, clock) + ttlMs;
    const kept = store.set(id, entry(answer, expiresAt), ttlMs);
    return isThenable(kept) ? abortable(kept, ctx.signal) : undefined;
  }
}

/** The time for expiry. Other processes share only the wall clock; the store in memory is not affected by its jumps. */
function timeOf(store: unknown, clock: Clock): number {
  return store instanceof Lru ? monotonic(clock) : clock.now();
}

/** The store of the options, or one in memory. */
export function storeOf<Entry>(options: {
  readonly store: AnswerStore<Entry> | undefined;
  readonly maxEntries: number | undefined;
}): AnswerStore<Entry> {
  const { store, maxEntries } = options;
  if (store === undefined) return new Lru<Entry>(maxEntries ?? 1000);
  if (maxEntries !== undefined)
    throw invalidOption(
      'maxEntries',
      'left out when there is a `store`, which has its own bounds',
      maxEntries,
    );
  return store;
}

/** What a `key` function returned. A promise or an object would be the same key for everything. */
export function checkedKey(key: unknown): string | undefined {
  if (key === undefined || typeof key === 'string') return key;
  throw invalidOption('key()', 'a function that returns text or undefined', key);
}

/**
 * Part of every key, so that no key of your own can mix tenants. Where a guard restores placeholders, it is always the session:
 * in another one they stand for something else.
 */
export function ownerOf({ plan, tenant, sessionId }: Context, wanted: Scope): string {
  const scope = plan.restores.length > 0 ? 'session' : wanted;
  if (scope === 'all') return 'all';
  // Two tenants with stores of their own may have sessions of the same name. JSON, so that no two owners read the same.
  return JSON.stringify(scope === 'session' ? [tenant ?? null, sessionId] : [tenant ?? null]);
}
