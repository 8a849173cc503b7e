/** The law `dangling-timers`. It sees only timers of the clock that the factory is given. */

import { defaultMaxListeners, getEventListeners, getMaxListeners } from 'node:events';
import type { Context, Middleware } from '../../index.js';
import { eachInterruption, eachRun } from './aftermath.js';
import { during, fresh, type MiddlewareCheck } from './context.js';
import { MANY_TURNS } from './scenarios.js';
import { watched } from './watched.js';

export const danglingTimers: MiddlewareCheck<'dangling-timers'> = {
  law: 'dangling-timers',
  statement:
    'When a run ends, the waits and timers of the middleware end too; an abort ends them at once. No call leaves a listener behind.',
  async check(context) {
    await eachRun(context, ({ timers }) => expectNone(timers, 'after the run had ended'));
    await during(MANY_TURNS.name, async () => {
      const signals = new Set<AbortSignal>();
      const prepare = (middleware: Middleware) => heard(middleware, signals);
      await fresh(context, { prepare }).run(MANY_TURNS);
      expectFew(signals);
    });
    await eachInterruption(context, ({ ended, timers }) => {
      expectNone(timers, 'after the abort');
      if (!ended)
        throw new Error(
          'Expected the run to end as soon as it was aborted, but it went on waiting. Pass ctx.signal to whatever waits.',
        );
    });
  },
};

/** Notes the signals that hooks are given: one for the run, and one for each model call and tool call. */
function heard(middleware: Middleware, signals: Set<AbortSignal>): Middleware {
  const called = (_: string, args: readonly unknown[]): void => {
    for (const arg of args) {
      const signal = (arg as Partial<Context> | undefined)?.signal;
      if (signal instanceof AbortSignal) signals.add(signal);
    }
  };
  return watched(middleware, { called });
}

/** How many listeners may be left. One or two for the run itself do no harm. */
const FEW = 4;

function expectFew(signals: ReadonlySet<AbortSignal>): void {
  let left = 0;
  // Code that raised the limit of a signal, as `fetch` does, expects many listeners.
  for (const signal of signals)
    if (getMaxListeners(signal) <= defaultMaxListeners) left += getEventListeners(signal, 'abort').length;
  if (left > FEW)
    throw new Error(
      `Expected every call to remove its listener from ctx.signal, but ${left} are left. Remove it in a \`finally\`.`,
    );
}

function expectNone(timers: number, when: string): void {
  if (timers > 0)
    throw new Error(
      `Expected no timer of the clock to be left ${when}, got ${timers}. Cancel it in a \`finally\`.`,
    );
}
