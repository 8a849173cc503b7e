/** A second model decides whether a text is allowed. */
import type { Middleware, Model } from 'allium';
import { checkFields, kinds, type OptionsOf } from 'allium/kit';
import { JUDGE_FIELDS, judged, PARALLEL_FIELD } from '../asking/judge.js';
import { COMMON_FIELDS, guardrailOf } from '../scan/guard.js';

export const OPTIONS = {
  ...COMMON_FIELDS,
  ...JUDGE_FIELDS,
  ...PARALLEL_FIELD,
  /** The judge. It is asked through `ctx.generate()`, so it counts in budgets and limits of the run. */
  model: kinds.required(kinds.model<Model>()),
  /** What is allowed and what is not, in words. */
  policy: kinds.required(kinds.nonEmptyText),
};

export type LlmJudgeOptions = OptionsOf<typeof OPTIONS>;

/**
 * Asks a model whether a text keeps to a policy. The text is quoted as data. A missing, late or nonsensical answer
 * refuses, unless `onUnclear` says otherwise.
 *
 * @example
 * new Agent({ model, middleware: [llmJudge({ model: small, policy: 'No medical advice.', on: ['final'] })] });
 */
export function llmJudge(options: LlmJudgeOptions): Middleware {
  checkFields('llmJudge()', OPTIONS, options);
  const { model, policy, timeoutMs, onUnclear, clock, parallel = false } = options;
  return guardrailOf(
    options,
    {
      kind: 'llm-judge',
      points: parallel ? ['input'] : ['input', 'final'],
      action: 'block',
      more: { extraLlmCalls: () => [model] },
    },
    {
      ...(parallel && { parallel }),
      judge: (subject, ctx) =>
        judged(subject, ctx, { model, policy, kind: 'policy', timeoutMs, onUnclear, clock }),
    },
  );
}
