/** The law `control-signals`. */

import { isControl, type Middleware, type RunStatus } from '../../index.js';
import { controlKind } from '../../kit/index.js';
import { expectSame } from '../same.js';
import { hang, text, toolCalls } from '../scripted-model.js';
import type { Bench } from './bench.js';
import { during, fresh, type MiddlewareCheck } from './context.js';
import { CALM, type KitScenario } from './scenarios.js';
import { watched } from './watched.js';

interface Signal extends KitScenario {
  readonly ends: RunStatus;
}

const SIGNALS: readonly Signal[] = [
  { name: 'a stop in a tool', answers: [toolCalls({ name: 'kit_stop' }), text('Never.')], ends: 'stopped' },
  {
    name: 'a suspension in a tool',
    answers: [toolCalls({ name: 'kit_suspend' }), text('Never.')],
    ends: 'suspended',
  },
  { name: 'an abort in mid-answer', answers: [hang('Good ')], ends: 'aborted' },
  { name: 'an abort in a tool', answers: [toolCalls({ name: 'kit_hang' }), text('Never.')], ends: 'aborted' },
  { name: 'a stop around the model', answers: [], stopsAtModel: true, ends: 'stopped' },
];
/** Enough for a middleware that counts such ends as failures to give up. */
const TIMES = 6;
const COMPARED = ['events', 'messages', 'request-messages', 'tool-runs', 'result'] as const;

export const controlSignals: MiddlewareCheck<'control-signals'> = {
  law: 'control-signals',
  statement:
    'Stops, suspensions and aborts pass through: they are not swallowed, retried or counted as failures.',
  async check(context) {
    const alone = await fresh(context).run(CALM.at(-1)!);
    for (const signal of SIGNALS) {
      await during(signal.name, async () => {
        const breaches: string[] = [];
        const bench = fresh(context, { prepare: (middleware) => watchedForSignals(middleware, breaches) });
        const status = await endingOf(bench, signal);
        if (breaches.length > 0)
          throw new Error(`${breaches[0]} Rethrow every error for which isControl() is true.`);
        expectSame(status, signal.ends, 'the status of the run');
      });
      await during(`a run after ${TIMES} runs that ended with ${signal.name}`, async () => {
        const bench = fresh(context);
        for (let i = 0; i < TIMES; i++) await endingOf(bench, signal);
        const after = await bench.run(CALM.at(-1)!);
        const advice = 'Do not count control signals as failures.';
        for (const facet of COMPARED)
          expectSame(after.facets[facet], alone.facets[facet], `\`${facet}\``, {
            as: 'in a first run',
            advice,
          });
      });
    }
  },
};

async function endingOf(bench: Bench, { ends, ...scenario }: Signal): Promise<RunStatus> {
  // A question of its own, so that a cache has no answer from another conversation.
  let running = bench.start({ ...scenario, input: `Show me ${scenario.name}.` });
  await bench.idle(running);
  if (running.ended && ends !== 'suspended') {
    // If the middleware asks before the call, say yes: the signal is still to come.
    const asked = await running.done;
    if (asked.result.status === 'suspended') running = bench.resume(running, asked);
    await bench.idle(running);
  }
  if (ends === 'aborted') running.abort();
  return (await bench.finish(running)).result.status;
}

/** Notes every layer that got a signal from `next()` and did not rethrow that very signal. */
function watchedForSignals(middleware: Middleware, breaches: string[]): Middleware {
  const received = new Map<object, unknown>();
  return watched(middleware, {
    nextRejected(_, error, call) {
      if (isControl(error) && !received.has(call)) received.set(call, error);
    },
    nextCalled(hook, call) {
      if (received.has(call))
        breaches.push(`${hook} called next() again after ${named(received.get(call))}.`);
    },
    ended(hook, call, failure) {
      if (!received.has(call)) return;
      const signal = received.get(call);
      if (!failure) breaches.push(`${hook} swallowed ${named(signal)}.`);
      else if (failure.error !== signal)
        breaches.push(`${hook} threw something else instead of ${named(signal)}.`);
    },
  });
}

function named(signal: unknown): string {
  return `the ${controlKind(signal)} signal that came through it`;
}
