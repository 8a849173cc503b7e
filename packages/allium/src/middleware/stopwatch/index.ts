/** Says how long each model and tool call took, and how many tokens the run has used so far. */

import {
  type Clock,
  type Context,
  defineMiddleware,
  type Middleware,
  monotonic,
  terminalText,
} from '../../index.js';
import { checkFunction, checkMethods, checkNamed, type NamedOptions } from '../../kit/index.js';

export interface StopwatchOptions extends NamedOptions {
  /**
   * Called with one line per call, and awaited. If it throws, that is noted in `result.changes`. @default stderr,
   * through `console.error`: stdout is for a program's output
   */
  readonly log?: (line: string) => unknown;
  /** @default the agent's */
  readonly clock?: Clock;
}

/**
 * Times model and tool calls. The time includes everything further in: put it last to time the calls alone, first to
 * time retries and waits with them.
 *
 * @example
 * new Agent({ model, middleware: [stopwatch({ log: (line) => lines.push(line) })] });
 */
export function stopwatch(options: StopwatchOptions = {}): Middleware {
  checkNamed('stopwatch', options, ['log', 'clock']);
  // Looked up for each line: whoever draws on the terminal may have put something in its place since.
  const { log = (line) => console.error(line), clock: given } = options;
  checkFunction('log', log);
  if (given !== undefined) checkMethods('clock', given, ['now']);
  const now = (ctx: Context) => monotonic(given ?? ctx.agent.clock);
  const elapsed = (ctx: Context) => now(ctx) - (ctx.metadata.startedAt as number);
  return defineMiddleware({
    name: options.name ?? 'stopwatch',
    onFail: 'open',
    // Scratch is per call and per layer, so two stopwatches and parallel tools do not meet in it.
    beforeModel(ctx) {
      ctx.metadata.startedAt = now(ctx);
    },
    async afterModel(ctx) {
      await log(`turn ${ctx.turn}: model ${elapsed(ctx)} ms, ${ctx.usage.totalTokens} tokens so far`);
    },
    beforeTool(ctx) {
      ctx.metadata.startedAt = now(ctx);
    },
    async afterTool(ctx) {
      await log(`turn ${ctx.turn}: ${terminalText(ctx.toolCall.name)} ${elapsed(ctx)} ms`);
    },
  });
}
