/** Answers a request that was answered before from a store. */

import { type AnswerStore, Answers, checkedKey, ownerOf, SCOPE, storeOf } from '../../caching/answers.js';
import {
  defineMiddleware,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  modelName,
  requestKey,
} from '../../index.js';
import {
  type Fields,
  hasCallVerdict,
  hashText,
  hasNewPlaceholders,
  invalidOption,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  toolSpecs,
} from '../../kit/index.js';

/** What is stored: JSON, so that any store can hold it. */
export interface CacheEntry {
  readonly version: 1;
  /** Milliseconds since the epoch; if absent, it never expires. */
  readonly expiresAt?: number;
  readonly response: Omit<ModelResponse, 'usage'>;
}

/**
 * Where answers are kept: a Keyv, a Map, or anything with these methods, which may return promises.
 *
 * Contract: `ttlMs` is a hint, since entries carry their own expiry. If the store throws, that is noted in
 * `result.changes` and the call is made as if there were no cache.
 */
export type CacheStore = AnswerStore<CacheEntry>;

export const OPTIONS = {
  /**
   * A Keyv, a Map, or anything with `get`, `set(key, value, ttlMs)` and `delete`, sync or async. @default a
   * store in memory of `maxEntries` answers
   */
  store: kinds.methods<CacheStore>('get', 'set', 'delete'),
  /** Milliseconds an answer is good for. @default forever */
  ttlMs: kinds.number(1),
  /** Answers the store in memory keeps; beyond that it drops the least recently used. @default 1000 */
  maxEntries: kinds.integer(1),
  /**
   * Who shares answers: the runs of a tenant, of a session, or all. If a guard restores
   * placeholders, it is always the session, because they mean something else in another one. @default 'tenant'
   */
  scope: kinds.withDefault(SCOPE, 'tenant'),
  /** What makes two requests the same, within the scope; undefined skips the cache for this call. @default cacheKey */
  key: kinds.withDefault(kinds.func<(ctx: ModelContext) => string | undefined>(), cacheKey),
  /**
   * Milliseconds to wait for the same request of another run before making the call anyway. It does not wait
   * for a run whose stream nobody has read for a second. @default 60_000
   */
  maxWaitMs: kinds.withDefault(kinds.number(0), 60_000),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  ...named('cache'),
} satisfies Fields;

export interface CacheOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Gives identical requests the answer of the first one: for free, as a stream, through the guards, with
 * `metadata.cacheHit`. If the first one is still in progress, the others wait for it.
 *
 * @example
 * new Agent({ model, middleware: [cache({ ttlMs: 60_000 })] });
 */
export function cache(options: CacheOptions = {}): Middleware {
  const settings = readOptions('cache', OPTIONS, options);
  const { ttlMs, scope, key, maxWaitMs, clock, name, madeWith } = settings;
  const store = storeOf(settings);
  const answers = new Answers<ModelContext, ModelResponse, CacheEntry['response'], CacheEntry>({
    store,
    ttlMs,
    maxWaitMs,
    leavesStalled: true,
    clock,
    read,
    entry: (response, expiresAt) =>
      expiresAt === undefined ? { version: 1, response } : { version: 1, expiresAt, response },
    answerIn: storable,
    given: hit,
  });
  const idOf = (ctx: ModelContext): string | undefined => {
    const owner = ownerOf(ctx, scope);
    if (key === cacheKey) return `allium:cache:${keyWithin(owner, ctx)}`;
    const wanted = checkedKey(key(ctx));
    return wanted === undefined ? undefined : `allium:cache:${hashText(`${owner}\n${wanted}`)}`;
  };

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: options?.key ? undefined : 0,
    traits: ['caches'],
    // It gets what the guards left, so nothing they removed or refused is ever stored.
    sink: true,
    // A store that is down costs money, not the run.
    onFail: 'open',
    wrapModel(ctx, next) {
      const id = idOf(ctx);
      if (id === undefined) return next();
      const found = answers.find(ctx, id, next);
      return found instanceof Promise ? found : Promise.resolve(found);
    },
  });
}

/** The key of a request: the same for the same question to the same model. Use it as the base of your own `key`. */
export function cacheKey(ctx: ModelContext): string {
  if (!Array.isArray(ctx?.tools)) throw invalidOption('ctx', 'the context of a model call', ctx);
  return keyWithin('', ctx);
}

function keyWithin(owner: string, { model, messages, systemPrompt, tools, settings }: ModelContext): string {
  return requestKey({ model, messages, systemPrompt, tools: toolSpecs(tools), settings }, owner);
}

/** Without usage: only calls that were made cost something. */
function hit(ctx: ModelContext, stored: CacheEntry['response']): ModelResponse {
  ctx.metadata.cacheHit = true;
  return { ...stored, metadata: { ...stored.metadata, cacheHit: true } };
}

/**
 * Complete answers of the model that was asked. One that was cut off may be due to a limit of that run, and one from
 * a substitute model would outlive the reason for it. A call that guards refused would run with what they left.
 */
function storable(ctx: ModelContext, response: ModelResponse): CacheEntry['response'] | undefined {
  const { role, content, stopReason, model, metadata } = response;
  const whole = stopReason === 'stop' || stopReason === 'tool-calls';
  if (!whole || (model !== undefined && model !== modelName(ctx.model))) return undefined;
  if (hasCallVerdict(response, ctx) || hasNewPlaceholders(response, ctx)) return undefined;
  if (metadata !== undefined)
    return { role, content, stopReason, metadata, ...(model !== undefined && { model }) };
  return model === undefined ? { role, content, stopReason } : { role, content, stopReason, model };
}

function read(value: unknown) {
  if (typeof value !== 'object' || value === null) return undefined;
  const { version, response, expiresAt } = value as Partial<CacheEntry>;
  const isEntry = version === 1 && response?.role === 'assistant' && Array.isArray(response.content);
  return isEntry ? { answer: response, expiresAt } : undefined;
}
