/** Whatever ends a run ends the waits and timers of the middleware too, and an abort ends them at once. */
import { allScenarios, during, fresh, type MiddlewareCheck } from './context.js';
import { eachInterruption } from './interruption.js';

export const danglingTimers: MiddlewareCheck<'dangling-timers'> = {
  law: 'dangling-timers',
  async check(context) {
    for (const scenario of allScenarios(context)) {
      await during(scenario.name, async () => {
        const bench = fresh(context);
        await bench.run(scenario);
        expectNone(bench.timers, 'after the run had ended');
      });
    }
    await eachInterruption(context, ({ ended, timers }) => {
      expectNone(timers, 'after the abort');
      if (!ended)
        throw new Error(
          'Expected the run to end as soon as it was aborted, but it went on waiting. Pass ctx.signal to whatever waits.',
        );
    });
  },
};

function expectNone(timers: number, when: string): void {
  if (timers > 0)
    throw new Error(
      `Expected no timer of the clock to be left ${when}, got ${timers}. Cancel it in a \`finally\`.`,
    );
}
