/** Refuses requests that are too long, before they are paid for. */
import { defineMiddleware, type Middleware, type ModelContext } from 'allium';
import { checkFields, describeValue, estimateInputTokens, kinds, type OptionsOf } from 'allium/kit';

export const OPTIONS = {
  /** The most tokens a request may have: messages, system prompt and tools. */
  limit: kinds.required(kinds.integer(1)),
  /** Counts the tokens of a request. @default an estimate */
  count: kinds.func<(ctx: ModelContext) => number>(),
  /** `stop` ends the run, `warn` only reports. @default 'stop' */
  action: kinds.oneOf('stop', 'warn'),
  /** Its name. @default 'max-input-tokens' */
  name: kinds.nonEmptyText,
};

export type MaxInputTokensOptions = OptionsOf<typeof OPTIONS>;

/**
 * Ends the run with reason `guardrail` if a request is larger than `limit`. Put it inside middleware that make
 * requests shorter.
 *
 * @example
 * new Agent({ model, middleware: [compaction(), maxInputTokens({ limit: 100_000 })] });
 */
export function maxInputTokens(options: MaxInputTokensOptions): Middleware {
  checkFields('maxInputTokens()', OPTIONS, options);
  const { limit, count = estimateInputTokens, action = 'stop' } = options;
  return defineMiddleware({
    name: options.name ?? 'max-input-tokens',
    // A function of yours may look at anything.
    looksBack: options.count ? undefined : 0,
    traits: ['protects'],
    beforeModel(ctx) {
      const tokens: unknown = count(ctx);
      // Compared with a limit, anything but a number would count as short enough.
      if (typeof tokens !== 'number' || Number.isNaN(tokens))
        throw new TypeError(
          `Expected \`count\` of maxInputTokens() to return a number at once, got ${describeValue(tokens)}.`,
        );
      if (tokens <= limit) return;
      const what = `The request has about ${tokens} tokens; at most ${limit} are allowed.`;
      if (action === 'stop') ctx.stop('guardrail', what);
      ctx.note(what);
      ctx.emit('guard_warning', { point: 'request', tokens, limit });
    },
  });
}
