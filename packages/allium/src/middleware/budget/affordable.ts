/** How much of what is left a model call may set aside. */

import { type ModelContext, NO_USAGE, type Price } from '../../index.js';
import { costOf } from '../../kit/index.js';
import type { Amount } from './account.js';

/** What is known about a call before something is set aside for it. */
export interface Asked {
  readonly input: number;
  readonly price: Price | undefined;
  /** Calls under way on the same account. */
  readonly others: number;
  /** Others besides the run and its sub-agents use the account. */
  readonly shared: boolean;
}

export interface Reserved {
  readonly amount: Amount;
  /** The most the model may write; infinite when nothing limits it. */
  readonly output: number;
}

/** Fewer tokens than this are too short for most answers. */
const SHORT = 1024;
/** Tokens that few answers have. */
const PLENTY = 65_536;
/** No answer has so many tokens. Setting aside more would only keep it from others. */
const MOST = 262_144;

/** What to set aside out of what is left; undefined when that is too little. */
export function affordable(
  ctx: ModelContext,
  left: Amount,
  { input, price, others, shared }: Asked,
  part: number,
): Reserved | undefined {
  const { maxOutputTokens } = ctx.settings;
  // Nobody sets aside all that is left, so that parallel calls find something, too. The more there are, the smaller
  // the part that the next one takes: equal parts would leave nothing after two dozen.
  const alone = !shared && ctx.depth === 0 && others === 0;
  const share = maxOutputTokens !== undefined ? 1 : alone ? 0.5 : Math.min(0.25, 0.5 / (others + 1));
  const most = affordableOutput(left, input, price, share * part);
  if (most === undefined) return undefined;
  const output = Math.min(maxOutputTokens ?? (Number.isFinite(most) ? MOST : most), most);
  // Unlimited output isn't set aside: infinite amounts could never be given back.
  const outputTokens = Number.isFinite(output) ? output : 0;
  const usd = price ? costOf(price, { ...NO_USAGE, inputTokens: input, outputTokens }) : 0;
  return { amount: { tokens: input + outputTokens, usd }, output };
}

function affordableOutput(
  left: Amount,
  input: number,
  price: Price | undefined,
  share: number,
): number | undefined {
  const forOutput = left.usd - (price ? (input * price.input) / 1e6 : 0);
  let output = left.tokens - input;
  if (price && price.output > 0) output = Math.min(output, (forOutput * 1e6) / price.output);
  if (left.tokens <= input || forOutput <= 0 || output < 1) return undefined;
  // A share of little would be too short for any answer.
  output = Math.floor(Math.max(output * share, Math.min(output, SHORT)));
  return rounded(output);
}

/**
 * As long as there is plenty, limits are powers of two. A limit that shrinks a little with each call would make every
 * request different from the last, and no cache further in would ever find one again.
 */
function rounded(output: number): number {
  return output < PLENTY || !Number.isFinite(output) ? output : 2 ** Math.floor(Math.log2(output));
}
