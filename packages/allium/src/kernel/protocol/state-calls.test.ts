import { Agent, defineState, type Middleware, memoryStore, tool, toolResult } from 'allium';
import { failWith, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { increment, journal } from '../../../../../test/state-setup.js';

describe('cells around a tool call that fails', () => {
  const cell = defineState({ name: 'count', scope: 'run', initial: 0 });
  const counts: Middleware = {
    name: 'counts',
    beforeTool: (ctx) => ctx.state.update(cell, (n) => n + 1),
  };
  const cases: [string, Middleware[]][] = [
    ['alone', [counts]],
    ['inside a pair', [{ name: 'pair', beforeTool() {} }, counts]],
    [
      'inside a pair that writes',
      [
        {
          name: 'pair',
          beforeTool(ctx) {
            ctx.metadata.x = 1;
          },
        },
        counts,
      ],
    ],
    ['inside a layer that returns next()', [{ name: 'wrap', wrapTool: (_, next) => next() }, counts]],
    [
      'inside a layer that awaits next()',
      [{ name: 'wrap', wrapTool: async (_, next) => void (await next()) }, counts],
    ],
    ['inside a catch', [{ name: 'catch', onError() {} }, counts]],
    [
      'inside two tries',
      [
        {
          name: 'twice',
          async wrapTool(_, next) {
            await next().catch(() => {});
            await next();
          },
        },
        counts,
      ],
    ],
  ];

  it.each(cases)('are written with its result: %s', async (_, middleware) => {
    let seen: number | undefined;
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'broken' }), 'end']),
      tools: [
        tool({
          name: 'broken',
          description: '',
          input: z.any(),
          execute() {
            throw new Error('broken');
          },
        }),
      ],
      state: [cell],
      middleware: [
        ...middleware,
        {
          name: 'looks',
          beforeModel(ctx) {
            seen = ctx.state.get(cell);
          },
        },
      ],
    });
    await agent.run('go');
    expect(seen).toBe(1);
  });

  it('are dropped if a layer answers itself', async () => {
    let seen: number | undefined;
    const settles: Middleware = {
      name: 'settles',
      async wrapTool(ctx, next) {
        await next().catch(() => {
          ctx.result = toolResult({ content: 'fine' });
        });
      },
    };
    const broken = tool({
      name: 'broken',
      description: '',
      input: z.any(),
      execute() {
        throw new Error('broken');
      },
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'broken' }), 'end']),
      tools: [broken],
      state: [cell],
      middleware: [
        settles,
        counts,
        {
          name: 'looks',
          beforeModel(ctx) {
            seen = ctx.state.get(cell);
          },
        },
      ],
    });
    await agent.run('go');
    expect(seen).toBe(0);
  });
});

describe('cells around ctx.generate()', () => {
  const cell = defineState({ name: 'count', scope: 'session', initial: 0 });
  const ofCall = defineState({ name: 'mark', scope: 'call', initial: 'none' });
  const seen: unknown[] = [];
  const asks = (onFail: 'open' | 'closed' = 'closed'): Middleware => ({
    name: 'asks',
    onFail,
    async wrapModel(ctx, next) {
      ctx.state.update(cell, (n) => n + 100);
      ctx.state.set(ofCall, 'outer');
      await ctx.generate(scriptedModel(['helped'], { id: 'helper' }), { messages: '?' });
      seen.push(['after', ctx.state.get(cell), ctx.state.get(ofCall)]);
      if (onFail === 'open') throw new Error('after the call');
      return next();
    },
  });
  const counts: Middleware = {
    name: 'counts',
    state: [cell, ofCall],
    beforeModel(ctx) {
      seen.push([ctx.model.id, ctx.state.get(cell), ctx.state.get(ofCall)]);
      ctx.state.set(ofCall, 'inner');
      ctx.state.update(cell, increment);
    },
  };
  const tries: Middleware = {
    name: 'tries',
    wrapModel: (_, next) => next().catch(() => next()),
  };

  async function written(middleware: Middleware[], model: Parameters<typeof scriptedModel>[0]) {
    seen.length = 0;
    const store = memoryStore();
    await new Agent({ model: scriptedModel(model, { id: 'main' }), middleware, store })
      .session('s')
      .run('go');
    return (await journal(store)).filter((line) => line.startsWith('state'));
  }

  it('inner layers see what the caller wrote, the caller sees what they wrote; cells of a call stay with it', async () => {
    expect(await written([asks(), counts], ['hi'])).toEqual(['state counts:count=102']);
    expect(seen).toEqual([
      ['helper', 100, 'none'],
      ['after', 101, 'outer'],
      ['main', 101, 'outer'],
    ]);
  });

  it('are dropped with an abandoned attempt', async () => {
    expect(await written([tries, asks(), counts], [failWith(new Error('flaky')), 'hi'])).toEqual([
      'state counts:count=102',
    ]);
  });

  it('are kept if the caller fails open: the call was made', async () => {
    expect(await written([asks('open'), counts], ['hi'])).toEqual(['state counts:count=2']);
    const before: Middleware = {
      name: 'before',
      beforeModel(ctx) {
        ctx.metadata.here = true;
        ctx.state.update(cell, (n) => n + 1000);
      },
    };
    expect(await written([before, asks('open'), counts], ['hi'])).toEqual(['state counts:count=1002']);
  });

  it('of calls side by side are all kept', async () => {
    const three: Middleware = {
      name: 'three',
      async beforeModel(ctx) {
        const ask = () => ctx.generate(scriptedModel(['helped']), { messages: '?' });
        await Promise.all([ask(), ask(), ask()]);
        ctx.state.update(cell, (n) => n * 10);
      },
    };
    expect(await written([three, counts], ['hi'])).toEqual(['state counts:count=31']);
  });
});
