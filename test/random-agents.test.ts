/**
 * Random agents: several middleware around turns of random calls. However a run is watched, answered or interrupted, it
 * leaves the same history and the same state.
 */
import { pii } from '@allium/guardrails';
import {
  Agent,
  type Decision,
  defineMiddleware,
  defineState,
  type Message,
  type Middleware,
  memoryStore,
  type RunResult,
  type Store,
  type Tool,
  tool,
  toolResult,
} from 'allium';
import { loopGuard } from 'allium/middleware/loop-guard';
import { retry } from 'allium/middleware/retry';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { breakingStore, expectBalanced, expectValidHistory, settle } from './run-checks.js';

const counted = defineState({ name: 'counted', scope: 'session', initial: { turns: 0, calls: 0 } });

const MIDDLEWARE: Readonly<Record<string, () => Middleware>> = {
  pair: () => defineMiddleware({ name: 'pair', beforeModel() {}, afterModel() {}, beforeTool() {} }),
  wrapper: () => defineMiddleware({ name: 'wrapper', process: (_, next) => next() }),
  sink: () => defineMiddleware({ name: 'sink', sink: true, async afterModel() {}, afterTool() {} }),
  retry: () => retry({ minDelayMs: 0 }),
  'retry of tools': () => retry({ name: 'retry-tools', on: 'tool', minDelayMs: 0 }),
  pii: () => pii({ strategy: 'tokenize', key: 'k' }),
  'loop guard': () => loopGuard({ window: 4, repeats: 2 }),
  'judge beside': () =>
    defineMiddleware({ name: 'beside', guard: { on: ['input'], parallel: true, judge: () => settle() } }),
  counting: () =>
    defineMiddleware({
      name: 'counting',
      state: [counted],
      shouldStopAfterTurn: (ctx) =>
        ctx.state.update(counted, (n) => ({ ...n, turns: n.turns + 1 })) as undefined,
      afterToolCall: (ctx) => ctx.state.update(counted, (n) => ({ ...n, calls: n.calls + 1 })),
    }),
};

const TOOLS: Readonly<Record<string, Tool['execute']>> = {
  ok: () => 'ok',
  slow: () => settle().then(() => 'Write to bob@example.org.'),
  throws: async () => {
    await settle();
    throw new Error('Broken.');
  },
  refuses: () => settle().then(() => toolResult({ content: 'Sold out.', isError: true })),
  asks: async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
  quits: () => toolResult({ content: 'Enough.', terminate: true }),
  alone: () => settle().then(() => 'alone'),
};

interface Case {
  readonly turns: readonly (readonly string[])[];
  readonly middleware: readonly string[];
  readonly toolExecution: 'parallel' | 'sequential';
}

const cases: fc.Arbitrary<Case> = fc.record({
  turns: fc.array(
    fc.array(fc.constantFrom(...Object.keys(TOOLS), 'unknown'), { minLength: 1, maxLength: 3 }),
    {
      maxLength: 3,
    },
  ),
  middleware: fc.uniqueArray(fc.constantFrom(...Object.keys(MIDDLEWARE)), { maxLength: 5 }),
  toolExecution: fc.constantFrom('parallel', 'sequential'),
});

interface Setup {
  readonly idempotent: boolean;
  readonly onRequest?: () => Promise<Decision>;
  /** Told each time a tool works, with the key of its call. */
  readonly worked?: (key: string) => void;
}

function sessionOf({ turns, middleware, toolExecution }: Case, store: Store, setup: Setup) {
  const { idempotent, onRequest, worked = () => {} } = setup;
  const script = ({ messages }: { readonly messages: readonly Message[] }) => {
    const at = messages.filter(({ role }) => role === 'assistant').length;
    const before = `Turn ${at}: ann${at}@example.org. `;
    const calls = turns[at]?.map((name, i) => ({ name, id: `c${at}.${i}`, args: { at } }));
    return calls ? toolCalls({ ...calls[0]!, text: before }, ...calls.slice(1)) : text(`${before}Done.`);
  };
  const tools = Object.entries(TOOLS).map(([name, execute]) =>
    tool({
      name,
      description: name,
      input: z.any(),
      idempotent,
      sequential: name === 'alone',
      async execute(args, ctx) {
        const result = await execute(args, ctx);
        worked(ctx.idempotencyKey);
        return result;
      },
    }),
  );
  return new Agent({
    model: scriptedModel([script], { repeat: true }),
    tools,
    toolExecution,
    store,
    middleware: middleware.map((name) => MIDDLEWARE[name]!()),
    ...(onRequest && { onRequest }),
  }).session('s');
}

/** Goes on with the session from wherever its journal stands until the run has ended. Each step is another agent. */
async function finish(which: Case, store: Store, setup: Setup, streamed = false): Promise<RunResult> {
  for (;;) {
    const session = sessionOf(which, store, setup);
    const answers = Object.fromEntries(
      (await session.pending()).map(({ id }) => [id, { type: 'approve' }] as const),
    );
    const begun = (await store.head('s')) > 0;
    let result: RunResult;
    if (streamed) {
      const stream = begun ? session.resumeStream({ answers }) : session.stream('Go.', { runId: 'r' });
      const { events, result: end } = await collect(stream);
      expectBalanced(events);
      result = end!;
    } else result = await (begun ? session.resume({ answers }) : session.run('Go.', { runId: 'r' }));
    if (result.status !== 'suspended') return result;
  }
}

/** What a run leaves behind. */
async function left(which: Case, store: Store, setup: Setup) {
  const messages = await sessionOf(which, store, setup).messages();
  expectValidHistory(messages);
  const cells = (await store.read('s', 1)).flatMap((entry) => (entry.type === 'state' ? [entry] : []));
  return { messages, cells: Object.fromEntries(cells.map(({ cell, value }) => [cell, value])) };
}

/** Those that die are played once for each append. */
const RUNS = { seed: 20, numRuns: 60 };
const DEATHS = { seed: 20, numRuns: 25 };

it('leave the same behind, whether run, streamed, or answered at once', async () => {
  const property = fc.asyncProperty(cases, async (which) => {
    const outcome = async (setup: Setup, streamed: boolean) => {
      const store = memoryStore();
      await finish(which, store, setup, streamed);
      return left(which, store, setup);
    };
    const plain = await outcome({ idempotent: true }, false);
    expect(await outcome({ idempotent: true }, true)).toEqual(plain);
    const onRequest = () => Promise.resolve({ type: 'approve' } as const);
    expect(await outcome({ idempotent: true, onRequest }, false)).toEqual(plain);
  });
  await fc.assert(property, RUNS);
});

it.each([
  ['the same behind', true],
  ['no effect twice', false],
])('leave %s, whichever append the process dies at', async (_, idempotent) => {
  const property = fc.asyncProperty(cases, async (which) => {
    const whole = memoryStore();
    const setup = { idempotent };
    await finish(which, whole, setup);
    const plain = await left(which, whole, setup);
    for (let at = 1; ; at++) {
      const store = memoryStore();
      const broken = breakingStore(store, at);
      const effects: string[] = [];
      const noting = { idempotent, worked: (key: string) => void effects.push(key) };
      await finish(which, broken.store, noting).catch(() => {});
      if (broken.appends() < at) break;
      await settle();
      await finish(which, store, noting).catch(({ code }) => expect(code).toBe('SESSION_UNKNOWN'));
      const outcome = await left(which, store, setup);
      if (idempotent) expect(outcome, `append ${at}`).toEqual(plain);
      else expect(new Set(effects).size, `append ${at}`).toBe(effects.length);
    }
  });
  await fc.assert(property, DEATHS);
});
