/** Keeps long numbers, such as those of cards and accounts, from models, tools, logs and readers. */

import { defineMiddleware, defineState, type Middleware, type Span, window } from 'allium';
import { checkInteger, checkNamed, checkOneOf, checkText, type NamedOptions } from 'allium/kit';

export interface HideNumbersOptions extends NamedOptions {
  /** The fewest digits that are hidden. @default 12 */
  readonly digits?: number;
  /** `redact` hides the number, `stop` ends the run. @default 'redact' */
  readonly action?: 'redact' | 'stop';
  /** Stands where a number was. @default '[number]' */
  readonly replacement?: string;
}

/** No number of an account has more characters, spaces and dashes included. */
const LONGEST = 48;

/**
 * Hides numbers with many digits, also where spaces or dashes stand between them.
 *
 * @example
 * new Agent({ model, middleware: [hideNumbers({ digits: 12 })] });
 */
export function hideNumbers(options: HideNumbersOptions = {}): Middleware {
  checkNamed('hideNumbers', options, ['digits', 'action', 'replacement']);
  const { digits = 12, action = 'redact', replacement = '[number]' } = options;
  checkInteger('digits', digits, 2, 24);
  checkOneOf('action', action, ['redact', 'stop']);
  checkText('replacement', replacement);
  /** How many digits the longest number had that was hidden from an answer of this run. */
  const longest = defineState({ name: 'longest', scope: 'run', durable: false, initial: 0 });
  const pattern = new RegExp(`(?<!\\d)\\d(?:[ -]?\\d){${digits - 1},${LONGEST / 2 - 1}}(?!\\d)`, 'g');

  function find(text: string): readonly Span[] {
    return [...text.matchAll(pattern)].map(({ index, 0: found }) => ({
      start: index,
      end: index + found.length,
    }));
  }

  return defineMiddleware({
    name: options.name ?? 'hide-numbers',
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
