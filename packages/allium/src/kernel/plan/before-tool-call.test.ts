// beforeToolCall: the first block stops.

import { Agent, type Middleware, memoryStore, type ToolContext, tool, toolResult } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { call, echo, echoOptions, named, resultText, spansOf } from '../../../../../test/rules-setup.js';
import { watched } from '../../../../../test/run-checks.js';

describe('beforeToolCall: first block stops', () => {
  it('answers a blocked call with its reason as an error, and asks nobody after it', async () => {
    const ran: string[] = [];
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [tool({ ...echoOptions(), execute: () => ran.push('tool') })],
      middleware: [
        named('allows', { beforeToolCall: () => void ran.push('allows') }),
        named('blocks', { beforeToolCall: () => ({ block: true, reason: 'Not today.' }) }),
        named('after', { beforeToolCall: () => void ran.push('after') }),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(ran).toEqual(['allows']);
    expect(result.messages[2]).toMatchObject({ isError: true, content: [{ text: 'Not today.' }] });
    expect(result.changes).toMatchObject([{ by: 'blocks', what: 'blocked echo' }]);
  });

  it('judges the whole batch in call order before anything executes', async () => {
    const order: string[] = [];
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'echo', args: { text: 'a' } }, { name: 'echo', args: { text: 'b' }, id: 'b' }),
        text('end'),
      ]),
      tools: [tool({ ...echoOptions(), execute: ({ text: said }) => order.push(`run ${said}`) })],
      middleware: [
        {
          beforeToolCall: async ({ args }) => {
            await Promise.resolve();
            order.push(`judge ${args.text}`);
          },
        },
      ],
    });
    await watched(agent, 'go');
    expect(order).toEqual(['judge a', 'judge b', 'run a', 'run b']);
  });

  it('does not end the chain at an ask: a later block wins and nobody is asked', async () => {
    let asked = 0;
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [
        { beforeToolCall: () => ({ ask: { title: 'May I?' } }) },
        { beforeToolCall: () => ({ block: true, reason: 'Never.' }) },
      ],
      onRequest: () => {
        asked++;
        return { type: 'approve' };
      },
    });
    const { result } = await watched(agent, 'go');
    expect(asked).toBe(0);
    expect(resultText(result.messages)).toEqual(['Never.']);
  });

  it('answers a call with { result } instead of running it, unless a later hook blocks', async () => {
    const run = async (...later: Middleware[]) => {
      const agent = new Agent({
        model: scriptedModel([call(), text('end')]),
        tools: [echo],
        middleware: [
          {
            beforeToolCall: () => ({ result: toolResult({ content: 'preset', details: { from: 'cache' } }) }),
          },
          ...later,
        ],
      });
      return (await watched(agent, 'go')).result.messages[2];
    };
    expect(await run()).toMatchObject({
      isError: false,
      content: [{ text: 'preset' }],
      details: { from: 'cache' },
    });
    expect(await run({ beforeToolCall: () => ({ block: true, reason: 'No.' }) })).toMatchObject({
      isError: true,
    });
    expect(await run({ beforeToolCall: () => ({ result: 'second' }) })).toMatchObject({
      content: [{ text: 'preset' }],
    });
  });

  it('validates rewritten arguments again, as raw input', async () => {
    const parsed: unknown[] = [];
    const double = tool({
      name: 'echo',
      description: '',
      input: z.object({ text: z.string().transform((said) => said + said) }),
      execute: ({ text: said }) => parsed.push(said) && said,
    });
    const agent = new Agent({
      model: scriptedModel([call('a'), text('end')]),
      tools: [double],
      middleware: [
        {
          beforeToolCall: (ctx) =>
            ctx.revision === 0 ? { args: { text: `${(ctx.rawArgs as { text: string }).text}b` } } : undefined,
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(resultText(result.messages)).toEqual(['abab']);
  });

  it('blocks a call whose rewritten arguments are invalid', async () => {
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [named('breaks', { beforeToolCall: () => ({ args: { text: 5 } }) })],
    });
    const { result } = await watched(agent, 'go');
    expect(result.messages[2]).toMatchObject({ isError: true });
    expect(resultText(result.messages)[0]).toMatch(
      /"breaks" wrote were refused.\nInvalid arguments for "echo":\ntext:/,
    );
  });

  it('runs the hooks before the rewriter again with ctx.revision > 0, and the rewriter itself only once', async () => {
    const seen: string[] = [];
    const note = (name: string) => (ctx: ToolContext) =>
      void seen.push(`${name} ${ctx.revision} ${ctx.args.text}`);
    const agent = new Agent({
      model: scriptedModel([call('a'), text('end')]),
      tools: [echo],
      middleware: [
        { beforeToolCall: note('first') },
        {
          beforeToolCall: (ctx) => {
            note('rewriter')(ctx);
            return { args: { text: `${ctx.args.text}!` } };
          },
        },
        { beforeToolCall: note('last') },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(seen).toEqual(['first 0 a', 'rewriter 0 a', 'first 1 a!', 'last 1 a!']);
    expect(resultText(result.messages)).toEqual(['a!']);
  });

  it('lets a hook before the rewriter block what the rewriter wrote', async () => {
    const agent = new Agent({
      model: scriptedModel([call('fine'), text('end')]),
      tools: [echo],
      middleware: [
        {
          beforeToolCall: ({ args }) => (args.text === 'evil' ? { block: true, reason: 'Evil.' } : undefined),
        },
        { beforeToolCall: () => ({ args: { text: 'evil' } }) },
      ],
    });
    expect(resultText((await watched(agent, 'go')).result.messages)).toEqual(['Evil.']);
  });

  it('drops the ask or result of a hook that decides otherwise about rewritten arguments', async () => {
    const agent = new Agent({
      model: scriptedModel([call('a'), text('end')]),
      tools: [echo],
      middleware: [
        { beforeToolCall: (ctx) => (ctx.revision === 0 ? { result: 'stale' } : undefined) },
        { beforeToolCall: (ctx) => (ctx.revision === 0 ? { ask: {} } : undefined) },
        { beforeToolCall: () => ({ args: { text: 'b' } }) },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result.status).toBe('done');
    expect(resultText(result.messages)).toEqual(['b']);
  });

  it('allows 8 rewrites and blocks at the ninth', async () => {
    const rewriting = (times: number) => {
      let done = 0;
      const more = (): Middleware => ({
        beforeToolCall: (ctx) => (done++ < times ? { args: { text: `${ctx.args.text}.` } } : undefined),
      });
      return new Agent({
        model: scriptedModel([call(''), text('end')]),
        tools: [echo],
        middleware: [more(), more()],
      });
    };
    expect(resultText((await watched(rewriting(8), 'go')).result.messages)).toEqual(['........']);
    const { result } = await watched(rewriting(Number.POSITIVE_INFINITY), 'go');
    expect(resultText(result.messages)).toEqual(['Not run: its arguments were rewritten more than 8 times.']);
  });

  it('has guards judge what a hook rewrote', async () => {
    const ran: unknown[] = [];
    const agent = new Agent({
      model: scriptedModel([call('fine'), text('end')]),
      tools: [tool({ ...echoOptions(), execute: (args) => ran.push(args) })],
      middleware: [
        named('guard', {
          guard: {
            on: ['tool-args'],
            judge: ({ text: said }) =>
              said.includes('evil') ? { type: 'deny', reason: 'Denied.' } : undefined,
          },
        }),
        { beforeToolCall: (ctx) => (ctx.revision === 0 ? { args: { text: 'evil' } } : undefined) },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(ran).toEqual([]);
    expect(resultText(result.messages)[0]).toContain('Denied.');
  });

  it('treats arguments that a hook assigns like those it returns: validated once, judged by all', async () => {
    const seen: unknown[] = [];
    const count = tool({
      name: 'count',
      description: '',
      input: z.object({ n: z.string().transform(Number) }),
      execute: ({ n }) => seen.push(n) && typeof n,
    });
    const run = async (n: unknown, refuse = false) => {
      seen.length = 0;
      const middleware: Middleware[] = [
        named('first', {
          beforeToolCall: (ctx) => {
            seen.push(ctx.args);
            return refuse && ctx.revision > 0 ? { block: true, reason: 'no' } : undefined;
          },
        }),
        named('writer', {
          beforeToolCall: (ctx) => {
            ctx.args = { n };
          },
        }),
      ];
      const model = scriptedModel([toolCalls({ name: 'count', args: { n: '1' } }), 'end']);
      return resultText(
        (await watched(new Agent({ model, tools: [count], middleware }), 'go')).result.messages,
      );
    };
    expect(await run('5')).toEqual(['number']);
    expect(seen).toEqual([{ n: 1 }, { n: 5 }, 5]);
    expect(await run('5', true)).toEqual(['no']);
    expect((await run(5))[0]).toContain('the arguments that "writer" wrote were refused');
    expect(seen).toEqual([{ n: 1 }]);
  });

  it.each<[string, (ctx: ToolContext) => ReturnType<NonNullable<Middleware['beforeToolCall']>>]>([
    ['refuses the call', () => ({ block: true, reason: 'no' })],
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['writes without end', () => undefined],
  ])('journals nothing that a hook assigned and no guard has judged: it %s', async (_, answer) => {
    const store = memoryStore();
    const writer: Middleware = {
      beforeToolCall: (ctx) => {
        ctx.args = { text: 'secret' };
        return answer(ctx);
      },
    };
    const middleware = [
      named('guard', { guard: { on: ['tool-args'], find: spansOf('secret') } }),
      named('one', writer),
      named('two', writer),
    ];
    const agent = new Agent({ model: scriptedModel([call(), 'end']), tools: [echo], middleware, store });
    const { result, events } = await watched(agent.session('s'), 'go');
    expect(resultText(result.messages)).toHaveLength(1);
    expect(JSON.stringify([await store.read('s', 1), events])).not.toContain('secret');
  });

  it('does not parse arguments twice if a hook returns the parsed ones', async () => {
    const count = tool({
      name: 'count',
      description: '',
      input: z.object({ n: z.number().transform((n) => n + 1) }),
      execute: ({ n }) => n,
    });
    const model = scriptedModel([toolCalls({ name: 'count', args: { n: 1 } }), 'end']);
    const middleware = [named('same', { beforeToolCall: (ctx) => ({ args: ctx.args }) })];
    const { result } = await watched(new Agent({ model, tools: [count], middleware }), 'go');
    expect(resultText(result.messages)).toEqual(['2']);
  });

  it.each([
    ['result', 'beforeToolCall'],
    ['skip', 'beforeToolCall'],
    ['result', 'resolveToolCall'],
    ['skip', 'resolveToolCall'],
  ])('reports a hook that sets ctx.%s in %s, and blames no other hook or layer', async (field, hook) => {
    const setter = named('setter', {
      [hook]: (...given: unknown[]) => {
        const ctx = given.at(-1) as ToolContext;
        if (field === 'skip') ctx.skip = true;
        ctx.result = toolResult({ content: 'preset' });
      },
    });
    const other = named('other', { beforeTool: () => {}, beforeToolCall: () => undefined });
    for (const middleware of [[setter], [setter, other]]) {
      const model = scriptedModel([call(), 'end']);
      const { result } = await watched(new Agent({ model, tools: [echo], middleware }), 'go');
      expect(resultText(result.messages)[0]).toContain(`middleware "setter" failed: ${hook} of "setter"`);
      const open = { ...setter, onFail: 'open' as const };
      const again = scriptedModel([call(), 'end']);
      const skipped = new Agent({
        model: again,
        tools: [echo],
        middleware: [open, ...middleware.slice(1)],
      });
      expect(resultText((await skipped.run('go')).messages)).toEqual(['hi']);
    }
  });

  it('turns an exception into an error result of that call; its siblings run', async () => {
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'echo', args: { text: 'a' } }, { name: 'echo', args: { text: 'b' }, id: 'b' }),
        text('end'),
      ]),
      tools: [echo],
      middleware: [
        named('fragile', {
          beforeToolCall: ({ args }) => {
            if (args.text === 'a') throw new Error('broken');
          },
        }),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result.status).toBe('done');
    expect(resultText(result.messages)).toEqual([
      '"echo" was not completed: middleware "fragile" failed: broken',
      'b',
    ]);
  });

  it("skips a hook with onFail: 'open' that throws or returns the wrong shape", async () => {
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [
        { name: 'throws', onFail: 'open', beforeToolCall: () => Promise.reject(new Error('down')) },
        { name: 'odd', onFail: 'open', beforeToolCall: () => ({ blok: true }) as never },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(resultText(result.messages)).toEqual(['hi']);
    expect(result.changes.map(({ by }) => by)).toEqual(['throws', 'odd']);
  });
});
