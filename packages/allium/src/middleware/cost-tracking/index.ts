/** Says what model calls cost. A price that is not known makes the cost unknown, never zero. */

import {
  defineMiddleware,
  defineState,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  modelName,
  type Price,
  type RunResult,
  systemClock,
  type Usage,
} from '../../index.js';
import {
  checkPrice,
  costOf,
  type Fields,
  kinds,
  messageOf,
  type NamedOptions,
  named,
  type OptionsOf,
  partialUsage,
  readOptions,
} from '../../kit/index.js';
import { loadTable, type PriceTable } from './table.js';

/** A model as prices name it. */
export interface PricedModel {
  readonly provider: string;
  readonly id: string;
}

/** What one model call cost. */
export interface CallCost {
  /** `provider/id` of the model that answered. */
  readonly model: string;
  readonly usage: Usage | undefined;
  /** US dollars; undefined if the price or the usage is unknown. */
  readonly usd: number | undefined;
  /** The cost of the run so far; undefined once the cost of a call is unknown. */
  readonly totalUsd: number | undefined;
}

const PRICE = {
  ...kinds.shape({
    input: kinds.required(kinds.number(0)),
    output: kinds.required(kinds.number(0)),
    cacheRead: kinds.number(0),
    cacheWrite: kinds.number(0),
  }),
  expected: 'an object with input and output',
};
const PRICES = {
  ...kinds.either(kinds.recordOf(PRICE), kinds.func<(model: PricedModel) => Price | undefined>()),
  expected: 'an object of prices by model, or a function',
};

export const OPTIONS = {
  /**
   * US dollars per million tokens, `{ input, output, cacheRead?, cacheWrite? }`: by `provider/id` or `id`, or
   * a function. Models not listed here cost what their own `price` says. @default a model's own `price`, else
   * the table of `@pydantic/genai-prices`
   */
  prices: PRICES,
  /** Called after each model call, and awaited. If it throws, the run fails. */
  onCost: kinds.func<(cost: CallCost, ctx: ModelContext) => unknown>(),
  /** Prices may depend on the date. @default the system's */
  clock: kinds.withDefault(kinds.clock('now'), systemClock),
  ...named('cost-tracking'),
} satisfies Fields;

export interface CostTrackingOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** What a call cost, or why nobody knows. */
interface Cost {
  readonly usd?: number;
  readonly problem?: string;
}

const FREE: Cost = { usd: 0 };

interface Spent {
  readonly usd: number;
  /** Tokens whose price is known. */
  readonly tokens: number;
  /** The cost of some call is not known. */
  readonly unknown: boolean;
}

/**
 * Adds up what the model calls of a run cost: in `result.costUsd`, in `ctx.metadata.costUsd` of each call, and in a
 * `custom` event named `cost`.
 *
 * @example
 * const tracking = costTracking({ prices: { 'test/scripted': { input: 3, output: 15 } } });
 */
export function costTracking(options: CostTrackingOptions = {}): Middleware {
  const { onCost, clock, name, madeWith, ...settings } = readOptions('costTracking', OPTIONS, options);
  const prices = settings.prices && lookup(settings.prices);
  const spent = defineState<Spent>({
    name: 'spent',
    scope: 'run',
    initial: { usd: 0, tokens: 0, unknown: false },
  });

  async function costOfCall(ctx: ModelContext, response: ModelResponse): Promise<Cost> {
    const { usage, model = modelName(ctx.model) } = response;
    const [provider, id] = split(model);
    // Another model may have answered further in, whose own price is not known here.
    const own = model === modelName(ctx.model) ? ctx.model.price : undefined;
    const price = prices ? (prices({ provider, id }) ?? own) : own;
    if (!usage || usage.totalTokens === 0 || partialUsage(usage))
      return { problem: `${model} did not say how many tokens it used.` };
    if (price) return { usd: costOf(price, usage) };
    if (prices) return { problem: `There is no price for ${model} in \`prices\`.` };
    let table: PriceTable;
    try {
      table = await loadTable();
    } catch (error) {
      return { problem: messageOf(error) };
    }
    const usd = table.costOf({ provider, id }, usage, clock.now());
    return usd === undefined
      ? { problem: `The table of prices has none for ${model}. Pass it in \`prices\`.` }
      : { usd };
  }

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: options?.onCost ? undefined : 0,
    state: [spent],
    async afterModel(ctx) {
      const response = ctx.response!;
      const free = isFree(ctx, response);
      const { usd, problem } = free ? FREE : await costOfCall(ctx, response);
      const tokens = free ? 0 : (response.usage?.totalTokens ?? 0);
      // Noted once per run; after that its cost is known to be unknown.
      const isNews = problem !== undefined && !ctx.state.get(spent).unknown;
      if (isNews) ctx.note(`does not know the cost: ${problem}`);
      ctx.state.update(spent, (total) => added(total, usd, tokens));
      const total = ctx.state.get(spent);
      const totalUsd = total.unknown ? undefined : total.usd;
      ctx.metadata.costUsd = usd;
      const { usage, model = modelName(ctx.model) } = response;
      const cost: CallCost = { model, usage, usd, totalUsd };
      ctx.emit('cost', { model, usd, totalUsd, ...(isNews && { problem }) });
      if (onCost) await onCost(cost, ctx);
    },
    afterRun(ctx) {
      const { result } = ctx;
      if (!result || result.costUsd !== undefined) return;
      const { usd, tokens, unknown } = ctx.state.get(spent);
      // Nobody reported the cost of tokens that didn't pass here (failed attempts, sub-agents).
      if (!unknown && tokens === result.usage.totalTokens) ctx.result = withCost(result, usd);
    },
  });
}

function lookup(
  prices: NonNullable<CostTrackingOptions['prices']>,
): (model: PricedModel) => Price | undefined {
  if (typeof prices === 'function')
    return (model) => {
      const price = prices(model) ?? undefined;
      if (price !== undefined) checkPrice(model, price);
      return price;
    };
  const own = new Map(Object.entries(prices));
  return ({ provider, id }) => own.get(`${provider}/${id}`) ?? own.get(id);
}

function split(name: string): readonly [provider: string, id: string] {
  const at = name.indexOf('/');
  return [name.slice(0, Math.max(at, 0)), name.slice(at + 1)];
}

/** An answer from a cache, or one that a layer made up, was not paid for now. */
function isFree(ctx: ModelContext, { metadata, model }: ModelResponse): boolean {
  return metadata?.cacheHit === true || ctx.metadata.cacheHit === true || model === undefined;
}

function added({ usd, tokens, unknown }: Spent, cost: number | undefined, count: number): Spent {
  if (cost === undefined) return { usd, tokens, unknown: true };
  return { usd: usd + cost, tokens: tokens + count, unknown };
}

/** The result with a cost. Its other fields are still read on demand. */
function withCost(result: RunResult, costUsd: number): RunResult {
  const fields = Object.getOwnPropertyDescriptors(result);
  return Object.defineProperties({} as RunResult, {
    ...fields,
    costUsd: { value: costUsd, enumerable: true },
  });
}
