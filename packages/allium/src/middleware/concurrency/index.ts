/** Lets only so many model calls, tool calls or runs be under way at once. */

import { AlliumError, defineMiddleware, type Middleware } from '../../index.js';
import {
  describeValue,
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { keyReader, WHOSE } from '../../limiting/whose.js';
import { Lane } from './lane.js';

export const OPTIONS = {
  /** Calls that may run at once, for each key. */
  max: kinds.required(kinds.integer(1)),
  /** Whose limit it is: the tenant's, the session's, the agent's, or what a function says. @default 'tenant' */
  key: kinds.withDefault(WHOSE, 'tenant'),
  /** Milliseconds a call may wait for its turn; 0 refuses at once. @default Infinity */
  maxWaitMs: kinds.withDefault(kinds.timeout, Number.POSITIVE_INFINITY),
  /** What is counted. @default 'model' */
  scope: kinds.withDefault(kinds.oneOf('model', 'run', 'tool'), 'model'),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  ...named('concurrency'),
} satisfies Fields;

export interface ConcurrencyOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Lets at most `max` calls run at once, per key; the others wait, first come first served. A wait ends at once when
 * the run is aborted.
 *
 * @example
 * new Agent({ model, middleware: [concurrency({ max: 2 })] });
 */
export function concurrency(options: ConcurrencyOptions): Middleware {
  const { max, key, maxWaitMs, scope, clock, name, madeWith } = readOptions('concurrency', OPTIONS, options);
  const keyOf = keyReader(key);
  const lanes = new Map<string, Lane>();

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: typeof key === 'function' ? undefined : 0,
    seams: [scope],
    async process(ctx, next) {
      const whose = keyOf(ctx);
      // A run or tool that waits for a sub-agent keeps its place, so the sub-agent must not need the same one.
      const id = scope === 'model' ? whose : `${ctx.depth}\n${whose}`;
      const lane = lanes.get(id) ?? new Lane(max);
      lanes.set(id, lane);
      const entry = lane.entryFor(ctx);
      if (!entry.tryEnter()) {
        if (maxWaitMs === 0) throw refusal(whose, max, 0);
        if (ctx.seam !== 'run') ctx.emit('concurrency', { key: whose });
        const entered = await entry.enter(ctx.signal, clock ?? ctx.agent.clock, maxWaitMs);
        if (!entered) throw refusal(whose, max, maxWaitMs);
      }
      lane.took(ctx);
      try {
        return await next();
      } finally {
        lane.left(ctx);
        entry.leave();
        if (lane.isIdle) lanes.delete(id);
      }
    },
  });
}

function refusal(key: string, max: number, waitedMs: number): AlliumError {
  const whose = key === '' ? '' : ` of ${describeValue(key)}`;
  const waited = waitedMs === 0 ? '' : ` There was no place within ${waitedMs} ms.`;
  return new AlliumError('CONCURRENCY_LIMITED', `All ${max} places${whose} are taken.${waited}`, {
    data: { key, max, waitedMs },
  });
}
