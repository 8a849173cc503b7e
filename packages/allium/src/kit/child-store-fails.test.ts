/** A store that fails while sub-agents ask: the run fails as one of the store, and can be resumed. */
import { Agent, memoryStore, type RunError, type Store, tool } from 'allium';
import { approval } from 'allium/middleware/approval';
import { type Answer, scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectValidHistory, storeWith } from '../../../../test/run-checks.js';

/** A model that answers by how many answers there are already, whichever process asks. */
const byTurn = (...answers: Answer[]) =>
  scriptedModel([({ messages }) => answers[messages.filter(({ role }) => role === 'assistant').length]!], {
    repeat: true,
  });

/** A boss who asks two payers at once, each of whom asks a person. */
function firm(store: Store, ran: string[]) {
  const pay = tool({
    name: 'pay',
    description: '',
    input: z.object({}),
    execute: (_, ctx) => {
      ran.push(ctx.sessionId);
      return 'paid';
    },
  });
  const payer = new Agent({
    name: 'payer',
    model: byTurn(toolCalls({ name: 'pay', args: {} }), text('It is paid.')),
    tools: [pay],
    middleware: [approval()],
  });
  const both = toolCalls({ name: 'payer', args: { prompt: 'A' } }, { name: 'payer', args: { prompt: 'B' } });
  return new Agent({
    model: byTurn(both, text('end')),
    tools: [payer.asTool({ name: 'payer', description: '' })],
    store,
  }).session('s');
}

/** After so many ticks; at once for none. */
function later(ticks: number, work: () => unknown): unknown {
  return ticks === 0 ? work() : Promise.resolve().then(() => later(ticks - 1, work));
}

const METHODS = ['read', 'head', 'append', 'take', 'post'] as const;

/** Fails at the `at`-th call of the method; `forGood`: and at all later ones, each time with another error. */
function failing(
  store: Store,
  method: (typeof METHODS)[number],
  at: number,
  forGood: boolean,
  waits: boolean,
) {
  const seen = { calls: 0 };
  const call = store[method] as (...args: unknown[]) => unknown;
  const down = storeWith(store, {
    [method]: (...args: unknown[]) => {
      const n = ++seen.calls;
      const fails = n === at || (forGood && n > at);
      return later(waits ? n % 4 : 0, () => {
        if (fails) throw new Error(`no server (${n})`);
        return call.apply(store, args);
      });
    },
  });
  return { down, seen };
}

describe.each([
  [false, false],
  [false, true],
  [true, false],
  [true, true],
])('while a person is asked in place, for good: %s, with answers that take a while: %s', (forGood, waits) => {
  it.each(METHODS)('%s', async (method) => {
    for (let at = 1, more = true; more; at++) {
      const store = memoryStore();
      const ran: string[] = [];
      const { down, seen } = failing(store, method, at, forGood, waits);
      const approve = () => ({ type: 'approve' }) as const;
      const outcome = await firm(down, ran)
        .run('go', { onRequest: approve })
        .then(
          ({ status }) => status,
          ({ code }: RunError) => code,
        );
      more = seen.calls >= at;
      // A look at the inbox that fails is made again; everything else counts.
      const expected = more && outcome !== 'done' ? 'STORE_FAILED' : 'done';
      expect([at, outcome]).toEqual([at, expected]);
      if (outcome === 'done') continue;
      const session = firm(store, ran);
      const { status } =
        (await store.head('s')) === 0
          ? await session.run('go', { onRequest: approve })
          : await session.resume({ onRequest: approve });
      expect([at, status]).toEqual([at, 'done']);
      expectValidHistory(await session.messages());
      // Nothing ran twice, and no sub-agent was ended because the store of its caller failed.
      expect([at, new Set(ran).size, ran.length]).toEqual([at, 2, 2]);
    }
  });
});

/** Fails at these calls, whichever method is called, and each time with another error. */
function failingAt(store: Store, from: number, fails: readonly boolean[]): Store {
  let calls = 0;
  const methods = METHODS.map((method) => {
    const call = store[method] as (...args: unknown[]) => unknown;
    return [
      method,
      (...args: unknown[]) => {
        const n = calls++;
        if (n >= from && fails[(n - from) % fails.length]) throw new Error(`no server (${n})`);
        return call.apply(store, args);
      },
    ];
  });
  return storeWith(store, Object.fromEntries(methods));
}

it("a run fails with the store's error, however often and in whichever session the store fails", async () => {
  const approve = () => ({ type: 'approve' }) as const;
  const pattern = fc.tuple(
    fc.integer({ min: 0, max: 60 }),
    fc.array(fc.boolean(), { minLength: 2, maxLength: 8 }),
  );
  await fc.assert(
    fc.asyncProperty(pattern, async ([from, fails]) => {
      const store = memoryStore();
      const outcome = await firm(failingAt(store, from, fails), [])
        .run('go', { onRequest: approve })
        .then(
          ({ status }) => status,
          ({ code }: RunError) => code,
        );
      expect(['done', 'STORE_FAILED']).toContain(outcome);
    }),
    { numRuns: 400, seed: 20 },
  );
});
