/** Stops, suspensions and aborts pass through: not swallowed, not retried, not counted as failures. */

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
/** Whoever counts such ends as failures has lost patience by then. */
const TIMES = 6;
const COMPARED = ['events', 'messages', 'request-messages', 'tool-runs', 'result'] as const;

export const controlSignals: MiddlewareCheck<'control-signals'> = {
  law: 'control-signals',
  async check(context) {
    const alone = await fresh(context).run(CALM.at(-1)!);
    for (const signal of SIGNALS) {
      await during(signal.name, async () => {
        const breaches: string[] = [];
        const bench = fresh(context, { prepare: (middleware) => watchedForSignals(middleware, breaches) });
        const status = await endingOf(bench, signal);
        if (breaches.length > 0) throw new Error(`${breaches[0]} Rethrow what isControl() recognises.`);
        expectSame(status, signal.ends, 'the status of the run');
      });
      await during(`a run after ${TIMES} runs that ended with ${signal.name}`, async () => {
        const bench = fresh(context);
        for (let i = 0; i < TIMES; i++) await endingOf(bench, signal);
        const after = await bench.run(CALM.at(-1)!);
        const advice = 'A control signal is no failure: do not count it.';
        for (const facet of COMPARED)
          expectSame(after.facets[facet], alone.facets[facet], `\`${facet}\` as in a first run`, advice);
      });
    }
  },
};

async function endingOf(bench: Bench, { ends, ...scenario }: Signal): Promise<RunStatus> {
  // Asked for in words of its own: whoever keeps answers has none of another conversation.
  let running = bench.start({ ...scenario, input: `Show me ${scenario.name}.` });
  await bench.idle(running);
  if (running.ended && ends !== 'suspended') {
    // A middleware that asks before the call is told yes: the signal is still to come.
    const asked = await running.done;
    if (asked.result.status === 'suspended') running = bench.resume(running, asked);
    await bench.idle(running);
  }
  if (ends === 'aborted') running.abort();
  return (await bench.finish(running)).result.status;
}

/** Notes every layer that was given a signal by `next()` and did not pass that very signal on. */
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
        breaches.push(`${hook} threw something else in the place of ${named(signal)}.`);
    },
  });
}

function named(signal: unknown): string {
  return `the ${controlKind(signal)} signal that came through it`;
}
