/** Says how long each model and tool call took, and how many tokens the run has used so far. */

import { type Context, defineMiddleware, type Middleware, monotonic, terminalText } from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

export const OPTIONS = {
  /**
   * Called with one line per call, and awaited. If it throws, that is noted in `result.changes`. @default stderr,
   * through `console.error`: stdout is for a program's output
   */
  log: kinds.withDefault(kinds.func<(line: string) => unknown>(), toStderr),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock('now'),
  ...named('stopwatch'),
} satisfies Fields;

export interface StopwatchOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Times model and tool calls. The time includes everything further in: put it last to time the calls alone, first to
 * time retries and waits with them.
 *
 * @example
 * new Agent({ model, middleware: [stopwatch({ log: (line) => lines.push(line) })] });
 */
export function stopwatch(options: StopwatchOptions = {}): Middleware {
  const { log, clock: given, name, madeWith } = readOptions('stopwatch', OPTIONS, options);
  const now = (ctx: Context) => monotonic(given ?? ctx.agent.clock);
  const elapsed = (ctx: Context) => now(ctx) - (ctx.metadata.startedAt as number);
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    onFail: 'open',
    // Scratch data is per call and layer, so two stopwatches and parallel tools don't collide.
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

/** Looked up for each line: somebody may have replaced it since. */
function toStderr(line: string): void {
  console.error(line);
}
