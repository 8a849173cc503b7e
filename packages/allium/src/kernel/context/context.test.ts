import { Agent, type Middleware, type ModelContext, type ToolContext, textOf, tool } from 'allium';
import { collect, failWith, fakeClock, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CALL_SEAMS, layerAt, trial } from '../../../../../test/seams.js';

const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });

describe('ctx.isInside', () => {
  it('is true only for calls made inside next() of that layer', async () => {
    const seen: Record<string, boolean> = {};
    let around: ModelContext | undefined;
    const ask = scriptedModel(['ok'], { repeat: true });
    const before: Middleware = {
      name: 'before',
      async wrapModel(ctx, next) {
        if (ctx.model === ask) return void (await next());
        seen.outer = ctx.isInside(ctx);
        await Promise.all([next(), ctx.generate(ask, { messages: 'Beside?' })]);
      },
    };
    const guard: Middleware = {
      name: 'guard',
      guard: {
        on: ['request'],
        judge: async ({ text: about }, { context }) => {
          if (about === 'hello') await context.generate(ask, { messages: 'May it?' });
        },
      },
    };
    const layer: Middleware = {
      name: 'layer',
      async wrapModel(ctx, next) {
        if (ctx.model !== ask) around = ctx;
        else seen[textOf(ctx.messages[0]!)] = ctx.isInside(around!);
        await next();
      },
    };
    const inner: Middleware = {
      name: 'inner',
      beforeModel(ctx) {
        if (ctx.model !== ask) seen.inner = ctx.isInside(around!);
      },
    };
    await new Agent({ model: scriptedModel(['hi']), middleware: [before, guard, layer, inner] }).run('hello');
    expect(seen).toEqual({ outer: false, 'Beside?': false, 'May it?': true, inner: true });
  });

  it('is true in a sub-agent inside the tool that called it', async () => {
    const inside: boolean[] = [];
    let around: ToolContext | undefined;
    const watch: Middleware = {
      name: 'watch',
      beforeModel: (ctx) => void (around && inside.push(ctx.isInside(around))),
      async wrapTool(ctx, next) {
        around = ctx;
        await next();
      },
    };
    const child = new Agent({ model: scriptedModel(['done']), middleware: [watch] });
    const tools = [child.asTool({ name: 'child', description: 'A child.' })];
    const model = scriptedModel([toolCalls({ name: 'child', args: { prompt: 'Go.' } }), text('end')]);
    await new Agent({ model, tools, middleware: [watch] }).run('hello');
    expect(inside).toEqual([true, false]);
  });
});

describe('ctx.caller', () => {
  it('names who made a call, for every layer around it, and is undefined for calls of the run itself', async () => {
    const seen: unknown[] = [];
    const note: Middleware = {
      name: 'note',
      beforeModel: (ctx) => void seen.push(ctx.caller?.seam),
      async wrapModel(ctx, next) {
        seen.push(ctx.caller?.seam);
        await next();
      },
    };
    const asks: Middleware = {
      name: 'asks',
      async wrapTool(ctx, next) {
        await ctx.generate(scriptedModel(['ok']), { messages: 'May it?' });
        await next();
      },
    };
    const model = scriptedModel([toolCalls({ name: 'look' }), text('end')]);
    await new Agent({ model, tools: [look], middleware: [asks, note] }).run('hello');
    expect(seen).toEqual([undefined, undefined, 'tool', 'tool', undefined, undefined]);
  });
});

describe('ctx.pausedMs', () => {
  it('is the time a human took to answer, also while the question is open', async () => {
    const clock = fakeClock();
    const seen: number[] = [];
    const wait = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(resolve, ms));
    const asks: Middleware = {
      name: 'asks',
      suspends: true,
      beforeModel: (ctx) => void seen.push(ctx.pausedMs),
      beforeToolCall: (ctx) => ({
        ask: {
          title: 'Sure?',
          async onRequest() {
            await wait(400);
            seen.push(ctx.pausedMs);
            await wait(600);
            return { type: 'approve' };
          },
        },
      }),
      async wrapTool(ctx, next) {
        await wait(50);
        seen.push(ctx.pausedMs);
        return next();
      },
    };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'look' }), 'done']),
      tools: [look],
      clock,
      middleware: [asks],
    });
    const run = agent.run('go');
    await clock.advance(5000);
    expect((await run).text).toBe('done');
    expect(seen).toEqual([0, 400, 1000, 1000]);
  });
});

describe('ctx.generate', () => {
  const helper = () =>
    scriptedModel([text('summary', { inputTokens: 100, outputTokens: 50 })], { id: 'helper' });

  it('runs through the layers inside the caller only', async () => {
    const seen: string[] = [];
    const looking = (name: string): Middleware => ({
      name,
      wrapModel(ctx, next) {
        seen.push(`${name} ${ctx.model.id}`);
        return next();
      },
    });
    const model = helper();
    const calling: Middleware = {
      name: 'calling',
      beforeModel: async (ctx) => void (await ctx.generate(model, { messages: 'sum up' })),
    };
    await new Agent({
      model: scriptedModel(['ok']),
      middleware: [looking('outer'), calling, looking('inner')],
    }).run('go');
    expect(seen).toEqual(['outer scripted', 'inner helper', 'inner scripted']);
  });

  it('knows its place in an after hook, even if another hook ran further in meanwhile', async () => {
    const seen: string[] = [];
    const looking = (name: string): Middleware => ({
      name,
      beforeModel: (ctx) => void seen.push(`${name} ${ctx.model.id}`),
    });
    const model = helper();
    const calling: Middleware = {
      name: 'calling',
      afterModel: async (ctx) => void (await ctx.generate(model, { messages: 'sum up' })),
    };
    const converting: Middleware = { name: 'converting', convertToLlm: (messages) => messages };
    await new Agent({
      model: scriptedModel(['ok']),
      middleware: [looking('outer'), converting, looking('middle'), calling],
    }).run('go');
    expect(seen).toEqual(['outer scripted', 'middle scripted']);
  });

  it.each(['at once', 'later'])(
    'may be called by convertToLlm %s: that call is not converted again',
    async (when) => {
      const seen: string[] = [];
      const describing = scriptedModel(['a cat'], { id: 'describing', repeat: true });
      const model = scriptedModel([toolCalls({ name: 'look' }), 'ok']);
      const helps: Middleware = {
        name: 'helps',
        async wrapModel(ctx, next) {
          seen.push(ctx.model.id!);
          await ctx.generate(describing, { messages: 'from further in' });
          return next();
        },
      };
      const images: Middleware = {
        name: 'images',
        async convertToLlm(messages, ctx) {
          if (when === 'later') await undefined;
          seen.push(`convert for ${ctx.model.id}`);
          await ctx.generate(describing, { messages: 'what is on it?' });
          return messages;
        },
      };
      await new Agent({ model, tools: [look], middleware: [images, helps] }).run('go');
      const turn = ['scripted', 'convert for describing', 'describing', 'convert for scripted', 'describing'];
      expect(seen).toEqual([...turn, ...turn]);
    },
  );

  it('a guard that judges a call of convertToLlm does not convert either', async () => {
    const converted: string[] = [];
    const describing = scriptedModel(['a cat'], { id: 'describing', repeat: true });
    const judging = scriptedModel(['fine'], { id: 'judging', repeat: true });
    const images: Middleware = {
      name: 'images',
      async convertToLlm(messages, ctx) {
        converted.push(ctx.model.id!);
        if (ctx.model.id === 'scripted') await ctx.generate(describing, { messages: 'what is on it?' });
        return messages;
      },
    };
    const asks: Middleware = {
      name: 'asks',
      guard: {
        on: ['request'],
        async judge({ text: sent }, { context }) {
          if (sent === 'what is on it?') await context.generate(judging, { messages: sent });
          return undefined;
        },
      },
    };
    await new Agent({ model: scriptedModel(['ok']), middleware: [images, asks] }).run('go');
    expect(judging.requests).toHaveLength(1);
    expect(converted).toEqual(['scripted']);
  });

  it('sends its own messages, prompt, tools and settings', async () => {
    const model = helper();
    const calling: Middleware = {
      name: 'calling',
      beforeModel: async (ctx) =>
        void (await ctx.generate(model, {
          messages: 'sum up',
          systemPrompt: 'be brief',
          settings: { temperature: 0 },
        })),
    };
    await new Agent({ model: scriptedModel(['ok']), systemPrompt: 'main', middleware: [calling] }).run('go');
    expect(model.requests[0]).toMatchObject({
      systemPrompt: 'be brief',
      tools: [],
      settings: { temperature: 0 },
    });
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['sum up']);
  });

  it("counts in the run's usage and is held to its budget", async () => {
    const calling: Middleware = {
      name: 'calling',
      beforeModel: async (ctx) => void (await ctx.generate(helper(), { messages: 'sum up' })),
    };
    const result = await new Agent({ model: scriptedModel(['ok']), middleware: [calling] }).run('go');
    expect(result.usage.totalTokens).toBe(165);
    const small = await new Agent({
      model: scriptedModel(['ok']),
      middleware: [calling],
      limits: { tokens: 1 },
    }).run('a longer question than one token');
    expect(small.stop.reason).toBe('max_tokens');
  });

  it("carries the caller's signal", async () => {
    const controller = new AbortController();
    const model = scriptedModel([hang()]);
    const calling: Middleware = {
      name: 'calling',
      beforeModel: async (ctx) => void (await ctx.generate(model, { messages: 'sum up' })),
    };
    const run = new Agent({ model: scriptedModel(['ok']), middleware: [calling] }).run('go', {
      signal: controller.signal,
    });
    setImmediate(() => controller.abort());
    await expect(run).rejects.toMatchObject({ code: 'ABORTED' });
    expect(model.aborted).toBe(1);
  });

  it("never reaches the user's stream", async () => {
    const calling: Middleware = {
      name: 'calling',
      afterModel: async (ctx) => void (await ctx.generate(helper(), { messages: 'sum up' })),
    };
    const { events, shown } = await collect(
      new Agent({ model: scriptedModel(['answer']), middleware: [calling] }).stream('go'),
    );
    expect([...shown.values()]).toEqual(['answer']);
    expect(JSON.stringify(events)).not.toContain('summary');
  });

  it('leaves the tools of the turn alone', async () => {
    const { agent } = trial(
      'tool',
      [
        {
          name: 'calling',
          afterModel: async (ctx) => void (await ctx.generate(scriptedModel(['x']), { messages: 'y' })),
        },
      ],
      ['worked'],
    );
    const result = await agent.run('go');
    expect(result.messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(['worked']);
  });

  it("rejects with the error if an inner onError says 'restart': there is no turn to start again", async () => {
    const inside = new Error('down');
    const seen: unknown[] = [];
    const calling: Middleware = {
      name: 'calling',
      onRunEnd: (ctx) =>
        ctx.generate(scriptedModel([failWith(inside)]), { messages: 'x' }).then(
          () => [],
          (error) => void seen.push(error),
        ),
    };
    const result = await new Agent({
      model: scriptedModel(['ok']),
      middleware: [calling, { name: 'restarting', seams: ['model'], onError: () => 'restart' }],
    }).run('go');
    expect(result.status).toBe('done');
    expect(seen).toEqual([inside]);
  });

  it('stops the run when a layer inside it stops', async () => {
    const calling: Middleware = {
      name: 'calling',
      beforeModel: (ctx) =>
        ctx.generate(helper(), { messages: 'x' }).then(
          () => {},
          () => {},
        ),
    };
    const stopping: Middleware = { name: 'stopping', beforeModel: (ctx) => ctx.stop('guardrail', 'no') };
    const model = scriptedModel(['ok']);
    const result = await new Agent({ model, middleware: [calling, stopping] }).run('go');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail', by: 'stopping' } });
    expect(model.requests).toHaveLength(0);
  });
});

describe('ctx.usage', () => {
  it('includes the call just made, already in afterModel', async () => {
    const seen: number[] = [];
    const looking: Middleware = {
      name: 'looking',
      beforeModel: (ctx) => void seen.push(ctx.usage.totalTokens),
      afterModel: (ctx) => void seen.push(ctx.usage.totalTokens),
    };
    await trial('tool', [looking]).run();
    expect(seen).toEqual([0, 15, 15, 30]);
  });

  it('includes every attempt of the call', async () => {
    const seen: number[] = [];
    const again: Middleware = {
      name: 'again',
      async wrapModel(_, next) {
        await next();
        await next();
      },
      afterModel: (ctx) => void seen.push(ctx.usage.totalTokens),
    };
    await trial('model', [again], ['a', 'b']).run();
    expect(seen).toEqual([30]);
  });
});

describe.each(CALL_SEAMS)('ctx.metadata at the %s seam', (seam) => {
  it('belongs to one call: it is empty at the start of the next one', async () => {
    const seen: unknown[] = [];
    const marking: Middleware = {
      name: 'marking',
      beforeModel: (ctx) => {
        seen.push({ ...ctx.metadata });
        ctx.metadata.mark = ctx.turn;
      },
    };
    await trial('tool', [marking]).run();
    expect(seen).toEqual([{}, {}]);
  });

  it('is seen by inner layers; what they add reaches outer ones, what outer ones set stays theirs', async () => {
    const seen: unknown[] = [];
    const outer = layerAt(seam, 'outer', {
      before(ctx) {
        ctx.metadata.mine = 'outer';
      },
      after: (ctx) => void seen.push({ ...ctx.metadata }),
    });
    const inner = layerAt(seam, 'inner', {
      before(ctx) {
        seen.push({ ...ctx.metadata });
        ctx.metadata.mine = 'inner';
        ctx.metadata.added = true;
      },
      after: (ctx) => void seen.push({ ...ctx.metadata }),
    });
    for (const stack of [
      [outer, inner],
      [outer, layerAt(seam, 'between', { wrap: (_, next) => next() }), inner],
    ]) {
      seen.length = 0;
      await trial(seam, stack).run();
      expect(seen).toEqual([
        { mine: 'outer' },
        { mine: 'inner', added: true },
        { mine: 'outer', added: true },
      ]);
    }
  });

  it('stays the same object, so a layer may keep a reference across next()', async () => {
    const seen: unknown[] = [];
    const keeping = layerAt(seam, 'keeping', {
      async wrap(ctx, next) {
        const { metadata } = ctx;
        await next();
        seen.push(metadata.added, metadata === ctx.metadata);
      },
    });
    await trial(seam, [
      keeping,
      layerAt(seam, 'adding', {
        after: (ctx) => {
          ctx.metadata.added = 1;
        },
      }),
    ]).run();
    expect(seen).toEqual([1, true]);
  });

  it('keeps what the chosen attempt added, and nothing of the others', async () => {
    const seen: unknown[] = [];
    const choosing = layerAt(seam, 'choosing', {
      async wrap(_, next) {
        const first = await next();
        await next();
        return first;
      },
      after: (ctx) => void seen.push({ ...ctx.metadata }),
    });
    const adding = layerAt(seam, 'adding', {
      before(ctx) {
        seen.push({ ...ctx.metadata });
        ctx.metadata[`attempt${ctx.attempt}`] = true;
        ctx.metadata.last = ctx.attempt;
      },
    });
    await trial(seam, [choosing, adding], ['a', 'b']).run();
    expect(seen).toEqual([{}, {}, { attempt1: true, last: 1 }]);
  });
});

describe('ctx.forceContinue', () => {
  it('makes one more turn although the model asked for no tool', async () => {
    const force: Middleware = {
      name: 'force',
      afterModel: (ctx) => {
        ctx.forceContinue = ctx.turn === 1;
      },
    };
    const result = await trial(
      'model',
      [{ name: 'outer', wrapModel: (_, next) => next() }, force],
      ['one', 'two'],
    ).run();
    expect(result.result.turns).toBe(2);
  });

  it('counts only from the attempt that was chosen', async () => {
    const choosing = (index: number): Middleware => ({
      name: 'choosing',
      wrapModel: async (_, next) => [await next(), await next()][index]!,
    });
    const force: Middleware = {
      name: 'force',
      afterModel: (ctx) => {
        ctx.forceContinue = ctx.attempt === 1 && ctx.turn === 1;
      },
    };
    expect((await trial('model', [choosing(1), force], ['a', 'b']).run()).result.turns).toBe(1);
    expect((await trial('model', [choosing(0), force], ['a', 'b', 'c', 'd']).run()).result.turns).toBe(2);
  });
});
