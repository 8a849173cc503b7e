/** Tries a model or tool call again when what went wrong will pass. */

import {
  defineMiddleware,
  isTransient,
  type Middleware,
  type ModelContext,
  type Next,
  sleep,
  type ToolContext,
  type ToolOverride,
  type ToolResult,
} from '../../index.js';
import {
  checkNumber,
  childFailure,
  type ErrorClass,
  errorTest,
  type Fields,
  invalidOption,
  isRunAborted,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';
import { retryAfterOf } from './retry-after.js';

export { isTransient };

export const OPTIONS = {
  /** Calls in all, the first included: 1 to 100. @default 3 */
  attempts: kinds.withDefault(kinds.integer(1, 100), 3),
  /** Milliseconds before the second attempt. @default 500 */
  minDelayMs: kinds.withDefault(kinds.number(0), 500),
  /**
   * The longest wait, in milliseconds. If the other side asks for a longer one, there is no further attempt. @default
   * 30_000
   */
  maxDelayMs: kinds.withDefault(kinds.timeout, 30_000),
  /** How much longer each wait is than the one before. @default 2 */
  factor: kinds.withDefault(kinds.number(1), 2),
  /**
   * `full` waits a random part of the delay, so that many clients do not come back at once; `none` waits all
   * of it. @default 'full'
   */
  jitter: kinds.withDefault(kinds.oneOf('full', 'none'), 'full'),
  /**
   * Which errors are worth another attempt: a function, or an error class (subclasses count too). Never asked
   * about stops, suspensions and aborts. @default isTransient
   */
  retryOn: kinds.withDefault(
    kinds.errorFilter<
      ((error: unknown, ctx: ModelContext | ToolContext) => boolean | Promise<boolean>) | ErrorClass
    >(),
    isTransient,
  ),
  /** What is retried; for both, put two in the list. @default 'model' */
  on: kinds.withDefault(kinds.oneOf('model', 'tool'), 'model'),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  /** A number from 0 up to 1, for the jitter. @default Math.random */
  random: kinds.withDefault(kinds.func<() => number>(), Math.random),
  ...named('retry'),
} satisfies Fields;

export interface RetryOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Retries transient failures with growing waits, or after as long as the other side asks (`Retry-After`). When the
 * attempts are used up, the last error is passed on unchanged. An abort ends a wait at once.
 *
 * @example
 * new Agent({ model, middleware: [retry({ attempts: 3, minDelayMs: 10 })] });
 */
export function retry(options: RetryOptions = {}): Middleware {
  const settings = readOptions('retry', OPTIONS, options);
  const { attempts, minDelayMs, maxDelayMs, factor, jitter, on, clock: given, random } = settings;
  const { name, madeWith } = settings;
  if (maxDelayMs < minDelayMs)
    throw invalidOption('maxDelayMs', `a number ≥ \`minDelayMs\`, which is ${minDelayMs}`, maxDelayMs);
  const retryOn = errorTest('retryOn', settings.retryOn);
  const backOff = (attempt: number) => {
    const delay = Math.min(maxDelayMs, minDelayMs * factor ** (attempt - 1));
    if (jitter === 'none') return delay;
    const part: unknown = random();
    checkNumber('random()', part, 0, 1);
    return (part as number) * delay;
  };
  /** Waits before another attempt; false if there is to be none. */
  const waited = async (ctx: ModelContext | ToolContext, error: unknown, attempt: number) => {
    const decline = (why: string): false => {
      const what = ctx.seam === 'tool' ? `"${ctx.toolCall.name}"` : 'the model';
      ctx.note(`did not call ${what} again: ${why} (${safeErrorMessage(error, ctx)})`);
      return false;
    };
    if (attempt >= attempts)
      return decline(attempts === 1 ? 'one attempt is all it may make' : `all ${attempts} attempts failed`);
    if (!(await retryOn(error, ctx)))
      return decline(settings.retryOn === isTransient ? 'the error is not transient' : '`retryOn` said no');
    const clock = given ?? ctx.agent.clock;
    const asked = retryAfterOf(error, clock.now());
    if (asked !== undefined && asked > maxDelayMs)
      return decline(`it was asked to wait ${asked} ms, longer than \`maxDelayMs\`, ${maxDelayMs}`);
    const delayMs = asked ?? backOff(attempt);
    const call = ctx.seam === 'tool' ? { tool: ctx.toolCall.name, callId: ctx.toolCall.id } : {};
    ctx.emit('retry', {
      seam: ctx.seam,
      ...call,
      attempt,
      delayMs,
      error: safeErrorMessage(error, ctx),
    });
    try {
      await sleep(delayMs, ctx.signal, clock);
    } catch (reason) {
      // Another call of the answer asks somebody or stops the run. The failure stands, and layers further out get to see it.
      if (ctx.seam === 'tool' && !isRunAborted(ctx)) return false;
      throw reason;
    }
    return true;
  };
  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: options?.retryOn ? undefined : 0,
    seams: [on],
    traits: ['retries'],
    onError: async (ctx, error) => ((await waited(ctx, error, ctx.attempt)) ? 'retry' : undefined),
    // A sub-agent that fails doesn't throw; its result says so.
    ...(on === 'tool' && {
      async wrapTool(ctx: ToolContext, next: Next<ToolResult, ToolOverride>) {
        for (let attempt = 1; ; attempt++) {
          const result = await next();
          const error = childFailure(result);
          if (error === undefined || !(await waited(ctx, error, attempt))) return result;
        }
      },
    }),
  });
}
