/** Ends a run after a number of turns. */

import { defineMiddleware, type Middleware } from '../../index.js';
import { checkInteger, checkNamed, type NamedOptions } from '../../kit/index.js';

export interface MaxTurnsOptions extends NamedOptions {
  /** Turns a run may take. @default 10 */
  readonly turns?: number;
}

/**
 * Ends a run cleanly after `turns` turns; the tool calls of the last one have their results.
 *
 * @example
 * new Agent({ model, tools: [search], middleware: [maxTurns({ turns: 2 })] });
 */
export function maxTurns(options: MaxTurnsOptions = {}): Middleware {
  checkNamed('maxTurns', options, ['turns']);
  const { turns = 10 } = options;
  checkInteger('turns', turns, 1);
  return defineMiddleware({
    name: options.name ?? 'max-turns',
    shouldStopAfterTurn(ctx) {
      // The run counts its own turns, over resumes too: a counter in here would be shared by concurrent runs.
      // A run that ends by itself in its last turn is done, not stopped.
      return (
        ctx.more &&
        ctx.turn >= turns && { reason: 'max_turns', message: `The run has taken its ${turns} turns.` }
      );
    },
  });
}
