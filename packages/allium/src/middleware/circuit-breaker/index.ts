/** Stops calling a model or tool that keeps failing, and tries it again after a while. */

import {
  AlliumError,
  attribution,
  defineMiddleware,
  isControl,
  isTransient,
  type Middleware,
  type ModelContext,
  modelName,
  monotonic,
  type ToolContext,
  type ToolResult,
} from '../../index.js';
import {
  childFailure,
  type ErrorClass,
  errorTest,
  type Fields,
  invalidOption,
  kinds,
  messageOf,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { type CallOutcome, Circuit } from './circuit.js';

export const OPTIONS = {
  /** Failures in a row that open the circuit. @default 5 */
  failures: kinds.withDefault(kinds.integer(1), 5),
  /** Milliseconds after which a failure is forgotten. @default 60_000 */
  windowMs: kinds.withDefault(kinds.number(1), 60_000),
  /** Milliseconds the circuit stays open; then one call may try. @default 30_000 */
  cooldownMs: kinds.withDefault(kinds.number(1), 30_000),
  /** What is watched; for both, put two in the list. @default 'model' */
  on: kinds.withDefault(kinds.oneOf('model', 'tool'), 'model'),
  /** Which circuit a call belongs to. @default `provider/id` of the model, or the name of the tool */
  key: kinds.withDefault(kinds.func<(ctx: ModelContext | ToolContext) => string>(), targetOf),
  /**
   * Which errors count: a function, or an error class (subclasses count too). Never asked about stops,
   * suspensions and aborts. @default isTransient for models, all for tools
   */
  failsOn: kinds.errorFilter<
    ((error: unknown, ctx: ModelContext | ToolContext) => boolean | Promise<boolean>) | ErrorClass
  >(),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  ...named('circuit-breaker'),
} satisfies Fields;

export interface CircuitBreakerOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Opens a circuit per model or tool after `failures` failures in a row: calls then fail at once with `CIRCUIT_OPEN`,
 * which a fallback further out acts on. After `cooldownMs` one call tries; if it works, the circuit closes.
 *
 * @example
 * new Agent({ model, middleware: [circuitBreaker({ failures: 2, cooldownMs: 10_000 })] });
 */
export function circuitBreaker(options: CircuitBreakerOptions = {}): Middleware {
  const settings = readOptions('circuitBreaker', OPTIONS, options);
  const { failures, windowMs, cooldownMs, on, key, clock, name, madeWith } = settings;
  const failsOn = errorTest('failsOn', settings.failsOn ?? (on === 'model' ? isTransient : () => true));
  const limits = { failures, windowMs, cooldownMs };
  // For the whole process: if a provider is down, that is true for every run.
  const circuits = new Map<string, Circuit>();

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: options?.key || options?.failsOn ? undefined : 0,
    traits: ['trips'],
    seams: [on],
    async process(given, next) {
      const ctx = given as ModelContext | ToolContext;
      const time = clock ?? ctx.agent.clock;
      const target = key(ctx);
      if (typeof target !== 'string') throw invalidOption('key()', 'a function that returns text', target);
      const circuit = circuits.get(target) ?? new Circuit(limits);
      circuits.set(target, circuit);
      const pass = circuit.enter(monotonic(time), ctx);
      if (!('era' in pass)) throw refusal(target, pass.retryAfterMs, circuit.lastError);
      if (pass.as === 'probe') ctx.emit('circuit-breaker', { key: target, state: 'half-open' });

      const end = (outcome: CallOutcome, error?: unknown): void => {
        const state = circuit.leave(pass, outcome, monotonic(time), error);
        if (state) ctx.emit('circuit-breaker', { key: target, state });
        if (circuit.isFresh) circuits.delete(target);
      };
      let outcome: CallOutcome = 'nothing';
      let failure: unknown;
      try {
        const result = await next();
        // A sub-agent that fails doesn't throw; its result says so.
        failure = ctx.seam === 'tool' ? childFailure(result as ToolResult) : undefined;
        outcome = failure === undefined ? 'success' : await judged(failure, ctx, failsOn);
        return result;
      } catch (error) {
        failure = error;
        outcome = await judged(error, ctx, failsOn);
        throw error;
      } finally {
        end(outcome, failure);
      }
    },
  });
}

async function judged(
  error: unknown,
  ctx: ModelContext | ToolContext,
  failsOn: (error: unknown, ctx: ModelContext | ToolContext) => boolean | Promise<boolean>,
): Promise<CallOutcome> {
  if (isControl(error)) return 'nothing';
  if (await failsOn(error, ctx)) return 'failure';
  // An error that doesn't count still came from the other side, so that is alive.
  return attribution(error)?.hook === ctx.seam ? 'success' : 'nothing';
}

function targetOf(ctx: ModelContext | ToolContext): string {
  return ctx.seam === 'model' ? modelName(ctx.model) : ctx.toolCall.name;
}

function refusal(key: string, retryAfterMs: number | undefined, cause: unknown): AlliumError {
  const when = retryAfterMs === undefined ? 'Another call is trying it.' : `Try again in ${retryAfterMs} ms.`;
  return new AlliumError(
    'CIRCUIT_OPEN',
    `The circuit of "${key}" is open. ${when} The last failure: ${messageOf(cause)}`,
    {
      cause,
      data: { key, ...(retryAfterMs !== undefined && { retryAfterMs }) },
    },
  );
}
