/** The law `end-of-history`. */

import {
  Agent,
  defineMiddleware,
  type Middleware,
  memoryStore,
  type NewEntry,
  type Store,
} from '../../index.js';
import { fakeClock } from '../fake-clock.js';
import { expectSame } from '../same.js';
import { scriptedModel } from '../scripted-model.js';
import { during, fresh, type MiddlewareCheck, type MiddlewareLawContext } from './context.js';
import { CALM, type KitScenario } from './scenarios.js';

/** Runs of the long session, of two messages each. */
const RUNS = 250;
/** How many messages the kit's own window leaves in a request. */
const WINDOW = 40;
const COMPARED = ['request-messages', 'system-prompt', 'tools', 'settings', 'messages', 'result'] as const;

export const endOfHistory: MiddlewareCheck<'end-of-history'> = {
  law: 'end-of-history',
  statement:
    'With `looksBack` or `enoughHistory` it needs no more of a long session than it says: a run that reads only the end is the same as one that reads everything. A middleware with neither passes.',
  async check(context) {
    let made: Middleware = {};
    fresh(context, {
      prepare: (middleware) => {
        made = middleware;
        return middleware;
      },
    });
    const { looksBack, enoughHistory } = made;
    if (looksBack === undefined && !enoughHistory) return;
    // Something has to leave older messages out of requests, or everything is read.
    const outer = enoughHistory ? undefined : window();
    for (const scenario of [...CALM.filter(({ answers }) => answers.length === 2), ...context.scenarios])
      await during(`${scenario.name}, in a session of ${2 * RUNS} messages`, async () => {
        const part = await runIn(await longSession('with a snapshot'), context, scenario, outer);
        const whole = await runIn(await longSession('without'), context, scenario, outer);
        for (const facet of COMPARED)
          expectSame(withoutIds(part.facets[facet]), withoutIds(whole.facets[facet]), `\`${facet}\``, {
            as: 'if everything is read',
            advice: 'Declare more with `looksBack`, or let `enoughHistory` ask for more.',
          });
      });
  },
};

/** Calls get new ids while those in older messages are unknown. */
function withoutIds(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, one) => {
    // Questions have ids made from those of their calls.
    if (key === 'toolCallId' || key === 'pending') return undefined;
    return one?.type === 'tool-call' ? { ...one, id: undefined } : one;
  });
}

function runIn(
  store: Store,
  context: MiddlewareLawContext,
  scenario: KitScenario,
  outer: Middleware | undefined,
) {
  const on = fresh(context, { store, ...(outer && { outer }) });
  return on.run(scenario, { session: on.session('long') });
}

function window(): Middleware {
  return defineMiddleware({
    name: 'kit-window',
    enoughHistory: (latest) => latest.length >= WINDOW,
    transformContext: (messages) => messages.slice(-WINDOW),
  });
}

/** The journal of a long session, made once. */
let journal: Promise<Store> | undefined;

async function madeOnce(): Promise<Store> {
  const store = memoryStore();
  const model = scriptedModel([({ messages }) => `Answer ${messages.length}.`], { repeat: true });
  const session = new Agent({ model, store, clock: fakeClock() }).session('long');
  for (let i = 0; i < RUNS; i++) await session.run(`Question ${i}.`);
  return store;
}

/** A session of its own. With a snapshot it is opened from its end; without one, everything is read. */
async function longSession(snapshot: 'with a snapshot' | 'without'): Promise<Store> {
  journal ??= madeOnce();
  const [made, copy] = [await journal, memoryStore()];
  const entries = (await made.read('long', 1)).map(({ seq: _, ...entry }) => entry);
  const kept = snapshot === 'without' ? undefined : (await made.tail!('long')).snapshot;
  await copy.append('long', 0, entries as readonly NewEntry[], kept);
  return copy;
}
