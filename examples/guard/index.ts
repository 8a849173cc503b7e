/** Keeps long numbers, such as those of cards and accounts, from models, tools, logs and readers. */

import { defineMiddleware, defineState, type Middleware, type Span, window } from 'allium';
import { type Fields, kinds, type NamedOptions, named, type OptionsOf, readOptions } from 'allium/kit';

const OPTIONS = {
  /** The fewest digits that are hidden. @default 12 */
  digits: kinds.withDefault(kinds.integer(2, 24), 12),
  /** `redact` hides the number, `stop` ends the run. @default 'redact' */
  action: kinds.withDefault(kinds.oneOf('redact', 'stop'), 'redact'),
  /** Replaces a number. @default '[number]' */
  replacement: kinds.withDefault(kinds.text, '[number]'),
  ...named('hide-numbers'),
} satisfies Fields;

export interface HideNumbersOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** No account number has more characters, spaces and dashes included. */
const LONGEST = 48;

/**
 * Hides numbers with many digits, also where spaces or dashes stand between them.
 *
 * @example
 * new Agent({ model, middleware: [hideNumbers({ digits: 12 })] });
 */
export function hideNumbers(options: HideNumbersOptions = {}): Middleware {
  const { digits, action, replacement, name, madeWith } = readOptions('hideNumbers', OPTIONS, options);
  /** How many digits the longest number had that was removed from an answer of this run. */
  const longest = defineState({ name: 'longest', scope: 'run', durable: false, initial: 0 });
  const pattern = new RegExp(`(?<!\\d)\\d(?:[ -]?\\d){${digits - 1},${LONGEST / 2 - 1}}(?!\\d)`, 'g');

  function find(text: string): readonly Span[] {
    return [...text.matchAll(pattern)].map(({ index, 0: found }) => ({
      start: index,
      end: index + found.length,
    }));
  }

  return defineMiddleware({
    name,
    madeWith,
    state: [longest],
    guard: {
      on: ['input', 'request', 'output', 'tool-args', 'tool-result'],
      // The longest number, and the characters around it that say whether it begins and ends there.
      hold: window(LONGEST + 2),
      action,
      replacement,
      find(text, { point, context }) {
        const spans = find(text);
        for (const { start, end } of point === 'output' ? spans : []) {
          const { length } = text.slice(start, end).replace(/\D/g, '');
          context.state.update(longest, (before) => Math.max(before, length));
        }
        return spans;
      },
    },
    afterRun(ctx) {
      const length = ctx.state.get(longest);
      if (length > 0) ctx.note(`hid numbers of up to ${length} digits from an answer`);
    },
  });
}
