/** A guardrail of your own, in ten lines. */
import type { Awaitable, GuardContext, GuardSubject, Middleware, Model, Verdict, Window } from 'allium';
import { checkFields, invalidOption, isThenable, kinds, type OptionsOf } from 'allium/kit';
import { PARALLEL_FIELD } from '../asking/judge.js';
import { COMMON_FIELDS, guardrailOf } from '../scan/guard.js';
import { type Check, isAsync, judgeOf, spansOf, verdictOf } from './check.js';

export type { Check, Checked } from './check.js';

const hold = kinds.either(
  kinds.oneOf('full'),
  kinds.kind<Window>('window(n)', (value) => Number.isInteger(value?.chars) && value.chars >= 1),
);

export const OPTIONS = {
  ...COMMON_FIELDS,
  /**
   * Checks each text and returns what may not pass. While text streams, it is called again with more of it. An `async`
   * function is asked once, about the whole text.
   */
  check: kinds.func<Check>(),
  /** Judges the whole text, call or result, and may take its time: for models and services. */
  judge:
    kinds.func<(subject: GuardSubject, ctx: GuardContext) => Awaitable<Verdict | boolean | string | void>>(),
  /**
   * How much streamed text is held back for `check`: `window(n)` catches every match of up to n characters. @default
   * 'full'
   */
  hold,
  ...PARALLEL_FIELD,
  /** Replaces a span that was cut. @default '[redacted]' */
  replacement: kinds.text,
  /** Models that `judge` asks through `ctx.context.generate()`. */
  models: kinds.listOf(kinds.model<Model>()),
};

export type GuardrailOptions = OptionsOf<typeof OPTIONS>;

/**
 * Makes a guardrail from a function.
 *
 * @example
 * guardrail({ name: 'no-shouting', check: (text) => /[A-Z]{12}/.test(text) && 'Please do not shout.', action: 'block' });
 */
export function guardrail(options: GuardrailOptions): Middleware {
  checkFields('guardrail()', OPTIONS, options);
  const { check, judge, models = [], replacement, parallel, hold = 'full', action } = options;
  if (!check && !judge) throw invalidOption('check', 'a function, unless `judge` is one', check);
  // Only a function that gets the whole text can be async.
  const waits = check !== undefined && (parallel === true || isAsync(check));
  if (waits && judge) throw invalidOption('judge', 'left out beside a `check` that takes its time', judge);
  const judges =
    judge ?? (waits ? judgeOf(check, { action: parallel ? 'block' : action, replacement }) : undefined);
  if (judges && hold !== 'full') {
    const beside = judge ? '`judge`, which looks' : 'a `check` that takes its time: it looks';
    throw invalidOption('hold', `'full' beside ${beside} at whole texts`, hold);
  }
  return guardrailOf(
    options,
    { kind: 'guardrail', more: models.length > 0 ? { extraLlmCalls: () => models } : {} },
    {
      hold,
      ...(parallel && { parallel: true }),
      ...(replacement !== undefined && { replacement }),
      ...(check && !waits && { find: (text, ctx) => spansOf(check(text, ctx), text) }),
      ...(judges && {
        judge(subject, ctx) {
          const said = judges(subject, ctx);
          return isThenable(said) ? Promise.resolve(said).then(verdictOf) : verdictOf(said);
        },
      }),
    },
  );
}
