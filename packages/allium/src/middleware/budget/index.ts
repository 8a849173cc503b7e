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
  type PriceOf,
  type RunContext,
  type RunResult,
} from '../../index.js';
import {
  callKey,
  type Fields,
  invalidOption,
  kinds,
  type Meter,
  type MeterHold,
  meterUsage,
  type NamedOptions,
  type OptionsOf,
  priceReader,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';
import {
  type Account,
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
import type { Reserved } from './affordable.js';
import { Reservations } from './reservations.js';

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
  const priceOf = usd === undefined ? undefined : priceReader(settings.priceOf);
  const limits = { tokens: tokens ?? Number.POSITIVE_INFINITY, usd: usd ?? Number.POSITIVE_INFINITY };
  const shared = per !== 'run' && per !== 'session';
  const reservations = new Reservations({ name, limits, shared, priceOf });
  const increment = incrementOf(store ?? new Map<string, number>());
  const kept = store === undefined && !shared;
  const cell = defineState<StoredAmount>({
    name: 'spent',
    scope: per === 'session' ? 'session' : 'run',
    // Going back in the history doesn't give money back.
    rewinds: per !== 'session',
    initial: { run: '', base: NOTHING, total: NOTHING },
  });
  /** Model calls that pass through here. Others are admitted where the model is called. */
  const passing = new WeakSet<object>();
  /** The account of each run in progress. */
  const accounts = new Map<string, Account>();
  const sides = new Map<string, SideBySide>();

  function accountOf(ctx: RunContext): Account {
    // A sub-agent has its own run and session, but spends the money of its caller.
    const ofParent = shared ? undefined : accounts.get(ctx.parentRunId ?? '');
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
    if (typeof per === 'function') {
      const account: unknown = per(ctx);
      // Everybody would share the account "undefined", or that of all promises.
      if (typeof account !== 'string') throw invalidOption('per()', 'a function that returns text', account);
      return `${name}:${account}`;
    }
    return `${name}:${per}:${per === 'run' ? ctx.runId : per === 'session' ? ctx.sessionId : (ctx.tenant ?? '')}`;
  }

  /** Admits calls that do not pass through here: of sub-agents, and of middleware further in. */
  function admitter(of: RunContext, account: Account): Meter['admit'] {
    return (ctx) => {
      if (passing.has(callKey(ctx)) || (subagents === 'count' && ctx.runId !== of.runId)) return undefined;
      const price = priceOf && (priceOf(ctx.model) ?? account.lastPrice);
      if (priceOf && price === undefined) throw priceUnknown(ctx.model);
      const leave = (error: unknown): never => {
        account.leave();
        throw error;
      };
      const held = ({ amount, output }: Reserved): MeterHold => ({
        maxOutputTokens: output,
        release: () =>
          account.later(
            () => reservations.settle(account, amount),
            (problem) => failed(ctx, problem),
          ),
      });
      try {
        const reserved = reservations.reserve(ctx, account, price);
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
    await reservations.settle(account, NOTHING);
    keep(ctx, account);
  }

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: typeof per === 'function' ? undefined : 0,
    traits: ['budgets'],
    ...(kept && { state: [cell] }),
    async wrapRun(ctx, next) {
      const account = accountOf(ctx);
      // If a sub-agent uses its parent's account, its calls are noted there already.
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
      // A call that an outer middleware makes before or after the run: there is no account then.
      if (!account) return next();
      passing.add(callKey(ctx));
      const price = priceOf?.(ctx.model);
      if (priceOf && price === undefined) throw priceUnknown(ctx.model);
      account.lastPrice = price;
      let setAside: Awaitable<Reserved>;
      try {
        setAside = reservations.reserve(ctx, account, price);
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
        const settled = reservations.settle(account, reserved.amount);
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
          await reservations.settle(account, reserved.amount);
        } catch (problem) {
          failed(ctx, problem);
        }
        throw error;
      },
    );
  }

  /**
   * Stores the account, unless it belongs to the caller's run. The kernel itself journals the tokens of a run, so
   * there is nothing to add to them.
   */
  function keep(ctx: Context, account: Account): void {
    if (per === 'run' && usd === undefined) return;
    if (!(account instanceof RunAccount) || account.runId !== ctx.runId) return;
    const { stored } = account;
    // Writes of parallel tool calls come in the order of their results, and an account only grows.
    ctx.state.update(cell, (before) => (isBehind(stored, before) ? before : stored));
  }
}

/** Booking failed beside another failure, which continues. */
function failed(ctx: Context, problem: unknown): void {
  ctx.emit('budget_failed', { error: safeErrorMessage(problem, ctx) });
}

function priceUnknown(model: Model): AlliumError {
  return new AlliumError(
    'PRICE_UNKNOWN',
    `budget({ usd }) needs the price of ${modelName(model)}, which is not known. Set \`price\` on the model or pass \`priceOf\`, or limit \`tokens\` instead.`,
    { data: { model: modelName(model) } },
  );
}

/**
 * Settings by those they were made from, with the limit that was added last: usually every call of an agent has the
 * same.
 */
const limitedSettings = new WeakMap<ModelSettings, ModelSettings>();

function limited(settings: ModelSettings, output: number): ModelSettings {
  const known = limitedSettings.get(settings);
  if (known?.maxOutputTokens === output) return known;
  const made = { ...settings, maxOutputTokens: output };
  // Settings that can still change are not remembered.
  if (Object.isFrozen(settings)) limitedSettings.set(settings, Object.freeze(made));
  return made;
}
