/** Answers a request that was answered before from a store. */
import type { Clock } from '../../kernel/clock.js';
import type { ModelContext } from '../../kernel/context.js';
import { invalidOption, isThenable } from '../../kernel/errors.js';
import { hash, requestKey } from '../../kernel/hash.js';
import type { ModelResponse } from '../../kernel/messages.js';
import { defineMiddleware, type Middleware, type ModelOverride, type Next } from '../../kernel/middleware.js';
import { modelName } from '../../kernel/model.js';
import {
  checkFunction,
  checkInteger,
  checkMethods,
  checkNumber,
  checkOneOf,
  checkOptions,
} from '../../kernel/options.js';
import { InFlight } from './in-flight.js';
import { Lru } from './lru.js';

/** What is stored: JSON, so that any store can hold it. */
export interface CacheEntry {
  readonly version: 1;
  /** Milliseconds since the epoch; never when absent. */
  readonly expiresAt?: number;
  readonly response: Omit<ModelResponse, 'usage'>;
}

/**
 * Where answers are kept: a Keyv, a Map, or anything with these methods, which may return promises.
 *
 * Contract: `ttlMs` is a hint, for entries carry their own end. What it throws is noted in `result.changes` and the
 * call is made as if there were no cache.
 */
export interface CacheStore {
  get(key: string): unknown;
  set(key: string, value: CacheEntry, ttlMs?: number): unknown;
  delete(key: string): unknown;
}

export interface CacheOptions {
  /** @default a store in memory of `maxEntries` answers */
  readonly store?: CacheStore;
  /** Milliseconds an answer is good for. @default for ever */
  readonly ttlMs?: number;
  /** Answers the store in memory keeps; then it drops those that were not used for longest. @default 1000 */
  readonly maxEntries?: number;
  /** Who shares answers: the runs of a tenant, of a session, or all. @default 'tenant' */
  readonly scope?: 'tenant' | 'session' | 'all';
  /** What makes two requests the same, within the scope; undefined leaves this call out. @default cacheKey */
  readonly key?: (ctx: ModelContext) => string | undefined;
  /** Milliseconds to wait for the same request of another run before making the call anyway. @default 60_000 */
  readonly maxWaitMs?: number;
  /** @default the agent's */
  readonly clock?: Clock;
}

const OPTIONS = ['store', 'ttlMs', 'maxEntries', 'scope', 'key', 'maxWaitMs', 'clock'];

/**
 * Gives identical requests the answer of the first one: at no cost, as a stream, through the guards, with
 * `metadata.cacheHit`. Requests that come while the first one is still under way wait for it.
 *
 * @example
 * new Agent({ model, middleware: [cache({ ttlMs: 60_000 })] });
 */
export function cache(options: CacheOptions = {}): Middleware {
  checkOptions('cache', options, OPTIONS);
  const { maxEntries = 1000, ttlMs, scope = 'tenant', key = cacheKey, maxWaitMs = 60_000, clock } = options;
  checkInteger('maxEntries', maxEntries, 1);
  const { store = new Lru<CacheEntry>(maxEntries) } = options;
  checkMethods('store', store, ['get', 'set', 'delete']);
  if (options.store !== undefined && options.maxEntries !== undefined)
    throw invalidOption(
      'maxEntries',
      'left out when there is a `store`, which has its own bounds',
      maxEntries,
    );
  if (ttlMs !== undefined) checkNumber('ttlMs', ttlMs, 1);
  checkOneOf('scope', scope, ['tenant', 'session', 'all']);
  checkFunction('key', key);
  checkNumber('maxWaitMs', maxWaitMs, 0);
  if (clock !== undefined) checkMethods('clock', clock, ['now', 'setTimer']);
  const calls = new InFlight<CacheEntry['response']>();

  /** The answer, and what of it others may have. */
  type Found = { readonly response: ModelResponse; readonly shared: CacheEntry['response'] | undefined };

  async function answer(
    ctx: ModelContext,
    id: string,
    next: Next<ModelResponse, ModelOverride>,
  ): Promise<Found> {
    const time = clock ?? ctx.agent.clock;
    const stored = await abortable(store.get(id), ctx);
    if (isEntry(stored)) {
      if (stored.expiresAt === undefined || stored.expiresAt > time.now())
        return { response: hit(ctx, stored.response), shared: stored.response };
      await abortable(store.delete(id), ctx);
    }
    const response = await next();
    const shared = storable(ctx, response);
    if (shared) {
      const expires = ttlMs === undefined ? {} : { expiresAt: time.now() + ttlMs };
      await abortable(store.set(id, { version: 1, ...expires, response: shared }, ttlMs), ctx);
    }
    return { response, shared };
  }

  return defineMiddleware({
    name: 'cache',
    traits: ['caches'],
    // It is given what the guards left, so nothing they removed or refused is ever stored.
    sink: true,
    // A store that is down costs money, not the run.
    onFail: 'open',
    async wrapModel(ctx, next) {
      const wanted = key(ctx);
      if (wanted === undefined) return next();
      const id = `allium:cache:${hash(`${ownerOf(ctx, scope)}\n${wanted}`)}`;
      while (calls.has(id)) {
        const outcome = await calls.follow(id, ctx.signal, clock ?? ctx.agent.clock, maxWaitMs);
        if (outcome.type === 'answer') return hit(ctx, outcome.answer);
        // Each for itself: an error is nobody else's, and a queue of failing calls helps nobody.
        if (outcome.type === 'none') return (await answer(ctx, id, next)).response;
      }
      return (
        await calls.lead(
          id,
          () => answer(ctx, id, next),
          ({ shared }) => shared,
        )
      ).response;
    },
  });
}

/** The same for the same question to the same model: the base of a `key` that adds to it. */
export function cacheKey({ model, messages, systemPrompt, tools, settings }: ModelContext): string {
  return requestKey({ model, messages, systemPrompt, tools: tools.map(({ spec }) => spec), settings });
}

function ownerOf(ctx: ModelContext, scope: 'tenant' | 'session' | 'all'): string {
  return JSON.stringify([scope, scope === 'all' ? null : scope === 'session' ? ctx.sessionId : ctx.tenant]);
}

/** Without usage: only calls that were made cost something. */
function hit(ctx: ModelContext, stored: CacheEntry['response']): ModelResponse {
  ctx.metadata.cacheHit = true;
  return { ...stored, metadata: { ...stored.metadata, cacheHit: true } };
}

/**
 * Whole answers of the model that was asked. One that was cut off may come from a limit of that run, and one of a
 * model that stood in for another would outlive the reason.
 */
function storable(ctx: ModelContext, response: ModelResponse): CacheEntry['response'] | undefined {
  const { usage: _, ...rest } = response;
  const whole = rest.stopReason === 'stop' || rest.stopReason === 'tool-calls';
  return whole && (rest.model === undefined || rest.model === modelName(ctx.model)) ? rest : undefined;
}

/** Stores hold what others wrote, too: older versions, other programs. */
function isEntry(value: unknown): value is CacheEntry {
  if (typeof value !== 'object' || value === null) return false;
  const { version, response } = value as Partial<CacheEntry>;
  return version === 1 && response?.role === 'assistant' && Array.isArray(response.content);
}

/** What a store returned, at once or later; a run that is aborted does not wait for it. */
function abortable(value: unknown, ctx: ModelContext): unknown {
  if (!isThenable(value)) return value;
  const { signal } = ctx;
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal.reason);
    const settled = (then: (value: unknown) => void) => (result: unknown) => {
      signal.removeEventListener('abort', aborted);
      then(result);
    };
    value.then(settled(resolve), settled(reject));
    if (signal.aborted) aborted();
    else signal.addEventListener('abort', aborted);
  });
}
