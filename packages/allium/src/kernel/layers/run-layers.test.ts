// Layers around a run: wrapRun and afterRun.

import {
  Agent,
  attribution,
  defineState,
  type Middleware,
  memoryStore,
  type RunContext,
  RunError,
  type RunResult,
  textOf,
  tool,
} from 'allium';
import { fakeClock, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { runResult } from '../../../../../test/seams.js';

describe('around a run', () => {
  const agentWith = (
    middleware: Middleware[],
    script: Parameters<typeof scriptedModel>[0] = ['ok'],
    options = {},
  ) => new Agent({ model: scriptedModel(script), middleware, ...options });

  it('puts the first in the list outermost, with afterRun in reverse', async () => {
    const log: string[] = [];
    const whole = (name: string): Middleware => ({
      name,
      beforeRun: () => void log.push(`${name} before`),
      wrapRun: async (_, next) => {
        log.push(`${name} in`);
        await next();
        log.push(`${name} out`);
      },
      afterRun: () => void log.push(`${name} after`),
    });
    await agentWith([whole('a'), whole('b')]).run('go');
    expect(log).toEqual(['a before', 'a in', 'b before', 'b in', 'b out', 'b after', 'a out', 'a after']);
  });

  it('calls afterRun with the result, or with the error', async () => {
    const seen: unknown[] = [];
    const looking: Middleware = {
      name: 'looking',
      afterRun: (ctx) => void seen.push(ctx.result?.status, ctx.error),
    };
    await agentWith([looking]).run('go');
    const broken = new Error('broken');
    await expect(
      agentWith([looking], [() => ({ parts: [], error: broken })]).run('go'),
    ).rejects.toBeInstanceOf(RunError);
    expect(seen).toEqual(['done', undefined, undefined, broken]);
  });

  it('calls afterRun of every layer even if one of them and the run failed; the first error counts', async () => {
    const first = new Error('the run failed');
    const called: string[] = [];
    const failing = (name: string): Middleware => ({
      name,
      afterRun() {
        called.push(name);
        throw new Error(`${name} failed too`);
      },
    });
    const error = await agentWith([failing('outer'), failing('inner')], [() => ({ parts: [], error: first })])
      .run('go')
      .catch((thrown: RunError) => thrown);
    expect(called).toEqual(['inner', 'outer']);
    expect(error).toMatchObject({ cause: first });
    expect((error as RunError).result.changes.map(({ by, what }) => `${by}: ${what}`)).toEqual([
      'inner: afterRun failed: inner failed too',
      'outer: afterRun failed: outer failed too',
    ]);
  });

  it('calls afterRun although its own beforeRun failed', async () => {
    const own = new Error('no way');
    const afterRun = vi.fn();
    const failing: Middleware = {
      name: 'failing',
      beforeRun() {
        throw own;
      },
      afterRun: (ctx) => afterRun(ctx.error),
    };
    await expect(agentWith([failing]).run('go')).rejects.toMatchObject({
      code: 'MIDDLEWARE_ERROR',
      cause: own,
    });
    expect(afterRun).toHaveBeenCalledExactlyOnceWith(own);
  });

  it('gives afterRun a fresh signal although the run was aborted', async () => {
    const controller = new AbortController();
    const seen: boolean[] = [];
    const agent = agentWith(
      [
        {
          name: 'looking',
          beforeModel: () => controller.abort(),
          afterRun: (ctx) => void seen.push(ctx.signal.aborted),
        },
      ],
      ['never'],
    );
    await expect(agent.run('go', { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
    expect(seen).toEqual([false]);
  });

  it('limits afterRun by teardownTimeoutMs and aborts its signal', async () => {
    const clock = fakeClock();
    let signal: AbortSignal | undefined;
    const slow: Middleware = {
      name: 'slow',
      afterRun(ctx) {
        signal = ctx.signal;
        return new Promise(() => {});
      },
    };
    const run = agentWith([slow], ['ok'], { clock, teardownTimeoutMs: 100 })
      .run('go')
      .catch((error: unknown) => error);
    await clock.advance(100);
    expect(await run).toMatchObject({
      code: 'MIDDLEWARE_ERROR',
      message: expect.stringContaining('afterRun of "slow" took longer than 100 ms'),
    });
    expect(signal?.aborted).toBe(true);
    expect(clock.pending).toBe(0);
  });

  it('goes on with the result when an afterRun that fails open is too slow or throws', async () => {
    const clock = fakeClock();
    const slow: Middleware = { name: 'slow', onFail: 'open', afterRun: () => new Promise(() => {}) };
    const throwing: Middleware = {
      name: 'throwing',
      onFail: 'open',
      afterRun(ctx) {
        ctx.result = { ...ctx.result!, text: 'half done' };
        throw new Error('broken');
      },
    };
    const run = agentWith([slow, throwing], ['ok'], { clock }).run('go');
    await clock.advance(5000);
    expect(await run).toMatchObject({ status: 'done', text: 'ok' });
  });

  it('fails the run when an afterRun that fails closed throws', async () => {
    const own = new Error('broken');
    const throwing: Middleware = {
      name: 'throwing',
      afterRun() {
        throw own;
      },
    };
    await expect(agentWith([throwing]).run('go')).rejects.toMatchObject({
      code: 'MIDDLEWARE_ERROR',
      cause: own,
    });
    expect(attribution(own)).toEqual({ middleware: 'throwing', hook: 'afterRun' });
  });

  it('lets afterRun and wrapRun replace the result, and beforeRun preset it', async () => {
    const after: Middleware = {
      name: 'after',
      afterRun: (ctx) => {
        ctx.result = { ...ctx.result!, text: `${ctx.result!.text} after` };
      },
    };
    const wrap: Middleware = {
      name: 'wrap',
      wrapRun: async (_, next) => ({ ...(await next()), text: 'wrapped' }),
    };
    expect((await agentWith([after, wrap]).run('go')).text).toBe('wrapped after');
    const model = scriptedModel([]);
    const preset: Middleware = {
      name: 'preset',
      beforeRun: (ctx) => {
        ctx.result = runResult(ctx, 'preset');
      },
    };
    expect((await new Agent({ model, middleware: [after, preset] }).run('go')).text).toBe('preset after');
    expect(model.requests).toHaveLength(0);
  });

  it("goes on with the run's result when a wrapRun that fails open throws after next()", async () => {
    const open: Middleware = {
      name: 'open',
      onFail: 'open',
      async wrapRun(_, next) {
        await next();
        throw new Error('broken');
      },
    };
    expect(await agentWith([open]).run('go')).toMatchObject({ status: 'done', text: 'ok' });
  });

  it('refuses a second next() at the run seam with NEXT_TWICE, also when nobody awaits it', async () => {
    for (const second of [
      (next: () => Promise<unknown>) => next(),
      (next: () => Promise<unknown>) => void next(),
    ]) {
      const model = scriptedModel(['one', 'two']);
      const twice: Middleware = {
        name: 'twice',
        async wrapRun(_, next) {
          await next();
          await second(next);
        },
      };
      await expect(new Agent({ model, middleware: [twice] }).run('go')).rejects.toMatchObject({
        code: 'NEXT_TWICE',
        message: expect.stringContaining('"twice"'),
      });
      expect(model.requests).toHaveLength(1);
    }
  });

  it('aborts the run that a wrapRun left pending when it resolved with a result of its own', async () => {
    const model = scriptedModel([() => ({ parts: [], hangs: true })]);
    const impatient: Middleware = {
      name: 'impatient',
      async wrapRun(ctx, next) {
        void next();
        await new Promise((resolve) => setImmediate(resolve));
        return runResult(ctx, 'enough');
      },
    };
    const result = await new Agent({ model, middleware: [impatient] }).run('go');
    expect(result.text).toBe('enough');
    expect(model.aborted).toBe(1);
  });

  it.each<[string, unknown, string]>([
    ['no result', 'fine', 'expected a run result, got "fine"'],
    ['no result', { text: 'fine' }, 'expected a run result, got {"text":"fine"}'],
    ['part of one', { status: 'done', text: 'fine' }, 'lacks a valid stop, messages, usage'],
    ['a wrong reason', { stop: { reason: 'tired' } }, 'lacks a valid stop. Spread the one next() returned'],
    ['a wrong list', { messages: ['hi'], queued: undefined }, 'lacks a valid messages, queued. Spread'],
  ])('refuses a result that is %s, and says whose it is', async (kind, given, told) => {
    const made = (ctx: RunContext) =>
      (kind.startsWith('a ') ? { ...runResult(ctx, 'fine'), ...(given as object) } : given) as RunResult;
    const hooks: Middleware[] = [
      { name: 'made', wrapRun: made },
      { name: 'made', wrapRun: (ctx, next) => next().then(() => made(ctx)) },
      { name: 'made', beforeRun: (ctx) => void Object.assign(ctx, { result: made(ctx) }) },
      { name: 'made', afterRun: (ctx) => void Object.assign(ctx, { result: made(ctx) }) },
    ];
    for (const hook of hooks)
      await expect(agentWith([{ name: 'outer', afterRun() {} }, hook]).run('go')).rejects.toMatchObject({
        code: 'INVALID_HOOK_RESULT',
        message: expect.stringMatching(/Run of "made": /),
        cause: { message: expect.stringContaining(told) },
      });
  });

  it('uses the input a layer assigned', async () => {
    const model = scriptedModel(['ok']);
    const changing: Middleware = {
      name: 'changing',
      beforeRun: (ctx) => {
        ctx.input = ctx.input.map(
          (message) => ({ ...message, content: [{ type: 'text', text: 'changed' }] }) as never,
        );
      },
    };
    const result = await new Agent({ model, middleware: [changing] }).run('go');
    expect(result.messages.map(textOf)).toEqual(['changed', 'ok']);
  });
});

describe('a wrapRun that forgets', () => {
  it('to await next() gets an error that says so', async () => {
    const model = scriptedModel([() => ({ parts: [], hangs: true })]);
    const forgetful: Middleware = { name: 'forgetful', wrapRun: async (_, next) => void next() };
    await expect(new Agent({ model, middleware: [forgetful] }).run('go')).rejects.toMatchObject({
      code: 'MISSING_AWAIT',
      message: expect.stringContaining('wrapRun of "forgetful"'),
    });
  });

  it('to call next() gets an error that says so', async () => {
    await expect(
      new Agent({ model: scriptedModel([]), middleware: [{ name: 'idle', wrapRun() {} }] }).run('go'),
    ).rejects.toMatchObject({
      code: 'NO_RESULT',
      message: expect.stringContaining('"idle" neither called next() nor set a result'),
    });
  });

  it('to rethrow an error gets an error that says so, with the original as cause', async () => {
    const inside = new Error('inside');
    const swallowing: Middleware = {
      name: 'swallowing',
      wrapRun: (_, next) =>
        next().then(
          () => {},
          () => {},
        ),
    };
    const error = await new Agent({
      model: scriptedModel([() => ({ parts: [], error: inside })]),
      middleware: [swallowing],
    })
      .run('go')
      .catch((thrown: RunError) => thrown);
    expect(error).toMatchObject({ code: 'NO_RESULT', cause: { code: 'NO_RESULT', cause: inside } });
  });

  it.each(['wrapRun', 'wrapModel', 'wrapTool'])(
    'that %s makes the inner context itself is told so',
    async (hook) => {
      const agent = new Agent({
        model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), 'end']),
        tools: [tool({ name: 'add', description: '', input: z.any(), execute: () => '3' })],
        middleware: [{ name: 'odd', [hook]: (ctx: never, next: (ctx: never) => unknown) => next(ctx) }],
      });
      const told = await agent.run('go').then(
        ({ messages }) => messages.map(textOf).join('\n'),
        (error) => String(error.message),
      );
      expect(told).toMatch(
        /next\(\) at the (run|model|tool) seam was given a context, but makes its own\. Write next\(\)\./,
      );
    },
  );

  it.each(['wrapRun', 'wrapModel', 'wrapTool'])('that %s returned its context is told so', async (hook) => {
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), 'end']),
      tools: [tool({ name: 'add', description: '', input: z.any(), execute: () => '3' })],
      middleware: [
        {
          name: 'odd',
          [hook]: async (ctx: never, next: () => Promise<unknown>) => {
            await next();
            return ctx;
          },
        },
      ],
    });
    const told = await agent.run('go').then(
      ({ messages }) => messages.map(textOf).join('\n'),
      (error) => String(error.message),
    );
    expect(told).toContain('it returned its context. Return a result, or nothing.');
  });

  it('that a run takes no override is told so', async () => {
    await expect(
      new Agent({
        model: scriptedModel([]),
        middleware: [{ name: 'odd', wrapRun: (_, next) => next({ input: [] } as never) }],
      }).run('go'),
    ).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('next() at the run seam takes nothing'),
    });
  });
});

describe('a run that is stopped', () => {
  it.each([1, 2, 3])(
    'gives its result to each of %i run layers, and keeps what they write',
    async (count) => {
      const cell = defineState({ name: 'count', scope: 'session', initial: 0 });
      const store = memoryStore();
      const seen: unknown[] = [];
      const around = (name: string): Middleware => ({
        name,
        async wrapRun(ctx, next) {
          ctx.state.update(cell, (n) => n + 1);
          const result = await next();
          ctx.state.update(cell, (n) => n + 10);
          seen.push([name, result.stop.reason, ctx.result === result]);
        },
      });
      const agent = new Agent({
        model: scriptedModel([toolCalls({ name: 'add' }), toolCalls({ name: 'add' })]),
        tools: [tool({ name: 'add', description: '', input: z.any(), execute: () => '3' })],
        limits: { turns: 1 },
        state: [cell],
        store,
        middleware: ['c', 'b', 'a'].slice(0, count).map(around),
      });
      expect(await agent.session('s').run('go')).toMatchObject({
        status: 'stopped',
        stop: { reason: 'max_turns' },
      });
      expect(seen).toEqual(
        ['c', 'b', 'a']
          .slice(0, count)
          .reverse()
          .map((name) => [name, 'max_turns', true]),
      );
      let kept: number | undefined;
      const reads: Middleware = {
        name: 'reads',
        beforeRun(ctx) {
          kept = ctx.state.get(cell);
        },
      };
      const later = new Agent({ model: scriptedModel(['x']), store, state: [cell], middleware: [reads] });
      await later.session('s').run('again');
      expect(kept).toBe(11 * count);
    },
  );
});

describe('afterRun', () => {
  const ending: Readonly<Record<string, Middleware>> = {
    'throws in wrapRun': {
      wrapRun() {
        throw new Error('no');
      },
    },
    'throws in beforeRun': {
      beforeRun() {
        throw new Error('no');
      },
    },
    'stops in beforeRun': { beforeRun: (ctx) => ctx.stop('stopped', 'no') },
  };
  const telling = (name: string, log: string[], more: Middleware = {}): Middleware => ({
    name,
    afterRun: () => void log.push(name),
    ...more,
  });

  it.each(Object.entries(ending))('of a layer fires if the layer itself %s', async (_, more) => {
    const log: string[] = [];
    const middleware = [telling('outer', log), telling('own', log, more), telling('inner', log)];
    await new Agent({ model: scriptedModel(['ok']), middleware }).run('go').catch(() => {});
    // Not of the inner one, which was never reached.
    expect(log).toEqual(['own', 'outer']);
  });
});
