import { Agent, assistantMessage, attribution, type Middleware, textOf, tool } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { answerAt, CALL_SEAMS, layerAt, trial } from '../../../../../test/seams.js';

describe.each(CALL_SEAMS)('layers at the %s seam', (seam) => {
  const logging = (name: string, log: string[]): Middleware =>
    layerAt(seam, name, {
      before: () => void log.push(`${name} before`),
      after: () => void log.push(`${name} after`),
      wrap: async (_, next) => {
        log.push(`${name} in`);
        await next();
        log.push(`${name} out`);
      },
    });

  it('puts the first in the list outermost', async () => {
    const log: string[] = [];
    const wrap = (name: string) =>
      layerAt(seam, name, {
        wrap: async (_, next) => {
          log.push(`${name} in`);
          await next();
          log.push(`${name} out`);
        },
      });
    await trial(seam, [wrap('a'), wrap('b'), wrap('c')]).run();
    expect(log).toEqual(['a in', 'b in', 'c in', 'c out', 'b out', 'a out']);
  });

  it('runs before hooks in list order and after hooks in reverse', async () => {
    const log: string[] = [];
    const pair = (name: string, asynchronous = false) =>
      layerAt(seam, name, {
        before() {
          log.push(`${name} before`);
          return asynchronous ? Promise.resolve() : undefined;
        },
        after() {
          log.push(`${name} after`);
          return asynchronous ? Promise.resolve() : undefined;
        },
      });
    await trial(seam, [pair('a'), pair('b', true), pair('c')]).run();
    expect(log).toEqual(['a before', 'b before', 'c before', 'c after', 'b after', 'a after']);
  });

  it('takes process, before, wrap and after of one middleware as one layer', async () => {
    const log: string[] = [];
    const whole = (name: string): Middleware => ({
      ...logging(name, log),
      seams: [seam],
      process: async (_, next) => {
        log.push(`${name} process`);
        await next();
        log.push(`${name} processed`);
      },
    });
    await trial(seam, [whole('a'), whole('b')]).run();
    const into = (name: string) => [`${name} process`, `${name} before`, `${name} in`];
    const out = (name: string) => [`${name} out`, `${name} after`, `${name} processed`];
    expect(log).toEqual([...into('a'), ...into('b'), ...out('b'), ...out('a')]);
  });

  it('mixes wraps and pairs of different middleware in list order', async () => {
    const log: string[] = [];
    const pair = (name: string) =>
      layerAt(seam, name, {
        before: () => void log.push(`${name} before`),
        after: () => void log.push(`${name} after`),
      });
    await trial(seam, [pair('a'), logging('b', log), pair('c')]).run();
    expect(log).toEqual([
      'a before',
      'b before',
      'b in',
      'c before',
      'c after',
      'b out',
      'b after',
      'a after',
    ]);
  });

  it('calls process only at the seams it lists', async () => {
    const seen: string[] = [];
    const process = async (ctx: { seam: string }, next: () => Promise<unknown>) => {
      seen.push(ctx.seam);
      await next();
    };
    await trial('tool', [{ name: 'listed', seams: [seam], process }]).run();
    expect(new Set(seen)).toEqual(new Set([seam]));
    seen.length = 0;
    await trial('tool', [{ name: 'everywhere', process }]).run();
    expect(new Set(seen)).toEqual(new Set(['run', 'model', 'tool']));
  });

  it('short-circuits on a preset result: inner layers do not run, after hooks of this layer and every outer one do', async () => {
    const log: string[] = [];
    const preset = layerAt(seam, 'preset', {
      before(ctx) {
        ctx.result = answerAt(seam, 'preset');
        if (seam === 'tool') ctx.skip = true;
      },
      after: (ctx) => void log.push(`preset after ${textOf(ctx.result)}`),
    });
    const outer = layerAt(seam, 'outer', {
      after: (ctx) => void log.push(`outer after ${textOf(ctx.result)}`),
    });
    const one = trial(seam, [outer, preset, logging('inner', log)]);
    const { text: answer } = await one.run();
    expect(answer).toBe('preset');
    expect(one.calls).toBe(0);
    expect(log).toEqual(['preset after preset', 'outer after preset']);
  });

  it('runs after hooks only when there is a result', async () => {
    const after = vi.fn();
    const { failed } = await trial(seam, [layerAt(seam, 'a', { after })], [new Error('broken')]).run();
    expect(failed).toBe(true);
    expect(after).not.toHaveBeenCalled();
  });

  it('replaces the result for outer layers when an after hook throws', async () => {
    const outerAfter = vi.fn();
    const seen: unknown[] = [];
    const own = new Error('after failed');
    const outer = layerAt(seam, 'outer', {
      after: outerAfter,
      wrap: async (_, next) => {
        await next().catch((error: unknown) => {
          seen.push(error);
          throw error;
        });
      },
    });
    const failing = layerAt(seam, 'failing', {
      after: () => {
        throw own;
      },
    });
    const { failed } = await trial(seam, [outer, failing]).run();
    expect(failed).toBe(true);
    expect(seen).toEqual([own]);
    expect(outerAfter).not.toHaveBeenCalled();
    expect(attribution(own)).toEqual({
      middleware: 'failing',
      hook: seam === 'model' ? 'afterModel' : 'afterTool',
    });
  });

  it('gives outer layers the result that an after hook replaced', async () => {
    const seen: string[] = [];
    const outer = layerAt(seam, 'outer', { after: (ctx) => void seen.push(textOf(ctx.result)) });
    const replacing = layerAt(seam, 'replacing', {
      after(ctx) {
        ctx.result = answerAt(seam, `${textOf(ctx.result)}!`);
      },
    });
    const outcome = await trial(seam, [outer, replacing]).run();
    expect(outcome.text).toBe('ok!');
    expect(seen).toEqual(['ok!']);
    expect(outcome.result.changes).toContainEqual({
      turn: 1,
      by: 'replacing',
      what: `replaced the ${seam} result`,
    });
  });

  describe("with onFail: 'open'", () => {
    const broken = new Error('own mistake');

    it('rolls back what a failing before hook assigned and goes on', async () => {
      const seen: unknown[] = [];
      const open = layerAt(seam, 'open', {
        onFail: 'open',
        before(ctx) {
          ctx.metadata.left = 'behind';
          if (seam === 'model') ctx.systemPrompt = 'changed';
          else ctx.args = { n: 99 };
          throw broken;
        },
      });
      const inner = layerAt(seam, 'inner', {
        before: (ctx) => void seen.push(ctx.metadata.left, seam === 'model' ? ctx.systemPrompt : ctx.args.n),
      });
      const { text: answer, result } = await trial(seam, [open, inner]).run();
      expect(answer).toBe('ok');
      expect(seen).toEqual([undefined, seam === 'model' ? '' : 1]);
      const hook = seam === 'model' ? 'beforeModel' : 'beforeTool';
      expect(result.changes).toContainEqual({
        turn: 1,
        by: 'open',
        what: `${hook} failed and was skipped: own mistake`,
      });
    });

    it('does not short-circuit on the preset of a before hook that then failed', async () => {
      const open = layerAt(seam, 'open', {
        onFail: 'open',
        async before(ctx) {
          ctx.result = answerAt(seam, 'half done');
          ctx.skip = true;
          await Promise.resolve();
          throw broken;
        },
      });
      const one = trial(seam, [open]);
      expect((await one.run()).text).toBe('ok');
      expect(one.calls).toBe(1);
    });

    it('rolls back what a failing after hook assigned; the earlier result goes on', async () => {
      const open = layerAt(seam, 'open', {
        onFail: 'open',
        after(ctx) {
          ctx.result = answerAt(seam, 'half done');
          throw broken;
        },
      });
      expect((await trial(seam, [open]).run()).text).toBe('ok');
    });

    it('keeps the result of the attempt when a wrap fails after it', async () => {
      const open = layerAt(seam, 'open', {
        onFail: 'open',
        async wrap(ctx, next) {
          await next();
          ctx.result = answerAt(seam, 'half done');
          throw broken;
        },
      });
      const one = trial(seam, [open]);
      expect((await one.run()).text).toBe('ok');
      expect(one.calls).toBe(1);
    });

    it('goes on as if the layer were not there if a wrap fails before next()', async () => {
      const open = layerAt(seam, 'open', {
        onFail: 'open',
        wrap() {
          throw broken;
        },
      });
      expect((await trial(seam, [open]).run()).text).toBe('ok');
    });

    it('waits for the attempt that a failing wrap left pending', async () => {
      const open = layerAt(seam, 'open', {
        onFail: 'open',
        wrap(_, next) {
          void next();
          throw broken;
        },
      });
      const one = trial(seam, [open]);
      expect((await one.run()).text).toBe('ok');
      expect(one.calls).toBe(1);
    });

    it('never takes an error from next() as its own', async () => {
      const inside = new Error('from inside');
      const open = layerAt(seam, 'open', { onFail: 'open', wrap: (_, next) => next() });
      const one = trial(seam, [open], [inside, 'second']);
      const { failed, cause } = await one.run();
      expect(failed).toBe(true);
      expect(one.calls).toBe(1);
      if (seam === 'model') expect(cause).toBe(inside);
    });
  });

  it('fails closed by default: a run error at the model seam, an error result without the content at the tool seam', async () => {
    const own = new Error('own mistake');
    for (const hook of ['before', 'wrap', 'after'] as const) {
      const failing = layerAt(seam, 'failing', {
        [hook]: async (_: unknown, next?: () => Promise<unknown>) => {
          await next?.();
          throw own;
        },
      });
      const { failed, cause, text: shown, result } = await trial(seam, [failing], ['secret']).run();
      expect(failed).toBe(true);
      expect(shown).toContain('own mistake');
      expect(shown).not.toContain('secret');
      if (seam === 'model') expect(cause).toBe(own);
      else expect([result.status, result.text]).toEqual(['done', 'done']);
    }
  });

  it('rejects a before or after hook that returns something, naming it', async () => {
    for (const hook of ['before', 'after'] as const) {
      for (const value of [1, Promise.resolve(1)]) {
        const { failed, text: shown } = await trial(seam, [
          layerAt(seam, 'talkative', { [hook]: () => value }),
        ]).run();
        expect(failed).toBe(true);
        expect(shown).toContain(
          `${hook}${seam === 'model' ? 'Model' : 'Tool'} of "talkative" returned 1; it returns nothing.`,
        );
      }
    }
  });

  it('freezes what a layer sets as the result', async () => {
    let seen: any;
    const setting = layerAt(seam, 'setting', {
      wrap: (ctx) => {
        ctx.result = answerAt(seam, 'made');
      },
    });
    const outer = layerAt(seam, 'outer', {
      after: (ctx) => {
        seen = ctx.result;
      },
    });
    await trial(seam, [outer, setting]).run();
    expect(Object.isFrozen(seen) && Object.isFrozen(seen.content) && Object.isFrozen(seen.content[0])).toBe(
      true,
    );
  });

  it('hands the same result, frozen, to every layer', async () => {
    const seen: object[] = [];
    const looking = (name: string) => layerAt(seam, name, { after: (ctx) => void seen.push(ctx.result) });
    await trial(seam, [looking('a'), looking('b')]).run();
    expect(seen[0]).toBe(seen[1]);
    expect(Object.isFrozen(seen[0])).toBe(true);
  });

  it('lets a layer change the request for what is inside and not for what is outside', async () => {
    const seen: unknown[] = [];
    const read = (ctx: any) => (seam === 'model' ? ctx.systemPrompt : ctx.timeoutMs);
    const looking = (name: string) =>
      layerAt(seam, name, {
        before: (ctx) => void seen.push(read(ctx)),
        after: (ctx) => void seen.push(read(ctx)),
      });
    const changing = layerAt(seam, 'changing', {
      before(ctx) {
        if (seam === 'model') ctx.systemPrompt = 'changed';
        else ctx.timeoutMs = 1234;
      },
    });
    await trial(seam, [looking('outer'), changing, looking('inner')]).run();
    const [before, after] = seam === 'model' ? ['', 'changed'] : [undefined, 1234];
    expect(seen).toEqual([before, after, after, before]);
  });
});

describe('a tool result set by a layer', () => {
  it('may be anything a tool may return, and is a result for outer layers', async () => {
    let seen: any;
    const outer: Middleware = {
      name: 'outer',
      afterTool: (ctx) => {
        seen = ctx.result;
      },
    };
    const inner: Middleware = { name: 'inner', wrapTool: () => ({ sum: 3 }) as never };
    const { text: shown } = await trial('tool', [outer, inner]).run();
    expect(shown).toBe('{"sum":3}');
    expect(seen).toEqual({ content: [{ type: 'text', text: '{"sum":3}' }], isError: false });
  });

  it('may have text for its content, as toolResult() takes it', async () => {
    const blocks: Middleware = {
      name: 'blocks',
      wrapTool: () => ({ content: 'no', isError: true }) as never,
    };
    expect(await trial('tool', [blocks]).run()).toMatchObject({ failed: true, text: 'no' });
    const shorter: Middleware = {
      name: 'shorter',
      wrapTool: async (_, next) => ({ ...(await next()), content: 'short' }) as never,
    };
    expect(await trial('tool', [shorter]).run()).toMatchObject({ failed: false, text: 'short' });
  });

  it('is required if ctx.skip is set', async () => {
    const { failed, text: shown } = await trial('tool', [
      {
        name: 'skipping',
        beforeTool: (ctx) => {
          ctx.skip = true;
        },
      },
    ]).run();
    expect(failed).toBe(true);
    expect(shown).toContain('beforeTool of "skipping": it left no result.');
  });
});

it('a response that is not one is rejected with what was received', async () => {
  const { cause } = await trial('model', [{ name: 'odd', wrapModel: () => 'text' as never }]).run();
  expect(cause).toMatchObject({
    code: 'INVALID_HOOK_RESULT',
    message: expect.stringContaining('got "text"'),
  });
  expect(attribution(cause)).toEqual({ middleware: 'odd', hook: 'wrapModel' });
});

describe('what a layer writes is what the call uses', () => {
  const named = (name: string, execute = () => `${name} ran`) =>
    tool({ name, description: name, input: z.object({}), execute });

  it('really removes a tool that a layer removed', async () => {
    const model = scriptedModel([toolCalls({ name: 'danger' }), text('done')]);
    const execute = vi.fn(() => 'ran');
    const agent = new Agent({
      model,
      tools: [named('safe'), named('danger', execute)],
      middleware: [
        {
          name: 'narrow',
          beforeModel: (ctx) => {
            ctx.tools = ctx.tools.filter(({ name }) => name !== 'danger');
          },
        },
      ],
    });
    const result = await agent.run('go');
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['safe']);
    expect(execute).not.toHaveBeenCalled();
    expect(textOf(result.messages[2]!)).toContain('There is no tool "danger". Available: safe.');
  });

  it('runs the implementation a brought tool carries', async () => {
    const model = scriptedModel([toolCalls({ name: 'brought' }), text('done')]);
    const agent = new Agent({
      model,
      middleware: [
        { name: 'bringing', wrapModel: (ctx, next) => next({ tools: [...ctx.tools, named('brought')] }) },
      ],
    });
    const result = await agent.run('go');
    expect(textOf(result.messages[2]!)).toBe('brought ran');
  });

  it('sends the messages, prompt, settings and model a layer assigned', async () => {
    const [unused, used] = [scriptedModel([]), scriptedModel(['ok'])];
    const agent = new Agent({
      model: unused,
      middleware: [
        {
          name: 'all',
          beforeModel(ctx) {
            ctx.messages = ctx.messages.slice(-1);
            ctx.systemPrompt = 'be brief';
            ctx.settings = { temperature: 0 };
            ctx.model = used;
          },
        },
      ],
    });
    const result = await agent.run(['one', 'two']);
    expect(result.messages).toHaveLength(3);
    expect(used.requests[0]).toMatchObject({ systemPrompt: 'be brief', settings: { temperature: 0 } });
    expect(used.requests[0]?.messages.map(textOf)).toEqual(['two']);
  });

  const pay = (execute: (args: { amount: number }) => string) =>
    tool({ name: 'pay', description: 'Pays.', input: z.object({ amount: z.number() }), execute });

  it('validates arguments that a layer changed', async () => {
    const execute = vi.fn(() => 'paid');
    const model = scriptedModel([toolCalls({ name: 'pay', args: { amount: 1 } }), text('done')]);
    const agent = new Agent({
      model,
      tools: [pay(execute)],
      middleware: [
        {
          name: 'changing',
          beforeTool: (ctx) => {
            ctx.args = { amount: 'much' };
          },
        },
      ],
    });
    const result = await agent.run('go');
    expect(execute).not.toHaveBeenCalled();
    expect(textOf(result.messages[2]!)).toContain('Invalid arguments for "pay"');
  });

  it('judges arguments that a layer changed again', async () => {
    const execute = vi.fn(() => 'paid');
    const judged: number[] = [];
    const model = scriptedModel([toolCalls({ name: 'pay', args: { amount: 1 } }), text('done')]);
    const agent = new Agent({
      model,
      tools: [pay(execute)],
      middleware: [
        {
          name: 'limit',
          beforeToolCall: (ctx) => {
            judged.push(ctx.args.amount);
            return ctx.args.amount > 10 ? { block: true, reason: 'too much' } : undefined;
          },
        },
        { name: 'changing', wrapTool: (_, next) => next({ args: { amount: 1000 } }) },
      ],
    });
    const result = await agent.run('go');
    expect(judged).toEqual([1, 1000]);
    expect(execute).not.toHaveBeenCalled();
    expect(textOf(result.messages[2]!)).toContain('too much');
  });

  it('does not count an approval for other arguments', async () => {
    const execute = vi.fn(({ amount }: { amount: number }) => `paid ${amount}`);
    const asked: string[] = [];
    const model = scriptedModel([toolCalls({ name: 'pay', args: { amount: 1 } }), text('done')]);
    const agent = new Agent({
      model,
      tools: [pay(execute)],
      onRequest: (request) => {
        asked.push(request.arguments);
        return request.arguments === '{"amount":1}'
          ? { type: 'approve' }
          : { type: 'reject', reason: 'never agreed to' };
      },
      middleware: [
        { name: 'approval', suspends: true, beforeToolCall: () => ({ ask: { title: 'Pay?' } }) },
        {
          name: 'changing',
          beforeTool: (ctx) => {
            ctx.args = { amount: 1000 };
          },
        },
      ],
    });
    const result = await agent.run('go');
    expect(asked).toEqual(['{"amount":1}', '{"amount":1000}']);
    expect(execute).not.toHaveBeenCalled();
    expect(textOf(result.messages[2]!)).toContain('never agreed to');
  });

  it('keeps the changed arguments inside: outer layers still see theirs', async () => {
    const seen: number[] = [];
    const model = scriptedModel([toolCalls({ name: 'pay', args: { amount: 1 } }), text('done')]);
    const agent = new Agent({
      model,
      tools: [pay(({ amount }) => `paid ${amount}`)],
      middleware: [
        { name: 'outer', afterTool: (ctx) => void seen.push(ctx.args.amount, ctx.revision) },
        {
          name: 'changing',
          beforeTool: (ctx) => {
            ctx.args = { amount: 2 };
          },
        },
        { name: 'inner', afterTool: (ctx) => void seen.push(ctx.args.amount, ctx.revision) },
      ],
    });
    const result = await agent.run('go');
    expect(textOf(result.messages[2]!)).toBe('paid 2');
    expect(seen).toEqual([2, 1, 1, 0]);
  });
});

it('a preset response does not count in the usage', async () => {
  const model = scriptedModel([]);
  const agent = new Agent({
    model,
    middleware: [
      {
        name: 'cache',
        beforeModel: (ctx) => {
          ctx.response = assistantMessage('cached', {
            usage: { inputTokens: 5, outputTokens: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 10 },
          });
        },
      },
    ],
  });
  const result = await agent.run('go');
  expect(result.text).toBe('cached');
  expect(result.usage.totalTokens).toBe(0);
});

describe('a sink', () => {
  const guarding: Middleware = {
    name: 'guarding',
    guard: {
      on: ['output', 'tool-result'],
      find: (text) => [...text.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
    },
  };

  it.each(CALL_SEAMS)(
    'is given what the guards let through at the %s seam, wherever it stands; others see what came from further in',
    async (seam) => {
      const seen: string[] = [];
      const looking = (name: string, sink: boolean, parts: 'after' | 'wrap') =>
        layerAt(seam, name, {
          sink,
          ...(parts === 'after'
            ? { after: (ctx: any) => void seen.push(`${name}: ${textOf(ctx.result)}`) }
            : {
                wrap: async (_: unknown, next: () => Promise<any>) =>
                  void seen.push(`${name}: ${textOf(await next())}`),
              }),
        });
      const { text: answer } = await trial(
        seam,
        [
          guarding,
          looking('plain', false, 'after'),
          looking('inner sink', true, 'after'),
          looking('innermost sink', true, 'wrap'),
          looking('raw', false, 'wrap'),
        ],
        ['a secret'],
      ).run();
      expect(seen).toEqual([
        'raw: a secret',
        'innermost sink: a [redacted]',
        'inner sink: a [redacted]',
        'plain: a [redacted]',
      ]);
      expect(answer).toBe('a [redacted]');
    },
  );
});
