/** The laws of middleware, in the order they are tried. */
import { abortCalls } from './abort-calls.js';
import { callsAnswered } from './calls-answered.js';
import { chunkInvariance } from './chunk-invariance.js';
import type { MiddlewareCheck } from './context.js';
import { controlSignals } from './control-signals.js';
import { danglingTimers } from './dangling-timers.js';
import { endOfHistory } from './end-of-history.js';
import { errorIdentity } from './error-identity.js';
import { neutrality } from './neutrality.js';
import { noMutation } from './no-mutation.js';
import { noSharedState } from './no-shared-state.js';
import { secondNext } from './second-next.js';
import { strayRejections } from './stray-rejections.js';
import { unhandledRejections } from './unhandled-rejections.js';

const LAWS = [
  neutrality,
  chunkInvariance,
  abortCalls,
  danglingTimers,
  unhandledRejections,
  secondNext,
  noMutation,
  noSharedState,
  errorIdentity,
  controlSignals,
  callsAnswered,
  endOfHistory,
] as const;

export type MiddlewareLaw = (typeof LAWS)[number]['law'];

export const MIDDLEWARE_LAWS: readonly MiddlewareCheck<MiddlewareLaw>[] = LAWS.map((one) => ({
  ...one,
  async check(context) {
    // Unhandled rejections have a law of their own. They must not fail this law or the test runner.
    let failure: { readonly error: unknown } | undefined;
    await strayRejections(async () => {
      try {
        await one.check(context);
      } catch (error) {
        failure = { error };
      }
    });
    if (failure) throw failure.error;
  },
}));
