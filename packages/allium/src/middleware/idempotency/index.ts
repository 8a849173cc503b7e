/** Runs a tool at most once per call: a repeated call gets the first result. */

import { abortable } from '../../caching/abortable.js';
import type { AnswerStore } from '../../caching/answers.js';
import { InFlight, NONE, type Outcome } from '../../caching/in-flight.js';
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
  type Next,
  type ToolContext,
  type ToolOverride,
  type ToolResult,
} from '../../index.js';
import {
  childFailure,
  type Fields,
  hashText,
  invalidOption,
  kinds,
  type NamedOptions,
  named,
  nextWithTool,
  type OptionsOf,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';
import { Works } from './work.js';

/** What is stored: JSON, so that any store can hold it. */
export type IdempotencyEntry = StoredResult;

/**
 * Where results are kept: a Keyv, a Map, or anything with these methods, which may return promises.
 *
 * Contract: `ttlMs` is a hint, since entries carry their own expiry. If `get` throws, the call fails before the tool
 * runs. If `set` throws, an event reports it, because the tool has already run.
 */
export type IdempotencyStore = AnswerStore<IdempotencyEntry>;

export const OPTIONS = {
  /**
   * Where results are kept: a Keyv, a Map, or anything with `get`, `set(key, value, ttlMs)` and `delete`,
   * sync or async. To help after a crash, it has to outlive the process.
   */
  store: kinds.required(kinds.methods<IdempotencyStore>('get', 'set', 'delete')),
  /** Which tools: names, tools, or a function that is asked for each call. @default all that are not declared `idempotent` */
  tools: kinds.withDefault(SELECTED_TOOLS, isUnsafe),
  /** Identifies a call, within its tenant and tool; undefined leaves the call out. @default ctx.idempotencyKey */
  key: kinds.withDefault(kinds.func<(ctx: ToolContext) => string | undefined>(), keyOf),
  /** Milliseconds a result is kept. @default 86_400_000, a day */
  ttlMs: kinds.withDefault(kinds.number(1), 86_400_000),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  ...named('idempotency'),
} satisfies Fields;

export interface IdempotencyOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Keeps the result of each tool call under a key that stays the same for every attempt, even after a crash. A
 * repeated key returns the stored result; if the first call is still in progress, it waits for it.
 *
 * @example
 * new Agent({ model, tools: [pay], middleware: [again, idempotency({ store })] });
 */
export function idempotency(options: IdempotencyOptions): Middleware {
  const { store, tools, key, ttlMs, clock, name, madeWith } = readOptions('idempotency', OPTIONS, options);
  const applies = toolSelector(tools);
  const calls = new InFlight<ToolResult>();
  const works = new Works();

  async function once(
    ctx: ToolContext,
    id: string,
    next: Next<ToolResult, ToolOverride>,
  ): Promise<ToolResult> {
    const time = clock ?? ctx.agent.clock;
    const stored = await abortable(Promise.resolve(store.get(id)), ctx.signal);
    if (isStoredResult(stored)) {
      if (stored.expiresAt > time.now()) return replay(ctx, stored.result);
      await abortable(Promise.resolve(store.delete(id)), ctx.signal);
    }
    const result = await nextWithTool(
      ctx,
      works.joined(ctx.tool!, id, () => time.now(), ttlMs),
      next,
    );
    works.taken(id);
    if (childFailure(result) !== undefined) return result;
    try {
      // Not cancelled by an abort: the tool has run, and that should be known.
      const kept = await store.set(id, { version: 1, expiresAt: time.now() + ttlMs, result }, ttlMs);
      // A Keyv whose database is down says only this.
      if (kept === false) throw new Error('set() of the store returned false');
    } catch (error) {
      // An error now would tell the model that the call did not happen, and it would repeat it.
      ctx.emit('idempotency', { toolCallId: ctx.toolCall.id, key: id, error: safeErrorMessage(error, ctx) });
    }
    return result;
  }

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: options?.key ? undefined : 0,
    ...(typeof tools !== 'function' && { mentions: namesIn(tools) }),
    traits: ['keeps'],
    // It gets what the guards left, so nothing they removed is ever stored.
    sink: true,
    async wrapTool(ctx, next) {
      const wanted = applies(ctx) ? key(ctx) : undefined;
      if (wanted === undefined) return next();
      if (typeof wanted !== 'string' || wanted === '')
        throw invalidOption('key()', 'a function that returns non-empty text or undefined', wanted);
      const id = `allium:idempotency:${hashText(JSON.stringify([ctx.tenant, ctx.toolCall.name, wanted]))}`;
      for (let ahead = calls.get(id); ahead !== undefined; ahead = calls.get(id)) {
        if (ctx.isInside(ahead.by))
          throw new Error(
            `"${ctx.toolCall.name}" is called with the key ${JSON.stringify(wanted)} inside the call that has this key. Give the inner call another key, or leave it out by returning undefined.`,
          );
        const outcome = await calls.follow(id, ctx.signal);
        if (outcome.type === 'answer') return replay(ctx, outcome.answer);
      }
      const call = calls.begin(id, ctx);
      let outcome: Outcome<ToolResult> = NONE;
      try {
        const result = await once(ctx, id, next);
        if (childFailure(result) === undefined) outcome = { type: 'answer', answer: result };
        return result;
      } finally {
        calls.end(id, call, outcome);
      }
    },
  });
}

function isUnsafe(ctx: ToolContext): boolean {
  return ctx.tool?.idempotent !== true;
}

function keyOf(ctx: ToolContext): string {
  return ctx.idempotencyKey;
}

function replay(ctx: ToolContext, result: ToolResult): ToolResult {
  ctx.metadata.replayed = true;
  return result;
}
