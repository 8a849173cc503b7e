import {
  Aborted,
  Agent,
  type Context,
  isControl,
  type Middleware,
  memoryStore,
  StopRun,
  textOf,
  tool,
} from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { answerAt, CALL_SEAMS, type CallSeam, layerAt, runResult, trial } from '../../../../../test/seams.js';

const swallowing = (seam: CallSeam, seen: unknown[] = []): Middleware =>
  layerAt(seam, 'swallowing', {
    wrap: (_, next) =>
      next().catch((error: unknown) => {
        seen.push(error);
        return answerAt(seam, 'as if nothing had happened');
      }),
  });

/** What `new StopRun()` of another copy of the package makes. */
function foreignStop(message: string): Error {
  return Object.assign(new Error(message), {
    name: 'StopRun',
    reason: 'guardrail',
    [Symbol.for('allium.control')]: 'stop',
  });
}

describe.each(CALL_SEAMS)('a control signal at the %s seam', (seam) => {
  const stops: Record<string, (ctx: Context) => never> = {
    'ctx.stop()': (ctx) => ctx.stop('guardrail', 'enough'),
    'throw new StopRun()': () => {
      throw new StopRun('guardrail', 'enough');
    },
    'a StopRun of another copy of the package': () => {
      throw foreignStop('enough');
    },
  };

  describe.each(Object.entries(stops))('from %s', (_, stop) => {
    it.each(['before', 'wrap', 'after'] as const)(
      'stops the run from a %s hook and says who did',
      async (hook) => {
        const stopping = layerAt(seam, 'stopping', {
          [hook]: async (ctx: any, next?: () => Promise<unknown>) => {
            await next?.();
            stop(ctx);
          },
        });
        const { result } = await trial(seam, [layerAt(seam, 'outer', { after() {} }), stopping]).run();
        expect(result).toMatchObject({
          status: 'stopped',
          stop: { reason: 'guardrail', message: 'enough', by: 'stopping' },
        });
      },
    );

    it('stops the run from onError', async () => {
      const { result } = await trial(
        seam,
        [{ name: 'stopping', seams: [seam], onError: (ctx) => stop(ctx) }],
        [new Error('x')],
      ).run();
      expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail', by: 'stopping' } });
    });

    it('is never given to onError and never retried', async () => {
      const onError = vi.fn(() => 'retry' as const);
      const inner = vi.fn(stop);
      const { result } = await trial(seam, [
        { name: 'retry', seams: [seam], onError },
        layerAt(seam, 'stopping', { wrap: inner }),
      ]).run();
      expect(result.status).toBe('stopped');
      expect(onError).not.toHaveBeenCalled();
      expect(inner).toHaveBeenCalledTimes(1);
    });

    it('is latched: the run ends even if a layer swallowed it, and nothing is tried again', async () => {
      const seen: unknown[] = [];
      const one = trial(seam, [swallowing(seam, seen), layerAt(seam, 'stopping', { before: stop })]);
      const { result } = await one.run();
      expect(result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', message: 'enough', by: 'stopping' },
      });
      expect(isControl(seen[0])).toBe(true);
      expect(one.calls).toBe(0);
    });

    it('is latched: an error thrown in its place does not win', async () => {
      const replacing = layerAt(seam, 'replacing', {
        wrap: (_, next) =>
          next().catch(() => {
            throw new Error('something else');
          }),
      });
      const { result } = await trial(seam, [replacing, layerAt(seam, 'stopping', { before: stop })]).run();
      expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail' } });
    });

    it('does not fail open', async () => {
      const stopping = layerAt(seam, 'stopping', { onFail: 'open', before: stop });
      expect((await trial(seam, [stopping]).run()).result.status).toBe('stopped');
    });
  });

  it('holds when the hook that called ctx.stop() swallowed it itself', async () => {
    for (const hook of ['before', 'after', 'wrap'] as const) {
      const stopping = layerAt(seam, 'stopping', {
        [hook]: async (ctx: any, next?: () => Promise<unknown>) => {
          try {
            ctx.stop('stopped', 'enough');
          } catch {
            await next?.();
          }
        },
      });
      const { result } = await trial(seam, [stopping]).run();
      expect(result).toMatchObject({ status: 'stopped', stop: { message: 'enough', by: 'stopping' } });
    }
  });

  it('leaves a valid history: every tool call has exactly one result', async () => {
    const store = memoryStore();
    const { agent } = trial(seam, [layerAt(seam, 'stopping', { before: (ctx) => ctx.stop() })], ['ok'], {
      store,
    });
    const result = await agent.session('s').run('go');
    const calls = result.messages.flatMap((message) =>
      message.role === 'assistant' ? message.content.filter((part) => part.type === 'tool-call') : [],
    );
    const answers = result.messages.filter((message) => message.role === 'tool');
    expect(answers.map(({ toolCallId }) => toolCallId)).toEqual(
      calls.map((call) => (call as { id: string }).id),
    );
  });

  it('an abort ends the run although a layer swallowed it', async () => {
    const controller = new AbortController();
    const seen: unknown[] = [];
    const aborting = layerAt(seam, 'aborting', {
      wrap(ctx) {
        controller.abort(new Error('user left'));
        ctx.signal.throwIfAborted();
      },
    });
    const { agent } = trial(seam, [swallowing(seam, seen), aborting]);
    await expect(agent.run('go', { signal: controller.signal })).rejects.toMatchObject({
      code: 'ABORTED',
      cause: { message: 'user left' },
    });
    expect(seen[0]).toBeInstanceOf(Aborted);
  });
});

describe('ctx.stop() at the run seam', () => {
  it.each(['beforeRun', 'wrapRun', 'afterRun'] as const)('stops from %s', async (hook) => {
    const stopping: Middleware = { name: 'stopping', [hook]: (ctx: any) => ctx.stop('stopped', 'not today') };
    const model = scriptedModel(['ok']);
    const result = await new Agent({ model, middleware: [{ name: 'outer', afterRun() {} }, stopping] }).run(
      'go',
    );
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'stopped', message: 'not today', by: 'stopping' },
    });
    expect(model.requests).toHaveLength(hook === 'afterRun' ? 1 : 0);
  });

  it('cannot be swallowed by a wrapRun further out', async () => {
    const swallowingRun: Middleware = {
      name: 'swallowing',
      wrapRun: (ctx, next) => next().catch(() => runResult(ctx, 'fine')),
    };
    const stopping: Middleware = { name: 'stopping', beforeRun: (ctx) => ctx.stop('guardrail', 'no') };
    const result = await new Agent({ model: scriptedModel([]), middleware: [swallowingRun, stopping] }).run(
      'go',
    );
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail', by: 'stopping' } });
  });
});

it.each(['because', 'suspended', 'aborted', 'error'])('ctx.stop() rejects the reason %j', (reason) => {
  expect(() => new StopRun(reason as never)).toThrow(
    new RegExp(
      `Expected \`reason\` to be what a run can be stopped for \\(final, stopped, .*\\), got "${reason}"`,
    ),
  );
});

it('a stop from a tool in a parallel batch lets running calls finish, and the model is not called again', async () => {
  const model = scriptedModel([toolCalls({ name: 'work' }, { name: 'stop' }), text('never')]);
  const input = z.object({});
  const stop = tool({
    name: 'stop',
    description: 'Stops.',
    input,
    execute: (_, ctx) => ctx.stop('stopped', 'tool said so'),
  });
  const work = tool({ name: 'work', description: 'Works.', input, execute: async () => 'worked' });
  const result = await new Agent({ model, tools: [stop, work] }).run('go');
  expect(result).toMatchObject({ status: 'stopped', stop: { message: 'tool said so' } });
  expect(result.messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual([
    'worked',
    expect.stringContaining('tool said so'),
  ]);
  expect(model.requests).toHaveLength(1);
});
