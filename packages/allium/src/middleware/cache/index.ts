/** Answers a request that was answered before from a store. */

import { GONE, InFlight, NONE, type Outcome } from '../../caching/in-flight.js';
import { Lru } from '../../caching/lru.js';
import type { Clock } from '../../kernel/clock.js';
import type { ModelContext } from '../../kernel/context.js';
import { invalidOption, isControl, isThenable } from '../../kernel/errors.js';
import { hash, requestKey } from '../../kernel/hash.js';
import type { ModelResponse } from '../../kernel/messages.js';
import { defineMiddleware, type Middleware } from '../../kernel/middleware.js';
import { modelName } from '../../kernel/model.js';
import {
  checkFunction,
  checkInteger,
  checkMethods,
  checkNumber,
  checkOneOf,
  checkOptions,
} from '../../kernel/options.js';

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
  /** The owner is part of it whatever the key says, so that no key can mix tenants. */
  const idOf = (ctx: ModelContext): string | undefined => {
    const owner = ownerOf(ctx, scope);
    if (key === cacheKey) return `allium:cache:${keyWithin(owner, ctx)}`;
    const wanted = key(ctx);
    return wanted === undefined ? undefined : `allium:cache:${hash(`${owner}\n${wanted}`)}`;
  };

  return defineMiddleware({
    name: 'cache',
    traits: ['caches'],
    // It is given what the guards left, so nothing they removed or refused is ever stored.
    sink: true,
    // A store that is down costs money, not the run.
    onFail: 'open',
    async wrapModel(ctx, next) {
      const id = idOf(ctx);
      if (id === undefined) return next();
      const time = clock ?? ctx.agent.clock;
      // Each for itself after an error: it is nobody else's, and a queue of failing calls helps nobody.
      let alone = false;
      while (!alone && calls.has(id)) {
        const first = await calls.follow(id, ctx.signal, time, maxWaitMs);
        if (first.type === 'answer') return hit(ctx, first.answer);
        alone = first.type === 'none';
      }
      if (!alone) calls.begin(id);
      let outcome: Outcome<CacheEntry['response']> = NONE;
      try {
        const got = store.get(id);
        const stored = isThenable(got) ? await abortable(got, ctx) : got;
        if (isEntry(stored)) {
          if (stored.expiresAt === undefined || stored.expiresAt > time.now()) {
            outcome = { type: 'answer', answer: stored.response };
            return hit(ctx, stored.response);
          }
          await abortable(store.delete(id), ctx);
        }
        const response = await next();
        const answer = storable(ctx, response);
        if (answer !== undefined) {
          outcome = { type: 'answer', answer };
          const expires = ttlMs === undefined ? {} : { expiresAt: time.now() + ttlMs };
          const kept = store.set(id, { version: 1, ...expires, response: answer }, ttlMs);
          if (isThenable(kept)) await abortable(kept, ctx);
        }
        return response;
      } catch (error) {
        if (isControl(error)) outcome = GONE;
        throw error;
      } finally {
        if (!alone) calls.end(id, outcome);
      }
    },
  });
}

/** The same for the same question to the same model: the base of a `key` that adds to it. */
export function cacheKey(ctx: ModelContext): string {
  return keyWithin('', ctx);
}

function keyWithin(owner: string, { model, messages, systemPrompt, tools, settings }: ModelContext): string {
  const specs = tools.map(({ spec }) => spec);
  return requestKey({ model, messages, systemPrompt, tools: specs, settings }, owner);
}

function ownerOf(ctx: ModelContext, scope: 'tenant' | 'session' | 'all'): string {
  const owner = scope === 'all' ? undefined : scope === 'session' ? ctx.sessionId : ctx.tenant;
  return owner === undefined ? scope : `${scope}:${owner}`;
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

/** What a store returned, now or later; a run that is aborted does not wait for it. */
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
