/** Answers a tool call that was made before with the result it had then. */

import { type AnswerStore, Answers, checkedKey, ownerOf, SCOPE, storeOf } from '../../caching/answers.js';
import {
  isStoredResult,
  namesIn,
  SELECTED_TOOLS,
  type StoredResult,
  toolSelector,
} from '../../caching/stored-result.js';
import {
  defineMiddleware,
  type Middleware,
  type ToolContext,
  type ToolResult,
  type ToolSpec,
  toolSpec,
} from '../../index.js';
import {
  canonicalJson,
  type Fields,
  hashText,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  toolCallKey,
} from '../../kit/index.js';

/** What is stored: JSON, so that any store can hold it. */
export type ToolCacheEntry = StoredResult;

/**
 * Where results are kept: a Keyv, a Map, or anything with these methods, which may return promises.
 *
 * Contract: `ttlMs` is a hint, since entries carry their own expiry. If the store throws, that is noted in
 * `result.changes` and the tool runs as if there were no cache.
 */
export type ToolCacheStore = AnswerStore<ToolCacheEntry>;

export const OPTIONS = {
  /** Whose results are kept: names, tools, or a function that is asked for each call. @default tools tagged `cacheable` */
  tools: kinds.withDefault(SELECTED_TOOLS, isTagged),
  /** Milliseconds a result is good for. @default 300_000 */
  ttlMs: kinds.withDefault(kinds.number(1), 300_000),
  /**
   * A Keyv, a Map, or anything with `get`, `set(key, value, ttlMs)` and `delete`, sync or async. @default a
   * store in memory of `maxEntries` results
   */
  store: kinds.methods<ToolCacheStore>('get', 'set', 'delete'),
  /** Results the store in memory keeps; beyond that it drops the least recently used. @default 1000 */
  maxEntries: kinds.integer(1),
  /**
   * Who shares results: the runs of a tenant, of a session, or all. If a guard restores
   * placeholders, it is always the session, because they mean something else in another one. @default 'tenant'
   */
  scope: kinds.withDefault(SCOPE, 'tenant'),
  /**
   * What makes two calls the same, within the scope; undefined skips the cache for this call. @default the tool and
   * its arguments
   */
  key: kinds.withDefault(kinds.func<(ctx: ToolContext) => string | undefined>(), callKey),
  /** Milliseconds to wait for the same call of another run before running the tool anyway. @default 60_000 */
  maxWaitMs: kinds.withDefault(kinds.number(0), 60_000),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  ...named('tool-cache'),
} satisfies Fields;

export interface ToolCacheOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Gives identical calls of the named tools the result of the first one, for `ttlMs`. If the first one is still in
 * progress, the others wait for it. Errors are never kept.
 *
 * @example
 * new Agent({ model, tools: [search], middleware: [toolCache({ tools: ['search'], ttlMs: 60_000 })] });
 */
export function toolCache(options: ToolCacheOptions = {}): Middleware {
  const settings = readOptions('toolCache', OPTIONS, options);
  const { tools, ttlMs, scope, key, maxWaitMs, clock, name, madeWith } = settings;
  const applies = toolSelector(tools);
  const store = storeOf(settings);
  const answers = new Answers<ToolContext, ToolResult, ToolResult, ToolCacheEntry>({
    store,
    ttlMs,
    maxWaitMs,
    clock,
    read: (stored) =>
      isStoredResult(stored) ? { answer: stored.result, expiresAt: stored.expiresAt } : undefined,
    entry: (result, expiresAt) => ({ version: 1, expiresAt: expiresAt!, result }),
    answerIn: (_ctx, result) => (result.isError ? undefined : result),
    given: hit,
  });

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: options?.key ? undefined : 0,
    ...(typeof tools !== 'function' && { mentions: namesIn(tools) }),
    traits: ['caches'],
    // It gets what the guards left, so nothing they removed is ever stored.
    sink: true,
    // A store that is down costs time, not the call.
    onFail: 'open',
    async wrapTool(ctx, next) {
      const wanted = applies(ctx) ? checkedKey(key(ctx)) : undefined;
      if (wanted === undefined) return next();
      const id = `allium:tool-cache:${hashText(`${ownerOf(ctx, scope)}\n${wanted}`)}`;
      return answers.find(ctx, id, next);
    },
  });
}

function isTagged(ctx: ToolContext): boolean {
  return ctx.tool?.tags?.includes('cacheable') ?? false;
}

/** Agents that share a cache may have different tools of the same name. */
function callKey({ tool, toolCall, rawArgs }: ToolContext): string {
  return toolCallKey(toolCall.name, tool ? [lookOf(toolSpec(tool)), rawArgs] : [rawArgs]);
}

const looks = new WeakMap<ToolSpec, string>();

/** Stands for how a model is shown a tool. Worked out once: schemas are long. */
function lookOf(spec: ToolSpec): string {
  let look = looks.get(spec);
  if (look === undefined) {
    look = hashText(canonicalJson(spec));
    looks.set(spec, look);
  }
  return look;
}

function hit(ctx: ToolContext, result: ToolResult): ToolResult {
  ctx.metadata.cacheHit = true;
  return result;
}
