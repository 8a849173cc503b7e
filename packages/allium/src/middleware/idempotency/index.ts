/** Runs a tool at most once per call: a call that comes back gets the result it had. */
import type { Clock } from '../../kernel/clock.js';
import type { ToolContext } from '../../kernel/context.js';
import { invalidOption, isThenable, messageOf } from '../../kernel/errors.js';
import { hash } from '../../kernel/hash.js';
import { defineMiddleware, type Middleware, type Next, type ToolOverride } from '../../kernel/middleware.js';
import { checkFunction, checkMethods, checkNumber, checkOptions } from '../../kernel/options.js';
import type { ToolResult } from '../../kernel/tool.js';
import { InFlight } from './in-flight.js';

/** What is stored: JSON, so that any store can hold it. */
export interface IdempotencyEntry {
  readonly version: 1;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly result: ToolResult;
}

/**
 * Where results are kept: a Keyv, a Map, or anything with these methods, which may return promises.
 *
 * Contract: `ttlMs` is a hint, for entries carry their own end. What `get` throws fails the call before the tool runs;
 * what `set` throws is told in an event, for by then the tool has run.
 */
export interface IdempotencyStore {
  get(key: string): unknown;
  set(key: string, value: IdempotencyEntry, ttlMs?: number): unknown;
  delete(key: string): unknown;
}

export interface IdempotencyOptions {
  /** Has to outlive the process to be of use after a crash. */
  readonly store: IdempotencyStore;
  /** Which tools: names, or a function that is asked for each call. @default all that are not declared `idempotent` */
  readonly tools?: readonly string[] | ((ctx: ToolContext) => boolean);
  /** What names a call, within its tenant; undefined leaves it out. @default ctx.idempotencyKey */
  readonly key?: (ctx: ToolContext) => string | undefined;
  /** Milliseconds a result is kept. @default 86_400_000, a day */
  readonly ttlMs?: number;
  /** @default the agent's */
  readonly clock?: Clock;
}

const OPTIONS = ['store', 'tools', 'key', 'ttlMs', 'clock'];

/**
 * Keeps the result of each tool call under a key that is the same for every attempt of it, also after a crash. A
 * repeated key returns the stored result; one that is under way is waited for.
 *
 * @example
 * new Agent({ model, tools: [pay], middleware: [again, idempotency({ store })] });
 */
export function idempotency(options: IdempotencyOptions): Middleware {
  checkOptions('idempotency', options, OPTIONS);
  const { store, tools = isUnsafe, key = keyOf, ttlMs = 86_400_000, clock } = options;
  checkMethods('store', store, ['get', 'set', 'delete']);
  const applies = selector(tools);
  checkFunction('key', key);
  checkNumber('ttlMs', ttlMs, 1);
  if (clock !== undefined) checkMethods('clock', clock, ['now', 'setTimer']);
  const calls = new InFlight<ToolResult>();

  async function once(
    ctx: ToolContext,
    id: string,
    next: Next<ToolResult, ToolOverride>,
  ): Promise<ToolResult> {
    const time = clock ?? ctx.agent.clock;
    const stored = await abortable(store.get(id), ctx.signal);
    if (isEntry(stored)) {
      if (stored.expiresAt > time.now()) return replay(ctx, stored.result);
      await abortable(store.delete(id), ctx.signal);
    }
    const result = await next();
    try {
      // Not given up for an abort: the tool has run, and that should be known.
      await store.set(id, { version: 1, expiresAt: time.now() + ttlMs, result }, ttlMs);
    } catch (error) {
      // An error now would tell the model that the call did not happen, and it would make it again.
      ctx.emit('idempotency', { toolCallId: ctx.toolCall.id, key: id, error: messageOf(error) });
    }
    return result;
  }

  return defineMiddleware({
    name: 'idempotency',
    traits: ['keeps'],
    // It is given what the guards left, so nothing they removed is ever stored.
    sink: true,
    async wrapTool(ctx, next) {
      const wanted = applies(ctx) ? key(ctx) : undefined;
      if (wanted === undefined) return next();
      if (typeof wanted !== 'string' || wanted === '')
        throw invalidOption('key()', 'a function that returns non-empty text or undefined', wanted);
      const id = `allium:idempotency:${hash(JSON.stringify([ctx.tenant, ctx.toolCall.name, wanted]))}`;
      while (calls.has(id)) {
        const outcome = await calls.follow(id, ctx.signal);
        if (outcome.type === 'answer') return replay(ctx, outcome.answer);
      }
      return calls.lead(id, () => once(ctx, id, next));
    },
  });
}

function isUnsafe(ctx: ToolContext): boolean {
  return ctx.tool?.idempotent !== true;
}

function keyOf(ctx: ToolContext): string {
  return ctx.idempotencyKey;
}

function selector(tools: unknown): (ctx: ToolContext) => boolean {
  if (typeof tools === 'function') return tools as (ctx: ToolContext) => boolean;
  if (!Array.isArray(tools) || !tools.every((name) => typeof name === 'string'))
    throw invalidOption('tools', 'a list of tool names or a function', tools);
  const names = new Set<string>(tools);
  return (ctx) => names.has(ctx.toolCall.name);
}

function replay(ctx: ToolContext, result: ToolResult): ToolResult {
  ctx.metadata.replayed = true;
  return result;
}

/** Stores hold what others wrote, too: older versions, other programs. */
function isEntry(value: unknown): value is IdempotencyEntry {
  if (typeof value !== 'object' || value === null) return false;
  const { version, expiresAt, result } = value as Partial<IdempotencyEntry>;
  return version === 1 && typeof expiresAt === 'number' && Array.isArray(result?.content);
}

/** What a store returned, now or later; a run that is aborted does not wait for it. */
function abortable(value: unknown, signal: AbortSignal): unknown {
  if (!isThenable(value)) return value;
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
