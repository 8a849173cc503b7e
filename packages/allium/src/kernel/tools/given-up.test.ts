/** Attempts that are given up end alone; what hooks, guards and layers say in them counts for nothing. */
import { Agent, defineMiddleware, type Middleware, type Model, StopRun, textOf, tool } from 'allium';
import { scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** Never ends by itself. */
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason));
  });

/** The first attempt hangs in `hook`; once it does, another one answers. */
function hedging(seam: 'wrapModel' | 'wrapTool') {
  let hangs = (): void => {};
  const hanging = new Promise<void>((resolve) => {
    hangs = resolve;
  });
  let asked = 0;
  return {
    hanging,
    /** For hooks to await: only the first to ask hangs. */
    async once(signal: AbortSignal): Promise<void> {
      if (++asked > 1) return;
      hangs();
      await untilAborted(signal);
    },
    hedge: defineMiddleware({
      name: 'hedge',
      [seam]: (_: never, next: () => Promise<unknown>) => Promise.any([next(), hanging.then(() => next())]),
    } as Middleware),
  };
}

const model = (): Model => scriptedModel(['answer 1', 'answer 2']);

describe('an attempt that is abandoned while a hook or guard is at work in it', () => {
  const atWork: [string, (once: (signal: AbortSignal) => Promise<void>) => Middleware][] = [
    [
      'convertToLlm',
      (once) => ({
        async convertToLlm(messages, ctx) {
          await once(ctx.signal);
          return messages;
        },
      }),
    ],
    [
      'a guard of the response, for a sink',
      (once) => ({
        sink: true,
        wrapModel: (_, next) => next(),
        guard: { on: ['output'], judge: (_, { context }) => once(context.signal) },
      }),
    ],
  ];

  it.each(atWork)('leaves the run to the other one: %s', async (_, make) => {
    const { hedge, once } = hedging('wrapModel');
    const agent = new Agent({ model: model(), middleware: [hedge, { name: 'inner', ...make(once) }] });
    expect(await agent.run('go')).toMatchObject({
      status: 'done',
      text: expect.stringMatching(/^answer [12]$/),
    });
  });

  it('leaves the run to the next one: a guard of the request, which judges again', async () => {
    const { hanging, once } = hedging('wrapModel');
    let tries = 0;
    const agent = new Agent({
      model: model(),
      middleware: [
        { name: 'again', wrapModel: (_, next) => next().catch(() => next()) },
        {
          name: 'impatient',
          wrapModel(_, next) {
            if (++tries > 1) return next();
            return Promise.race([next(), hanging.then(() => Promise.reject(new Error('too slow')))]);
          },
        },
        { name: 'inner', guard: { on: ['request'], judge: (_, { context }) => once(context.signal) } },
      ],
    });
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'answer 1' });
    expect(tries).toBe(2);
  });

  it('leaves the run to the other one: a tool hook that judges rewritten arguments', async () => {
    const { hedge, once } = hedging('wrapTool');
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'look', args: { n: 1 } }), 'end']),
      tools: [tool({ name: 'look', description: '', input: z.any(), execute: () => 'seen' })],
      middleware: [
        hedge,
        {
          name: 'rewrites',
          wrapTool(ctx, next) {
            ctx.args = { n: 2 };
            return next();
          },
        },
        {
          name: 'judges',
          beforeToolCall: async (ctx) => void (ctx.revision > 0 && (await once(ctx.signal))),
        },
      ],
    });
    const { status, messages } = await agent.run('go');
    expect([status, ...messages.map(textOf)]).toEqual(['done', 'go', '', 'seen', 'end']);
  });

  it.each([
    ['ctx.stop()', (ctx: { stop(reason: 'stopped', why: string): never }) => ctx.stop('stopped', 'gave up')],
    [
      'a thrown StopRun',
      () => {
        throw new StopRun('stopped', 'gave up');
      },
    ],
  ])('ends nothing with %s', async (_, stop) => {
    let calls = 0;
    const slow: Model = {
      provider: 'test',
      id: 'slow',
      async *stream(_request, { signal }) {
        if (++calls === 1) await untilAborted(signal);
        yield { type: 'text', text: 'fast' };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const agent = new Agent({
      model: slow,
      middleware: [
        { name: 'hedge', wrapModel: (_ctx, next) => Promise.any([next(), next()]) },
        {
          name: 'inner',
          async wrapModel(ctx, next) {
            try {
              await next();
            } catch {
              stop(ctx);
            }
          },
        },
      ],
    });
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'fast' });
  });
});

it('an error that onError calls final stays final while attempts overlap', async () => {
  const asked: unknown[] = [];
  let calls = 0;
  const failing: Model = {
    provider: 'test',
    id: 'failing',
    // biome-ignore lint/correctness/useYield: it only fails
    async *stream() {
      throw new Error(`bad key ${++calls}`);
    },
  };
  const agent = new Agent({
    model: failing,
    middleware: [
      { name: 'both', wrapModel: (_, next) => Promise.all([next(), next()]).then(([one]) => one) },
      {
        name: 'outer',
        onError(_, error) {
          asked.push(error);
          return asked.length < 4 ? 'retry' : undefined;
        },
      },
      { name: 'inner', onError: () => 'fail' },
    ],
  });
  await expect(agent.run('go')).rejects.toThrow('bad key 1');
  expect([calls, asked]).toEqual([2, []]);
});
