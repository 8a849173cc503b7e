/** A guardrail of your own, in ten lines. */
import type { Awaitable, GuardContext, GuardSubject, Middleware, Model, Span, Verdict, Window } from 'allium';
import { checkFields, invalidOption, isThenable, kinds, type OptionsOf } from 'allium/kit';
import { PARALLEL_FIELD } from '../asking/judge.js';
import { COMMON_FIELDS, guardrailOf } from '../scan/guard.js';

/**
 * What a check says about a text: spans that may not pass, `true` or a reason if none of it may, nothing if all is
 * well.
 */
export type Checked = readonly Span[] | boolean | string | undefined;

const hold = kinds.either(
  kinds.oneOf('full'),
  kinds.kind<Window>('window(n)', (value) => Number.isInteger(value?.chars) && value.chars >= 1),
);

export const OPTIONS = {
  ...COMMON_FIELDS,
  /**
   * Checks each text synchronously and returns what may not pass. While text streams, it is called again with more of
   * it.
   */
  check: kinds.func<(text: string, ctx: GuardContext) => Checked>(),
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
  const { check, judge, models = [], replacement } = options;
  if (!check && !judge) throw invalidOption('check', 'a function, unless `judge` is one', check);
  if (judge && typeof options.hold === 'object')
    throw invalidOption('hold', "'full' beside `judge`, which looks at whole texts", options.hold);
  return guardrailOf(
    options,
    { kind: 'guardrail', more: models.length > 0 ? { extraLlmCalls: () => models } : {} },
    {
      hold: options.hold ?? 'full',
      ...(options.parallel && { parallel: true }),
      ...(replacement !== undefined && { replacement }),
      ...(check && { find: (text, ctx) => spansOf(check(text, ctx), text) }),
      ...(judge && {
        judge(subject, ctx) {
          const said = judge(subject, ctx);
          return isThenable(said) ? Promise.resolve(said).then(verdictOf) : verdictOf(said);
        },
      }),
    },
  );
}

/** A check that objects to a text as a whole objects to all of it. */
function spansOf(said: Checked, text: string): readonly Span[] {
  if (said === undefined || said === false || said === null) return [];
  if (said === true || typeof said === 'string') return text === '' ? [] : [{ start: 0, end: text.length }];
  return said;
}

/** `true` and a reason refuse. */
function verdictOf(said: Verdict | boolean | string | void): Verdict | undefined {
  if (said === undefined || said === false || said === null) return undefined;
  if (said === true) return { type: 'deny' };
  return typeof said === 'string' ? { type: 'deny', reason: said } : said;
}
