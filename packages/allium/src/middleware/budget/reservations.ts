/** Sets aside what a call may cost before it is made, and books what it did cost afterwards. */

import type { Awaitable, ModelContext, Price, PriceOf, StoppingReason } from '../../index.js';
import { costOf, estimateInputTokens, stopRunAs } from '../../kit/index.js';
import { type Account, type Amount, minus, NOTHING, RunAccount, type SideBySide, sum } from './account.js';
import { type Asked, affordable, type Reserved } from './affordable.js';

/** If others add to the same account at the same moment, a reservation may have to be repeated. */
const TRIES = 8;
/** Sums of dollars are not exact. */
const CENT_DUST = 1e-9;

export interface BudgetLimits {
  /** The name of the middleware, for the stop. */
  readonly name: string;
  readonly limits: Amount;
  /** Others besides a run and its sub-agents use the accounts. */
  readonly shared: boolean;
  /** Undefined if dollars are not limited. */
  readonly priceOf: PriceOf | undefined;
}

export class Reservations {
  constructor(private readonly budget: BudgetLimits) {}

  /** Sets aside what the call may use, or ends the run. */
  reserve(ctx: ModelContext, account: Account, price: Price | undefined): Awaitable<Reserved> {
    const side = account.enter();
    const { shared } = this.budget;
    const asked = { input: estimateInputTokens(ctx), price, others: side.calls - 1, shared };
    return account instanceof RunAccount
      ? this.#reserveOwn(ctx, account, asked)
      : this.#reserveShared(ctx, account, asked, side);
  }

  /** Nobody comes in between, so there is nothing to wait for or to repeat. */
  #reserveOwn(ctx: ModelContext, account: RunAccount, asked: Asked): Reserved {
    account.settle(NOTHING, this.#used(account));
    const left = this.#leftOf(account.add(NOTHING));
    const wanted = affordable(ctx, left, asked, 1);
    if (wanted) {
      if (this.#fits(account.add(wanted.amount))) return wanted;
      account.add(minus(wanted.amount));
    }
    return this.#stop(ctx, spentUp(this.budget.limits, left, asked.input));
  }

  /** Also for calls that do not pass through here, whose context belongs to nobody. */
  #stop(ctx: ModelContext, [reason, why]: [StoppingReason, string]): never {
    return stopRunAs(this.budget.name, ctx, reason, why);
  }

  async #reserveShared(
    ctx: ModelContext,
    account: Account,
    asked: Asked,
    side: SideBySide,
  ): Promise<Reserved> {
    for (let attempt = 1; ; attempt++) {
      const left = this.#leftOf(sum(await account.add(this.#used(account)), side.asked));
      // Others may only have tried and will take it back. Each further try asks for less.
      const wanted = affordable(ctx, left, asked, 1 / attempt ** 2);
      if (wanted) {
        if (this.#fits(await this.#ask(account, wanted.amount, side))) return wanted;
        await account.add(minus(wanted.amount));
      }
      if (attempt === TRIES) return this.#stop(ctx, spentUp(this.budget.limits, left, asked.input));
    }
  }

  /** Adds, and tells parallel calls what is on its way. */
  async #ask(account: Account, amount: Amount, side: SideBySide): Promise<Amount> {
    side.asked = sum(side.asked, amount);
    try {
      return await account.add(amount, true);
    } finally {
      side.asked = sum(side.asked, minus(amount));
    }
  }

  #leftOf(taken: Amount): Amount {
    const { limits } = this.budget;
    return { tokens: limits.tokens - taken.tokens, usd: limits.usd - taken.usd };
  }

  #fits(after: Amount): boolean {
    const { limits } = this.budget;
    return after.tokens <= limits.tokens && after.usd <= limits.usd + CENT_DUST;
  }

  /**
   * What was used and is not booked: every attempt once, whoever books it. That includes calls that nothing was set
   * aside for, of sub-agents and of middleware further in.
   */
  #used({ unbooked, lastPrice }: Account): Amount {
    if (unbooked.length === 0) return NOTHING;
    let amount = NOTHING;
    for (const { model, usage } of unbooked.splice(0)) {
      const price = this.budget.priceOf && (this.budget.priceOf(model) ?? lastPrice);
      amount = sum(amount, { tokens: usage.totalTokens, usd: price ? costOf(price, usage) : 0 });
    }
    return amount;
  }

  /** Books what was used instead of what was set aside. */
  settle(account: Account, amount: Amount): Awaitable<unknown> {
    const booked = this.#used(account);
    if (account instanceof RunAccount) return account.settle(amount, booked);
    if (booked === NOTHING && amount === NOTHING) return;
    return account.add(sum(booked, minus(amount)));
  }
}

function spentUp(limits: Amount, left: Amount, input: number): ['max_tokens' | 'max_cost', string] {
  if (left.tokens <= input + 1 || limits.usd === Number.POSITIVE_INFINITY)
    return [
      'max_tokens',
      `About ${input} input tokens are needed, and ${Math.max(0, Math.floor(left.tokens))} of the budget of ${limits.tokens} are left.`,
    ];
  return ['max_cost', `The next call does not fit into what is left of the budget of $${limits.usd}.`];
}
