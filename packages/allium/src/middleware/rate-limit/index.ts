/** Lets only so many model calls, tool calls or runs begin in a given time. */

import {
  AlliumError,
  type Clock,
  defineMiddleware,
  type Middleware,
  type ModelContext,
  type RunContext,
  type ToolContext,
} from '../../index.js';
import {
  describeValue,
  type Fields,
  invalidOption,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { keyReader, WHOSE } from '../../limiting/whose.js';
import { type Asked, Shared, type SharedLimiter } from './shared.js';
import { Windows } from './windows.js';

export type { SharedLimiter } from './shared.js';

export const OPTIONS = {
  /** Calls that may begin within any `perMs`, for each key. Needed unless there is a `limiter`. */
  limit: kinds.integer(1),
  /** The window, in milliseconds. Needed unless there is a `limiter`. */
  perMs: kinds.number(1),
  /** Whose limit it is: the tenant's, the session's, the agent's, or what a function says. @default 'tenant' */
  key: kinds.withDefault(WHOSE, 'tenant'),
  /** What happens to a call over the limit: it waits its turn, or is refused. @default 'wait' */
  mode: kinds.withDefault(kinds.oneOf('wait', 'reject'), 'wait'),
  /** Milliseconds a call may wait; one that would have to wait longer is refused at once. @default 60_000 */
  maxWaitMs: kinds.timeout,
  /** What is counted. @default 'model' */
  scope: kinds.withDefault(kinds.oneOf('model', 'run', 'tool'), 'model'),
  /** Counts for several processes, instead of `limit` and `perMs`. */
  limiter: kinds.methods<SharedLimiter>('consume'),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  ...named('rate-limit'),
} satisfies Fields;

export interface RateLimitOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Lets `limit` calls begin in any `perMs` milliseconds, per key. Others wait their turn, first come first served, or
 * are refused with `RATE_LIMITED` and `retryAfterMs`. A wait ends at once when the run is aborted.
 *
 * @example
 * new Agent({ model, middleware: [rateLimit({ limit: 2, perMs: 50 })] });
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  const settings = readOptions('rateLimit', OPTIONS, options);
  const { limit, perMs, key, mode, scope, limiter, clock, name, madeWith } = settings;
  const { maxWaitMs = 60_000 } = settings;
  if (mode === 'reject' && settings.maxWaitMs !== undefined)
    throw invalidOption('maxWaitMs', "left out with mode: 'reject', which never waits", maxWaitMs);
  const keyOf = keyReader(key);
  const counter = limiter === undefined ? windows(limit, perMs) : shared(limiter, limit, perMs);
  // Refusing means having no patience.
  const patienceMs = mode === 'reject' ? 0 : maxWaitMs;

  const admit = (ctx: RunContext | ModelContext | ToolContext): Promise<void> | undefined => {
    return counter.take(new Call(ctx, keyOf(ctx), patienceMs, clock ?? ctx.agent.clock));
  };

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: typeof key === 'function' ? undefined : 0,
    // A hook before the call and nothing around it: most calls don't wait, and then nothing is awaited.
    ...(scope === 'model' && { beforeModel: admit }),
    ...(scope === 'tool' && { beforeTool: admit }),
    // A resumed run was counted when it began.
    ...(scope === 'run' && { beforeRun: (ctx) => (ctx.turn > 0 ? undefined : admit(ctx)) }),
  });
}

/** A call that asks for its turn. Most get it at once, so the rest is only made for those that wait. */
class Call implements Asked {
  constructor(
    private readonly ctx: RunContext | ModelContext | ToolContext,
    readonly key: string,
    readonly patienceMs: number,
    readonly clock: Clock,
  ) {}

  signal(): AbortSignal {
    return this.ctx.signal;
  }

  waits(waitMs: number): void {
    if (this.ctx.seam !== 'run') this.ctx.emit('rate-limit', { key: this.key, waitMs });
  }

  refused(retryAfterMs: number): AlliumError {
    return refusal(this.key, retryAfterMs);
  }
}

function windows(limit: number | undefined, perMs: number | undefined): Windows {
  if (limit === undefined && perMs !== undefined)
    throw invalidOption('limit', 'an integer ≥ 1, because `perMs` means nothing without it', limit);
  if (perMs === undefined && limit !== undefined)
    throw invalidOption('perMs', 'a finite number ≥ 1, because `limit` means nothing without it', perMs);
  if (limit === undefined || perMs === undefined) throw invalidOption('limit', 'an integer ≥ 1', limit);
  return new Windows(limit, perMs);
}

function shared(limiter: SharedLimiter, limit: unknown, perMs: unknown): Shared {
  for (const [name, value] of Object.entries({ limit, perMs }))
    if (value !== undefined)
      throw invalidOption(name, 'left out when there is a `limiter`, which has its own', value);
  return new Shared(limiter);
}

function refusal(key: string, retryAfterMs: number): AlliumError {
  return new AlliumError(
    'RATE_LIMITED',
    `The rate limit${key === '' ? '' : ` of ${describeValue(key)}`} is used up. Try again in ${retryAfterMs} ms.`,
    { data: { key, retryAfterMs } },
  );
}
