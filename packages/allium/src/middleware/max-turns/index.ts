/** Ends a run after a number of turns. */

import { defineMiddleware, type Middleware } from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

export const OPTIONS = {
  /** Turns a run may take. @default 10 */
  turns: kinds.withDefault(kinds.integer(1), 10),
  ...named('max-turns'),
} satisfies Fields;

export interface MaxTurnsOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Ends a run cleanly after `turns` turns; the tool calls of the last one have their results.
 *
 * @example
 * new Agent({ model, tools: [search], middleware: [maxTurns({ turns: 2 })] });
 */
export function maxTurns(options: MaxTurnsOptions = {}): Middleware {
  const { turns, name, madeWith } = readOptions('maxTurns', OPTIONS, options);
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    shouldStopAfterTurn(ctx) {
      // The run counts its own turns, also across resumes: a counter in here would be shared by concurrent runs. A
      // run that ends by itself in its last turn is done, not stopped.
      return (
        ctx.more &&
        ctx.turn >= turns && { reason: 'max_turns', message: `The run has taken its ${turns} turns.` }
      );
    },
  });
}
