/** What a run may spend, has spent and has set aside, in tokens and money. Sub-agents draw on their caller's budget. */
import { soon } from '../lib/clock.js';
import { AlliumError } from '../lib/errors.js';
import { costSum, NO_USAGE, UNKNOWN_USAGE, type Usage, UsageTotal } from '../messages/messages.js';
import { costOf, type Model, modelName, type Price, type PriceOf } from '../messages/model.js';
import type { ExtraModel } from '../plan/extra-models.js';
import type { Limits } from '../protocol/limits.js';
import { kernelStop, type StopRun } from '../protocol/signals.js';

/** What was set aside for a call. */
export interface Reservation {
  readonly tokens: number;
  readonly costUsd: number;
  /** The most the model may write. */
  readonly maxOutputTokens: number;
}

/** More than models write in one answer. */
const PLENTY = 32_768;
/** Tokens of a short answer: less is too little for most. */
const SHORT = 1024;

/** Refusals because calls under way have set the rest aside. */
const crowded = new WeakSet<StopRun>();

/** Is it worth trying again once a call under way has ended? */
export function isCrowded(refusal: unknown): boolean {
  return crowded.has(refusal as StopRun);
}

/** Spent, reserved and allowed amounts of tokens and money. */
export class Budget {
  private readonly spent = new UsageTotal();
  /** Undefined once something was used whose price or amount isn't known. */
  costUsd: number | undefined = 0;
  private reservedTokens = 0;
  private reservedCost = 0;
  /** Reservations that are not settled yet. */
  private open = 0;
  private waiting: (() => void)[] | undefined = undefined;
  readonly limited: boolean;

  constructor(
    private readonly limits: Pick<Limits, 'tokens' | 'costUsd'>,
    readonly priceOf: PriceOf,
    private readonly parent?: Budget,
  ) {
    this.limited = isLimit(limits.tokens) || isLimit(limits.costUsd) || (parent?.limited ?? false);
  }

  get usage(): Usage {
    return this.spent.snapshot();
  }

  /** Takes over what was spent before: an earlier part of the run, or the session so far. */
  start(usage: Usage, costUsd: number | undefined): void {
    this.spent.add(usage);
    this.costUsd = costUsd;
  }

  /**
   * Sets aside an estimate of the input, and the output that can be afforded beside it; undefined if nothing is
   * limited. Throws StopRun if the tokens or the money are used up, or set aside (see `isCrowded`). `share` is the
   * part of the rest that a call without its own output limit may take, so that parallel calls leave something for
   * each other. A share of 1 leaves only what one answer can't need. While calls under way may still give something
   * back, nobody gets too little for an answer.
   */
  reserve(
    model: Model,
    inputTokens: () => number,
    maxOutputTokens: number | undefined,
    share: number,
  ): Reservation | undefined {
    if (!this.limited) return undefined;
    const input = inputTokens();
    let output = maxOutputTokens ?? Number.POSITIVE_INFINITY;
    const part = (left: number) => (maxOutputTokens === undefined ? partOf(left, share) : left);
    const price = this.priceOf(model);
    let tightest: Budget | undefined;
    for (let budget: Budget | undefined = this; budget; budget = budget.parent) {
      const room = budget.affordable(model, price, input, part);
      if (room < output) [output, tightest] = [room, budget];
    }
    if (tightest && tightest.open > 0 && output < Math.min(maxOutputTokens ?? SHORT, SHORT)) {
      const reason = isLimit(tightest.limits.tokens) ? 'max_tokens' : 'max_cost';
      throw refusal(reason, `Calls under way leave ${output} tokens for an answer.`, true);
    }
    // Unlimited output isn't set aside: infinite amounts could never be given back.
    const outputTokens = Number.isFinite(output) ? output : 0;
    const tokens = input + outputTokens;
    const costUsd = price ? costOf(price, { ...NO_USAGE, inputTokens: input, outputTokens }) : 0;
    for (let budget: Budget | undefined = this; budget; budget = budget.parent) {
      budget.open++;
      budget.reservedTokens += tokens;
      budget.reservedCost += costUsd;
    }
    return { tokens, costUsd, maxOutputTokens: output };
  }

  /** Replaces a reservation by what was really used. */
  bookUsage(price: Price | undefined, reservation: Reservation | undefined, usage: Usage): void {
    this.add(usage, costOfUsage(price, usage), reservation);
  }

  add(usage: Usage, costUsd: number | undefined, reservation?: Reservation): void {
    this.addBelow(undefined, usage, costUsd, reservation);
  }

  /** The same, up to a budget that this one draws on. */
  addBelow(
    end: Budget | undefined,
    usage: Usage,
    costUsd: number | undefined,
    reservation?: Reservation,
  ): void {
    for (let budget: Budget | undefined = this; budget && budget !== end; budget = budget.parent) {
      budget.spent.add(usage);
      budget.costUsd = costSum(budget.costUsd, costUsd);
      if (reservation) budget.giveBack(reservation);
    }
  }

  private giveBack({ tokens, costUsd }: Reservation): void {
    // Sums of dollars aren't exact. When nothing is set aside any more, the rest is 0.
    const none = --this.open === 0;
    this.reservedTokens = none ? 0 : this.reservedTokens - tokens;
    this.reservedCost = none ? 0 : this.reservedCost - costUsd;
    const { waiting } = this;
    if (waiting === undefined) return;
    this.waiting = undefined;
    // Not at once: the run may need nothing more than the answer that has just come.
    soon(() => {
      for (const goOn of waiting) goOn();
    });
  }

  /** Settles when a call under way has ended, of this budget or of any other that draws on the same one. */
  change(): Promise<void> {
    if (this.parent) return this.parent.change();
    return new Promise((resolve) => {
      this.waiting ??= [];
      this.waiting.push(resolve);
    });
  }

  /** Which limit has been reached, if any. */
  exceeded(): StopRun | undefined {
    for (let budget: Budget | undefined = this; budget?.limited; budget = budget.parent) {
      const { tokens, costUsd } = budget.limits;
      const { totalTokens: used } = budget.spent;
      if (tokens !== undefined && used >= tokens)
        return kernelStop('max_tokens', `The limit of ${tokens} tokens is used up (${used}).`);
      if (costUsd !== undefined && (budget.costUsd ?? 0) >= costUsd)
        return kernelStop('max_cost', `The limit of $${costUsd} is used up ($${budget.costUsd}).`);
    }
    return undefined;
  }

  /**
   * A cost limit needs the price of every model that may be called. Throws before the run begins, not in the middle
   * of it.
   */
  checkPrices(models: readonly ExtraModel[]): void {
    let limitsCost = false;
    for (let budget: Budget | undefined = this; budget; budget = budget.parent)
      limitsCost ||= isLimit(budget.limits.costUsd);
    const unknown = limitsCost ? models.find(({ model }) => !this.priceOf(model)) : undefined;
    if (unknown) throw priceUnknown(unknown.model, `, which "${unknown.by}" may call,`);
  }

  /** How much output can be afforded beside the input. */
  private affordable(
    model: Model,
    price: Price | undefined,
    input: number,
    part: (left: number) => number,
  ): number {
    let output = Number.POSITIVE_INFINITY;
    const { tokens, costUsd } = this.limits;
    if (isLimit(tokens)) {
      const left = tokens - this.spent.totalTokens - this.reservedTokens;
      if (left <= input) {
        const why = `About ${input} input tokens are needed and ${Math.max(0, left)} of ${tokens} are left.`;
        throw refusal('max_tokens', why, left + this.reservedTokens > input);
      }
      output = Math.floor(part(left - input)) || 1;
    }
    if (isLimit(costUsd)) {
      if (!price) throw priceUnknown(model);
      if (this.costUsd === undefined) {
        const why = `The cost of earlier calls is unknown, so what is left of $${costUsd} is unknown too.`;
        throw refusal('max_cost', why, false);
      }
      const left = costUsd - this.costUsd - this.reservedCost - (input * price.input) / 1e6;
      if (left <= 0) {
        const why = `The next call could cost more than what is left of $${costUsd}.`;
        throw refusal('max_cost', why, left + this.reservedCost > 0);
      }
      const affordable =
        price.output > 0 ? Math.floor(part((left * 1e6) / price.output)) : Number.POSITIVE_INFINITY;
      if (affordable < 1) {
        const why = `What is left of $${costUsd} does not cover a single output token.`;
        throw refusal('max_cost', why, this.open > 0);
      }
      output = Math.min(output, affordable);
    }
    return output;
  }
}

function partOf(left: number, share: number): number {
  const most = share < 1 ? Math.max(SHORT, left * share) : Math.max(PLENTY, left / 2);
  return Math.min(left, most);
}

function refusal(reason: 'max_tokens' | 'max_cost', why: string, mayFitLater: boolean): StopRun {
  const stop = kernelStop(reason, why);
  if (mayFitLater) crowded.add(stop);
  return stop;
}

function isLimit(value: number | undefined): value is number {
  return value !== undefined && value !== Number.POSITIVE_INFINITY;
}

function priceUnknown(model: Model, why = ''): AlliumError {
  return new AlliumError(
    'PRICE_UNKNOWN',
    `A cost limit is set, but the price of ${modelName(model)}${why} is not known. Set \`price\` on the model or \`priceOf\` on the agent, or limit tokens instead.`,
  );
}

function costOfUsage(price: Price | undefined, usage: Usage): number | undefined {
  if (usage === UNKNOWN_USAGE) return undefined;
  if (price) return costOf(price, usage);
  return usage.totalTokens === 0 ? 0 : undefined;
}
