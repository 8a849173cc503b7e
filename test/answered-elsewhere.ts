/** A run waits for its handler while other handles of the same store answer. For tests of stores. */
import { Agent, type Decision, type RunResult, type Store, textOf, tool } from 'allium';
import { scriptedModel, toolCalls } from 'allium/testing';
import { expect } from 'vitest';
import { z } from 'zod';
import { deferred } from './run-checks.js';

export function payingAgent(store: Store, ran: string[], script: Parameters<typeof scriptedModel>[0] = []) {
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ n: z.number() }),
    execute: ({ n }) => {
      ran.push(`pay ${n}`);
      return `paid ${n}`;
    },
  });
  return new Agent({
    model: scriptedModel(script),
    tools: [pay],
    store,
    middleware: [{ name: 'asks', beforeToolCall: () => ({ ask: { title: 'Pay?' } }) }],
  });
}

/** `open` makes another handle to the same sessions each time, as another process would. */
export async function expectAnswersFromElsewhere(open: () => Store, sessionId: string): Promise<void> {
  const stores = [open(), open(), open()] as const;
  try {
    await aRejectionWakes(stores[0], stores[1], `${sessionId}-reject`);
    await oneOfManyCounts(stores, `${sessionId}-race`);
    await aCancelEnds(stores[0], stores[1], `${sessionId}-cancel`);
  } finally {
    for (const store of stores) await store.close?.();
  }
}

const calls = toolCalls({ name: 'pay', args: { n: 1 }, id: 'c0' });
const resultOf = ({ messages }: RunResult) => messages.filter(({ role }) => role === 'tool').map(textOf);

async function aRejectionWakes(here: Store, there: Store, id: string): Promise<void> {
  const ran: string[] = [];
  const asked = deferred<AbortSignal>();
  const late = deferred<Decision | undefined>();
  const running = payingAgent(here, ran, [calls, 'end'])
    .session(id)
    .run('go', {
      onRequest: (_, { signal }) => {
        asked.resolve(signal);
        return late.promise;
      },
    });
  const signal = await asked.promise;
  const other = payingAgent(there, ran).session(id);
  const [request] = await other.pending();
  await other.answer(request!.id, { type: 'reject', reason: 'No.' });
  const result = await running;
  expect(signal.aborted).toBe(true);
  late.resolve({ type: 'approve' });
  expect(resultOf(result)).toEqual(['No.']);
  expect(ran).toEqual([]);
  await expect(other.answer(request!.id, { type: 'approve' })).rejects.toMatchObject({
    code: 'REQUEST_UNKNOWN',
  });
}

/** All answer at the same moment; those who were told that they were the first are one, and what they said is done. */
async function oneOfManyCounts(stores: readonly [Store, ...Store[]], id: string): Promise<void> {
  for (let round = 0; round < 5; round++) {
    const ran: string[] = [];
    const asked = deferred<void>();
    const live = deferred<Decision | undefined>();
    const session = `${id}-${round}`;
    const signals: AbortSignal[] = [];
    const running = payingAgent(stores[0], ran, [calls, 'end'])
      .session(session)
      .run('go', {
        onRequest: (_, { signal }) => {
          signals.push(signal);
          asked.resolve();
          return live.promise;
        },
      });
    await asked.promise;
    const others = stores.slice(1).map((store) => payingAgent(store, ran).session(session));
    const [request] = await others[0]!.pending();
    live.resolve({ type: 'respond', text: 'live' });
    const told = await Promise.all(
      others.map((other, i) =>
        other.answer(request!.id, { type: 'respond', text: `other ${i}` }).then(
          () => [`other ${i}`],
          () => [],
        ),
      ),
    );
    const accepted = told.flat();
    if (!signals[0]!.aborted) {
      await running;
      if (!signals[0]!.aborted) accepted.push('live');
    }
    expect(resultOf(await running)).toEqual(accepted);
    expect(accepted).toHaveLength(1);
  }
}

async function aCancelEnds(here: Store, there: Store, id: string): Promise<void> {
  const ran: string[] = [];
  const asked = deferred<void>();
  const running = payingAgent(here, ran, [calls, 'end'])
    .session(id)
    .run('go', {
      onRequest: () => {
        asked.resolve();
        return new Promise(() => {});
      },
    });
  const ended = expect(running).rejects.toMatchObject({ code: 'ABORTED', result: { status: 'aborted' } });
  await asked.promise;
  await payingAgent(there, ran).session(id).abort('Enough.');
  await ended;
  expect(ran).toEqual([]);
}
