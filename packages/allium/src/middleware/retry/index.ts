/** Tries a model or tool call again when what went wrong will pass. */

import {
  type Clock,
  defineMiddleware,
  isTransient,
  type Middleware,
  type ModelContext,
  sleep,
  type ToolContext,
} from '../../index.js';
import {
  checkFunction,
  checkInteger,
  checkMethods,
  checkNamed,
  checkNumber,
  checkOneOf,
  type ErrorClass,
  errorTest,
  invalidOption,
  type NamedOptions,
  safeErrorMessage,
} from '../../kit/index.js';
import { retryAfterOf } from './retry-after.js';

export { isTransient };

export interface RetryOptions extends NamedOptions {
  /** Calls in all, the first included: 1 to 100. @default 3 */
  readonly attempts?: number;
  /** Milliseconds before the second attempt. @default 500 */
  readonly minDelayMs?: number;
  /**
   * The longest wait, in milliseconds. If the other side asks for a longer one, there is no further attempt. @default
   * 30_000
   */
  readonly maxDelayMs?: number;
  /** How much longer each wait is than the one before. @default 2 */
  readonly factor?: number;
  /** `full`: wait a random part of the delay, so that many clients do not come back at once. @default 'full' */
  readonly jitter?: 'full' | 'none';
  /** Which errors are worth another attempt: a function, or an error class. Never asked about stops, suspensions and aborts. @default isTransient */
  readonly retryOn?:
    | ((error: unknown, ctx: ModelContext | ToolContext) => boolean | Promise<boolean>)
    | ErrorClass;
  /** What is retried. @default 'model' */
  readonly on?: 'model' | 'tool';
  readonly clock?: Clock;
  /** A number from 0 up to 1, for the jitter. @default Math.random */
  readonly random?: () => number;
}

const OPTIONS = [
  'attempts',
  'minDelayMs',
  'maxDelayMs',
  'factor',
  'jitter',
  'retryOn',
  'on',
  'clock',
  'random',
];

/**
 * Retries transient failures with growing waits, or after as long as the other side asks (`Retry-After`). When the
 * attempts are used up, the last error is passed on unchanged. An abort ends a wait at once.
 *
 * @example
 * new Agent({ model, middleware: [retry({ attempts: 3, minDelayMs: 10 })] });
 */
export function retry(options: RetryOptions = {}): Middleware {
  checkNamed('retry', options, OPTIONS);
  const { attempts = 3, minDelayMs = 500, maxDelayMs = 30_000, factor = 2, jitter = 'full' } = options;
  const { on = 'model', clock: given, random = Math.random } = options;
  checkInteger('attempts', attempts, 1, 100);
  checkNumber('minDelayMs', minDelayMs, 0);
  checkNumber('maxDelayMs', maxDelayMs, 0, Number.POSITIVE_INFINITY);
  if (maxDelayMs < minDelayMs)
    throw invalidOption('maxDelayMs', `a number ≥ \`minDelayMs\`, which is ${minDelayMs}`, maxDelayMs);
  checkNumber('factor', factor, 1);
  checkOneOf('jitter', jitter, ['full', 'none']);
  const retryOn = errorTest('retryOn', options.retryOn ?? isTransient);
  checkOneOf('on', on, ['model', 'tool']);
  if (given !== undefined) checkMethods('clock', given, ['now', 'setTimer']);
  checkFunction('random', random);
  const backOff = (attempt: number) => {
    const delay = Math.min(maxDelayMs, minDelayMs * factor ** (attempt - 1));
    return jitter === 'full' ? random() * delay : delay;
  };
  return defineMiddleware({
    name: options.name ?? 'retry',
    seams: [on],
    traits: ['retries'],
    async onError(ctx, error) {
      if (ctx.attempt >= attempts || !(await retryOn(error, ctx))) return undefined;
      const clock = given ?? ctx.agent.clock;
      const asked = retryAfterOf(error, clock.now());
      if (asked !== undefined && asked > maxDelayMs) return undefined;
      const delayMs = asked ?? backOff(ctx.attempt);
      const call = ctx.seam === 'tool' ? { tool: ctx.toolCall.name, callId: ctx.toolCall.id } : {};
      ctx.emit('retry', {
        seam: ctx.seam,
        ...call,
        attempt: ctx.attempt,
        delayMs,
        error: safeErrorMessage(error, ctx),
      });
      await sleep(delayMs, ctx.signal, clock);
      return 'retry';
    },
  });
}
