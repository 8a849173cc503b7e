/** Answers a tool call that was made before with the result it had then. */

import { GONE, InFlight, NONE, type Outcome } from '../../caching/in-flight.js';
import { Lru } from '../../caching/lru.js';
import type { Clock } from '../../kernel/clock.js';
import type { ToolContext } from '../../kernel/context.js';
import { invalidOption, isControl, isThenable } from '../../kernel/errors.js';
import { callHash, hash } from '../../kernel/hash.js';
import { defineMiddleware, type Middleware } from '../../kernel/middleware.js';
import {
  checkFunction,
  checkInteger,
  checkMethods,
  checkNumber,
  checkOneOf,
  checkOptions,
} from '../../kernel/options.js';
import type { ToolResult } from '../../kernel/tool.js';

/** What is stored: JSON, so that any store can hold it. */
export interface ToolCacheEntry {
  readonly version: 1;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly result: ToolResult;
}

/**
 * Where results are kept: a Keyv, a Map, or anything with these methods, which may return promises.
 *
 * Contract: `ttlMs` is a hint, for entries carry their own end. What it throws is noted in `result.changes` and the
 * tool runs as if there were no cache.
 */
export interface ToolCacheStore {
  get(key: string): unknown;
  set(key: string, value: ToolCacheEntry, ttlMs?: number): unknown;
  delete(key: string): unknown;
}

export interface ToolCacheOptions {
  /** Whose results are kept: names, or a function that is asked for each call. @default tools tagged `cacheable` */
  readonly tools?: readonly string[] | ((ctx: ToolContext) => boolean);
  /** Milliseconds a result is good for. @default 300_000 */
  readonly ttlMs?: number;
  /** @default a store in memory of `maxEntries` results */
  readonly store?: ToolCacheStore;
  /** Results the store in memory keeps; then it drops those that were not used for longest. @default 1000 */
  readonly maxEntries?: number;
  /** Who shares results: the runs of a tenant, of a session, or all. @default 'tenant' */
  readonly scope?: 'tenant' | 'session' | 'all';
  /** What makes two calls the same, within the scope; undefined leaves this call out. @default the tool and its arguments */
  readonly key?: (ctx: ToolContext) => string | undefined;
  /** Milliseconds to wait for the same call of another run before running the tool anyway. @default 60_000 */
  readonly maxWaitMs?: number;
  /** @default the agent's */
  readonly clock?: Clock;
}

const OPTIONS = ['tools', 'ttlMs', 'store', 'maxEntries', 'scope', 'key', 'maxWaitMs', 'clock'];

/**
 * Gives identical calls of the named tools the result of the first one, for `ttlMs`. Calls that come while the first
 * one is still under way wait for it. Errors are never kept.
 *
 * @example
 * new Agent({ model, tools: [search], middleware: [toolCache({ tools: ['search'], ttlMs: 60_000 })] });
 */
export function toolCache(options: ToolCacheOptions = {}): Middleware {
  checkOptions('toolCache', options, OPTIONS);
  const { tools = isTagged, ttlMs = 300_000, maxEntries = 1000, scope = 'tenant', key = callKey } = options;
  const { maxWaitMs = 60_000, clock } = options;
  const applies = selector(tools);
  checkNumber('ttlMs', ttlMs, 1);
  checkInteger('maxEntries', maxEntries, 1);
  const { store = new Lru<ToolCacheEntry>(maxEntries) } = options;
  checkMethods('store', store, ['get', 'set', 'delete']);
  if (options.store !== undefined && options.maxEntries !== undefined)
    throw invalidOption(
      'maxEntries',
      'left out when there is a `store`, which has its own bounds',
      maxEntries,
    );
  checkOneOf('scope', scope, ['tenant', 'session', 'all']);
  checkFunction('key', key);
  checkNumber('maxWaitMs', maxWaitMs, 0);
  if (clock !== undefined) checkMethods('clock', clock, ['now', 'setTimer']);
  const calls = new InFlight<ToolResult>();

  return defineMiddleware({
    name: 'tool-cache',
    traits: ['caches'],
    // It is given what the guards left, so nothing they removed is ever stored.
    sink: true,
    // A store that is down costs time, not the call.
    onFail: 'open',
    async wrapTool(ctx, next) {
      const wanted = applies(ctx) ? key(ctx) : undefined;
      if (wanted === undefined) return next();
      const id = `allium:tool-cache:${hash(`${ownerOf(ctx, scope)}\n${wanted}`)}`;
      const time = clock ?? ctx.agent.clock;
      // Each for itself after an error: it is nobody else's, and a queue of failing calls helps nobody.
      let alone = false;
      while (!alone && calls.has(id)) {
        const first = await calls.follow(id, ctx.signal, time, maxWaitMs);
        if (first.type === 'answer') return hit(ctx, first.answer);
        alone = first.type === 'none';
      }
      if (!alone) calls.begin(id);
      let outcome: Outcome<ToolResult> = NONE;
      try {
        const stored = await abortable(store.get(id), ctx);
        if (isEntry(stored)) {
          if (stored.expiresAt > time.now()) {
            outcome = { type: 'answer', answer: stored.result };
            return hit(ctx, stored.result);
          }
          await abortable(store.delete(id), ctx);
        }
        const result = await next();
        if (!result.isError) {
          outcome = { type: 'answer', answer: result };
          const entry: ToolCacheEntry = { version: 1, expiresAt: time.now() + ttlMs, result };
          await abortable(store.set(id, entry, ttlMs), ctx);
        }
        return result;
      } catch (error) {
        if (isControl(error)) outcome = GONE;
        throw error;
      } finally {
        if (!alone) calls.end(id, outcome);
      }
    },
  });
}

function isTagged(ctx: ToolContext): boolean {
  return ctx.tool?.tags?.includes('cacheable') ?? false;
}

function callKey(ctx: ToolContext): string {
  return callHash(ctx.toolCall.name, ctx.rawArgs);
}

function selector(tools: unknown): (ctx: ToolContext) => boolean {
  if (typeof tools === 'function') return tools as (ctx: ToolContext) => boolean;
  if (!Array.isArray(tools) || !tools.every((name) => typeof name === 'string'))
    throw invalidOption('tools', 'a list of tool names or a function', tools);
  const names = new Set<string>(tools);
  return (ctx) => names.has(ctx.toolCall.name);
}

function ownerOf(ctx: ToolContext, scope: 'tenant' | 'session' | 'all'): string {
  const owner = scope === 'all' ? undefined : scope === 'session' ? ctx.sessionId : ctx.tenant;
  return owner === undefined ? scope : `${scope}:${owner}`;
}

function hit(ctx: ToolContext, result: ToolResult): ToolResult {
  ctx.metadata.cacheHit = true;
  return result;
}

/** Stores hold what others wrote, too: older versions, other programs. */
function isEntry(value: unknown): value is ToolCacheEntry {
  if (typeof value !== 'object' || value === null) return false;
  const { version, expiresAt, result } = value as Partial<ToolCacheEntry>;
  return version === 1 && typeof expiresAt === 'number' && Array.isArray(result?.content);
}

/** What a store returned, now or later; a run that is aborted does not wait for it. */
function abortable(value: unknown, ctx: ToolContext): unknown {
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
