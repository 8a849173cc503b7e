/** Limits what runs, sessions or tenants may spend, in tokens or US dollars. */
import {
  AlliumError,
  type Awaitable,
  type Context,
  defineMiddleware,
  defineState,
  type Middleware,
  type Model,
  type ModelContext,
  type ModelResponse,
  type ModelSettings,
  modelName,
  NO_USAGE,
  type Price,
  type PriceOf,
  type RunContext,
  type RunResult,
  type StoppingReason,
} from '../../index.js';
import {
  callKey,
  costOf,
  estimateInputTokens,
  type Fields,
  kinds,
  type Meter,
  type MeterHold,
  meterUsage,
  type NamedOptions,
  type OptionsOf,
  priceReader,
  readOptions,
  safeErrorMessage,
  stopRunAs,
} from '../../kit/index.js';
import {
  type Account,
  type Amount,
  type BudgetMap,
  type BudgetStore,
  incrementOf,
  isBehind,
  minus,
  NOTHING,
  RunAccount,
  SharedAccount,
  type SideBySide,
  type StoredAmount,
  sum,
} from './account.js';

export type { BudgetMap, BudgetStore } from './account.js';

const STORE = kinds.kind<BudgetStore | BudgetMap>(
  'an object with increment(), or with get() and set()',
  (value) =>
    kinds.methods<BudgetStore>('increment').fits(value) || kinds.methods<BudgetMap>('get', 'set').fits(value),
  { schema: kinds.CODE },
);

export const OPTIONS = {
  /** US dollars: a number ≥ 0. @default no limit */
  usd: kinds.number(0),
  /** Tokens, input and output together: a number ≥ 0. @default no limit */
  tokens: kinds.number(0),
  /** Who shares the budget. A function names the account, for example a tenant and a month. @default 'run' */
  per: kinds.withDefault(
    kinds.either(kinds.oneOf('run', 'session', 'tenant'), kinds.func<(ctx: RunContext) => string>()),
    'run',
  ),
  /**
   * Where amounts are kept: `{ increment(key, by) }` for several processes; a `Map` or Keyv for one. @default
   * with the run or session; for tenants and your own accounts, in the memory of this process
   */
  store: STORE,
  /** Prices for models that have none. `usd` needs the price of every model. */
  priceOf: kinds.func<PriceOf>(),
  /**
   * How sub-agents without this budget are treated: `limit` reserves for their calls too and stops them when
   * the budget is used up; `count` only books what they used. @default 'limit'
   */
  subagents: kinds.withDefault(kinds.oneOf('limit', 'count'), 'limit'),
  /** Its name, part of the keys in `store`; give each its own when a list has two `per` session. @default 'budget' */
  name: kinds.withDefault(kinds.nonEmptyText, 'budget'),
} satisfies Fields;

export interface BudgetOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** Fewer tokens than this are too short for most answers. */
const SHORT = 1024;
/** Where others add to the same account at the same moment, a reservation may have to be tried again. */
const TRIES = 8;
/** Tokens that few answers have. */
const PLENTY = 65_536;
/** Tokens that no answer has. To set aside more would only keep it from others. */
const MOST = 262_144;
/** Sums of dollars are not exact. */
const CENT_DUST = 1e-9;

/**
 * Before each model call, reserves what it may cost: an estimate of its input and as much output as is affordable,
 * which is sent along as its limit. Afterwards it books what was really used. A call that does not fit ends the run.
 *
 * @example
 * new Agent({ model, middleware: [budget({ tokens: 100_000, per: 'session' })] });
 */
export function budget(options: BudgetOptions): Middleware {
  const settings = readOptions('budget', OPTIONS, options);
  const { usd, tokens, per, store, subagents, name, madeWith } = settings;
  if (usd === undefined && tokens === undefined)
    throw new AlliumError('INVALID_OPTION', 'budget() got nothing to limit. Give `usd` or `tokens`.');
  const priceOf = priceReader(settings.priceOf);
  const limits = { tokens: tokens ?? Number.POSITIVE_INFINITY, usd: usd ?? Number.POSITIVE_INFINITY };
  const increment = incrementOf(store ?? new Map<string, number>());
  const kept = store === undefined && (per === 'run' || per === 'session');
  const cell = defineState<StoredAmount>({
    name: 'spent',
    scope: per === 'session' ? 'session' : 'run',
    initial: { run: '', base: NOTHING, total: NOTHING },
  });
  /** Model calls that pass through here: those of others are admitted where the model is called. */
  const passing = new WeakSet<object>();
  /** The account of each run under way. */
  const accounts = new Map<string, Account>();
  const sides = new Map<string, SideBySide>();

  function accountOf(ctx: RunContext): Account {
    // A sub-agent has a run and a session of its own, but spends the money of the one it works for.
    const ofParent = per === 'run' || per === 'session' ? accounts.get(ctx.parentRunId ?? '') : undefined;
    if (ofParent) return ofParent;
    if (!kept)
      return new SharedAccount(
        increment,
        keyOf(ctx),
        { tokens: tokens !== undefined, usd: usd !== undefined },
        sides,
      );
    const { run, base, total } = ctx.state.get(cell);
    if (run !== ctx.runId) return new RunAccount(ctx.runId, total, NOTHING, ctx);
    return new RunAccount(ctx.runId, base, sum(total, minus(base)), ctx);
  }

  function keyOf(ctx: RunContext): string {
    if (typeof per === 'function') return `${name}:${String(per(ctx))}`;
    return `${name}:${per}:${per === 'run' ? ctx.runId : per === 'session' ? ctx.sessionId : (ctx.tenant ?? '')}`;
  }

  /** Sets aside what the call may use, or ends the run. */
  function reserve(ctx: ModelContext, account: Account, price: Price | undefined): Awaitable<Reserved> {
    const side = account.enter();
    const asked = { input: estimateInputTokens(ctx), price, others: side.calls - 1 };
    return account instanceof RunAccount
      ? reserveOwn(ctx, account, asked)
      : reserveShared(ctx, account, asked, side);
  }

  /** Nobody comes in between, so there is nothing to wait for or to try again. */
  function reserveOwn(ctx: ModelContext, account: RunAccount, asked: Asked): Reserved {
    account.settle(NOTHING, used(account));
    const left = leftOf(account.add(NOTHING));
    const wanted = affordable(ctx, left, asked, 1);
    if (wanted) {
      if (fits(account.add(wanted.amount))) return wanted;
      account.add(minus(wanted.amount));
    }
    return stop(ctx, spentUp(limits, left, asked.input));
  }

  /** Also from calls that do not pass through here, where the context is nobody's. */
  function stop(ctx: ModelContext, [reason, why]: [StoppingReason, string]): never {
    return stopRunAs(name, ctx, reason, why);
  }

  async function reserveShared(
    ctx: ModelContext,
    account: Account,
    asked: Asked,
    side: SideBySide,
  ): Promise<Reserved> {
    for (let attempt = 1; ; attempt++) {
      const left = leftOf(sum(await account.add(used(account)), side.asked));
      // Others may only have tried, and will take it back; whoever tries again asks for less.
      const wanted = affordable(ctx, left, asked, 1 / attempt ** 2);
      if (wanted) {
        if (fits(await ask(account, wanted.amount, side))) return wanted;
        await account.add(minus(wanted.amount));
      }
      if (attempt === TRIES) return stop(ctx, spentUp(limits, left, asked.input));
    }
  }

  /** Adds, and lets calls side by side know what is on its way. */
  async function ask(account: Account, amount: Amount, side: SideBySide): Promise<Amount> {
    side.asked = sum(side.asked, amount);
    try {
      return await account.add(amount);
    } finally {
      side.asked = sum(side.asked, minus(amount));
    }
  }

  function leftOf(taken: Amount): Amount {
    return { tokens: limits.tokens - taken.tokens, usd: limits.usd - taken.usd };
  }

  function fits(after: Amount): boolean {
    return after.tokens <= limits.tokens && after.usd <= limits.usd + CENT_DUST;
  }

  /** What to set aside out of what is left; undefined when that is too little. */
  function affordable(ctx: ModelContext, left: Amount, asked: Asked, part: number): Reserved | undefined {
    const { input, price, others } = asked;
    const { maxOutputTokens } = ctx.settings;
    // Nobody sets aside all that is left: calls side by side are to find something, too. The more there are, the smaller
    // is the part that the next one takes: parts of one size would leave nothing after two dozen.
    const alone = (per === 'run' || per === 'session') && ctx.depth === 0 && others === 0;
    const share = maxOutputTokens !== undefined ? 1 : alone ? 0.5 : Math.min(0.25, 0.5 / (others + 1));
    const most = affordableOutput(left, input, price, share * part);
    if (most === undefined) return undefined;
    const output = Math.min(maxOutputTokens ?? (Number.isFinite(most) ? MOST : most), most);
    // Output that nothing limits is not set aside: infinite amounts could never be given back.
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
   * What was used and is not booked: every attempt once, whoever books it. Attempts of calls that nobody sets aside
   * for, of sub-agents and of middleware further in, are among them.
   */
  function used({ unbooked, lastPrice }: Account): Amount {
    if (unbooked.length === 0) return NOTHING;
    let amount = NOTHING;
    for (const { model, usage } of unbooked.splice(0)) {
      const price = usd === undefined ? undefined : (priceOf(model) ?? lastPrice);
      amount = sum(amount, { tokens: usage.totalTokens, usd: price ? costOf(price, usage) : 0 });
    }
    return amount;
  }

  /** Books what was used in the place of what was set aside. */
  function settle(account: Account, amount: Amount): Awaitable<unknown> {
    const booked = used(account);
    if (account instanceof RunAccount) return account.settle(amount, booked);
    if (booked === NOTHING && amount === NOTHING) return;
    return account.add(sum(booked, minus(amount)));
  }

  /** Calls below that do not pass through here: of sub-agents, and of middleware further in. */
  function admitter(of: RunContext, account: Account): Meter['admit'] {
    return (ctx) => {
      if (passing.has(callKey(ctx)) || (subagents === 'count' && ctx.runId !== of.runId)) return undefined;
      const price = usd === undefined ? undefined : (priceOf(ctx.model) ?? account.lastPrice);
      if (usd !== undefined && price === undefined) throw priceUnknown(ctx.model);
      const leave = (error: unknown): never => {
        account.leave();
        throw error;
      };
      const held = ({ amount, output }: Reserved): MeterHold => ({
        maxOutputTokens: output,
        release: () =>
          account.later(
            () => settle(account, amount),
            (problem) => failed(ctx, problem),
          ),
      });
      try {
        const reserved = reserve(ctx, account, price);
        return reserved instanceof Promise ? reserved.then(held, leave) : held(reserved);
      } catch (error) {
        return leave(error);
      }
    };
  }

  /** The run is over: what was used since the last call is booked. */
  async function close(ctx: RunContext, account: Account): Promise<void> {
    accounts.delete(ctx.runId);
    await account.settled;
    await settle(account, NOTHING);
    keep(ctx, account);
  }

  return defineMiddleware({
    name,
    madeWith,
    traits: ['budgets'],
    ...(kept && { state: [cell] }),
    async wrapRun(ctx, next) {
      const account = accountOf(ctx);
      // A sub-agent's calls are noted for its parent's account already, where that is its own.
      if (account !== accounts.get(ctx.parentRunId ?? ''))
        meterUsage(ctx, accounts, { list: account.unbooked, admit: admitter(ctx, account) });
      accounts.set(ctx.runId, account);
      let result: RunResult;
      try {
        result = await next();
      } catch (error) {
        await close(ctx, account).catch((problem) => failed(ctx, problem));
        throw error;
      }
      await close(ctx, account);
      return result;
    },
    wrapModel(ctx, next) {
      const account = accounts.get(ctx.runId);
      // A call that a middleware further out makes before or after the run: nothing to draw on yet, or any more.
      if (!account) return next();
      passing.add(callKey(ctx));
      const price = usd === undefined ? undefined : priceFor(ctx, priceOf);
      account.lastPrice = price;
      let setAside: Awaitable<Reserved>;
      try {
        setAside = reserve(ctx, account, price);
      } catch (error) {
        account.leave();
        throw error;
      }
      return setAside instanceof Promise
        ? setAside.then(
            (reserved) => call(ctx, next, account, reserved),
            (error) => {
              account.leave();
              throw error;
            },
          )
        : call(ctx, next, account, setAside);
    },
  });

  /** Makes the call with what is set aside for it. Written with `then`: most accounts answer at once. */
  function call(
    ctx: ModelContext,
    next: () => Promise<ModelResponse>,
    account: Account,
    reserved: Reserved,
  ): Promise<ModelResponse> {
    if (Number.isFinite(reserved.output)) ctx.settings = limited(ctx.settings, reserved.output);
    return next().then(
      (response) => {
        account.leave();
        const settled = settle(account, reserved.amount);
        if (settled instanceof Promise)
          return settled.then(() => {
            keep(ctx, account);
            return response;
          });
        keep(ctx, account);
        return response;
      },
      async (error) => {
        account.leave();
        try {
          await settle(account, reserved.amount);
        } catch (problem) {
          failed(ctx, problem);
        }
        throw error;
      },
    );
  }

  /**
   * Stores the account, unless it belongs to the run further out that this one works for. The kernel itself journals
   * the tokens of a run, so that there is nothing to add to them.
   */
  function keep(ctx: Context, account: Account): void {
    if (per === 'run' && usd === undefined) return;
    if (!(account instanceof RunAccount) || account.runId !== ctx.runId) return;
    const { stored } = account;
    // Calls of tools that run side by side are written in the order of their results, and an account only grows.
    ctx.state.update(cell, (before) => (isBehind(stored, before) ? before : stored));
  }
}

/** What is known of a call before something is set aside for it. */
interface Asked {
  readonly input: number;
  readonly price: Price | undefined;
  /** Calls under way on the same account. */
  readonly others: number;
}

interface Reserved {
  readonly amount: Amount;
  /** The most the model may write; infinite when nothing limits it. */
  readonly output: number;
}

/** Booking failed beside a failure, which goes on. */
function failed(ctx: Context, problem: unknown): void {
  ctx.emit('budget_failed', { error: safeErrorMessage(problem, ctx) });
}

function priceFor({ model }: ModelContext, priceOf: PriceOf): Price {
  const price = priceOf(model);
  if (price) return price;
  throw priceUnknown(model);
}

function priceUnknown(model: Model): AlliumError {
  return new AlliumError(
    'PRICE_UNKNOWN',
    `budget({ usd }) needs the price of ${modelName(model)}, which is not known. Set \`price\` on the model or pass \`priceOf\`, or limit \`tokens\` instead.`,
    { data: { model: modelName(model) } },
  );
}

function spentUp(limits: Amount, left: Amount, input: number): ['max_tokens' | 'max_cost', string] {
  if (left.tokens <= input + 1 || limits.usd === Number.POSITIVE_INFINITY)
    return [
      'max_tokens',
      `About ${input} input tokens are needed, and ${Math.max(0, Math.floor(left.tokens))} of the budget of ${limits.tokens} are left.`,
    ];
  return ['max_cost', `The next call does not fit into what is left of the budget of $${limits.usd}.`];
}

/** Settings made of others, by the limit that was added last: mostly every call of an agent has the same. */
const limitedSettings = new WeakMap<ModelSettings, ModelSettings>();

function limited(settings: ModelSettings, output: number): ModelSettings {
  const known = limitedSettings.get(settings);
  if (known?.maxOutputTokens === output) return known;
  const made = { ...settings, maxOutputTokens: output };
  // What can still be changed is not remembered.
  if (Object.isFrozen(settings)) limitedSettings.set(settings, Object.freeze(made));
  return made;
}

/**
 * As long as there is plenty, limits are powers of two: a limit that shrinks a little with each call would make every
 * request different from the last, and no cache further in would ever find one again.
 */
function rounded(output: number): number {
  return output < PLENTY || !Number.isFinite(output) ? output : 2 ** Math.floor(Math.log2(output));
}
