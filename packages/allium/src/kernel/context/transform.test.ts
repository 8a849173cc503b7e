import {
  Agent,
  assistantMessage,
  attribution,
  type Middleware,
  type Model,
  type ModelContext,
  type ModelPart,
  type RunError,
  type StreamTransform,
  textOf,
  tool,
} from 'allium';
import { chunks, collect, failWith, scriptedModel } from 'allium/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { trial } from '../../../../../test/seams.js';

type Emit = (part: ModelPart) => void;

const _look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });

describe('ctx.transform', () => {
  const appending = (mark: string, log: string[] = []): StreamTransform => ({
    part(part, emit) {
      if (part.type === 'text') emit({ ...part, text: `${part.text}${mark}` });
      else emit(part);
    },
    end: () => void log.push(mark),
  });
  const marking = (name: string, mark: string): Middleware => ({
    name,
    beforeModel: (ctx) => ctx.transform(() => appending(mark)),
  });

  it('is applied inside-out: the innermost layer transforms first', async () => {
    const { text: answer } = await trial('model', [marking('outer', '1'), marking('inner', '2')]).run();
    expect(answer).toBe('ok21');
  });

  it('gives each layer the response as it reaches that layer', async () => {
    const seen: string[] = [];
    const looking = (name: string, mark: string): Middleware => ({
      ...marking(name, mark),
      afterModel: (ctx) => void seen.push(textOf(ctx.response!)),
    });
    await trial('model', [looking('outer', '1'), looking('inner', '2')]).run();
    expect(seen).toEqual(['ok2', 'ok21']);
  });

  it('is registered from wrap and process as well', async () => {
    const wrapping: Middleware = {
      name: 'wrapping',
      async wrapModel(ctx, next) {
        ctx.transform(() => appending('!'));
        return { ...(await next()), metadata: { wrapped: true } };
      },
    };
    const { text: answer, result } = await trial('model', [marking('outer', '?'), wrapping]).run();
    expect(answer).toBe('ok!?');
    expect(result.messages[1]?.metadata).toEqual({ wrapped: true });
  });

  it('is created again for each attempt', async () => {
    let made = 0;
    const counting: Middleware = {
      name: 'counting',
      beforeModel: (ctx) =>
        ctx.transform(() => {
          made++;
          let chunk = 0;
          return {
            part: (part, emit) =>
              emit(part.type === 'text' ? { ...part, text: `${part.text}${++chunk}` } : part),
          };
        }),
    };
    const retry: Middleware = { name: 'retry', onError: () => 'retry' };
    const { text: answer } = await trial('model', [counting, retry], [new Error('x'), 'ok']).run();
    expect(answer).toBe('ok1');
    expect(made).toBe(2);
  });

  it('applies to cached, preset and replaced responses too', async () => {
    const answers: Record<string, Middleware> = {
      preset: {
        name: 'preset',
        beforeModel: (ctx) => {
          ctx.response = assistantMessage('ok');
        },
      },
      cached: { name: 'cached', wrapModel: () => assistantMessage('ok') },
      replaced: {
        name: 'replaced',
        afterModel: (ctx) => {
          ctx.response = assistantMessage('ok');
        },
      },
    };
    for (const answering of Object.values(answers)) {
      expect((await trial('model', [marking('outer', '!'), answering], ['raw']).run()).text).toBe('ok!');
    }
  });

  it.each(['live', 'retried', 'preset'])(
    'makes the final message equal to what was streamed: %s',
    async (kind) => {
      const inner: Record<string, Middleware[]> = {
        live: [],
        retried: [{ name: 'retry', onError: () => 'retry' }],
        preset: [
          {
            name: 'preset',
            beforeModel: (ctx) => {
              ctx.response = assistantMessage('one two');
            },
          },
        ],
      };
      const script =
        kind === 'retried'
          ? [failWith(new Error('cut'), 'one'), chunks('one ', 'two')]
          : [chunks('one ', 'two')];
      const agent = new Agent({
        model: scriptedModel(script),
        middleware: [marking('a', '1'), ...inner[kind]!, marking('b', '2')],
      });
      const { shown, result } = await collect(agent.stream('go'));
      expect(result!.text).toContain('1');
      expect([...shown.values()]).toEqual([result!.text]);
    },
  );

  it('ends its transforms before the stream is finished', async () => {
    const holding: Middleware = {
      name: 'holding',
      beforeModel: (ctx: ModelContext) =>
        ctx.transform(() => {
          let held = '';
          return {
            part(part, emit) {
              if (part.type === 'text') held += part.text;
              else emit(part);
            },
            end: (emit) => emit({ type: 'text', text: held.toUpperCase() }),
          };
        }),
    };
    const { shown, result } = await collect(
      new Agent({ model: scriptedModel([chunks('a', 'b', 'c')]), middleware: [holding] }).stream('go'),
    );
    expect(result!.text).toBe('ABC');
    expect([...shown.values()]).toEqual(['ABC']);
  });

  it('rejects what is not a factory', async () => {
    const { cause } = await trial('model', [
      { name: 'odd', beforeModel: (ctx) => ctx.transform(appending('!') as never) },
    ]).run();
    expect(cause).toMatchObject({
      code: 'INVALID_HOOK_RESULT',
      message: expect.stringContaining('ctx.transform() takes a function'),
    });
  });

  describe('does not wait for anybody', () => {
    const soon = () => new Promise<void>((resolve) => setImmediate(resolve));
    const transforming = (factory: () => unknown, model: Model = scriptedModel([chunks('a', 'b', 'c')])) =>
      new Agent({
        model,
        middleware: [{ name: 'slow', beforeModel: (ctx) => ctx.transform(factory as () => StreamTransform) }],
      });
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    beforeEach(() => {
      unhandled.length = 0;
      process.on('unhandledRejection', note);
      process.on('uncaughtException', note);
    });
    afterEach(() => {
      process.off('unhandledRejection', note);
      process.off('uncaughtException', note);
    });

    it.each<[string, () => unknown]>([
      ['an async part()', () => ({ part: (part: ModelPart, emit: Emit) => soon().then(() => emit(part)) })],
      ['an async part() that fails', () => ({ part: () => Promise.reject(new Error('lost')) })],
      ['an async end()', () => ({ part() {}, end: () => Promise.reject(new Error('lost')) })],
      ['an async factory', () => Promise.reject(new Error('lost'))],
    ])('%s is an error of its middleware', async (_, factory) => {
      const failure = await transforming(factory)
        .run('go')
        .catch((error: RunError) => error);
      expect(failure).toMatchObject({ code: 'INVALID_HOOK_RESULT' });
      expect(attribution(failure)).toMatchObject({ middleware: 'slow', hook: 'transform' });
      await soon();
      await soon();
      expect(unhandled).toEqual([]);
    });

    it('what is emitted after the end is dropped', async () => {
      let late = 0;
      const factory = () => ({
        part(part: ModelPart, emit: Emit) {
          setImmediate(() => {
            late++;
            emit(part);
          });
        },
      });
      expect((await transforming(factory).run('go')).text).toBe('');
      while (late < 3) await soon();
      expect(unhandled).toEqual([]);
    });

    it('what is emitted between two parts fails at the next one', async () => {
      const model: Model = {
        provider: 'test',
        id: 'slow',
        async *stream() {
          yield { type: 'text', text: 'a' };
          await soon();
          await soon();
          yield { type: 'finish', reason: 'stop' };
        },
      };
      const factory = () => ({ part: (part: ModelPart, emit: Emit) => void soon().then(() => emit(part)) });
      const failure = await transforming(factory, model)
        .run('go')
        .catch((error: RunError) => error);
      expect(failure).toMatchObject({
        code: 'INVALID_HOOK_RESULT',
        message: expect.stringContaining('called emit() after part() had returned'),
        result: { changes: [{ by: 'slow', what: 'emitted a part too late, so it is lost' }] },
      });
    });
  });
});

it('every context says where it is: seam, turn and call', async () => {
  const seen: unknown[] = [];
  const look = (ctx: any) =>
    void seen.push([
      ctx.seam,
      ctx.turn,
      ctx.depth,
      ctx.agent.name,
      ctx.tenant,
      ctx.runMetadata.who,
      Array.isArray(ctx.history),
      ctx.sessionId,
      typeof ctx.runId,
    ]);
  const { agent } = trial(
    'tool',
    [{ name: 'looking', beforeRun: look, beforeModel: look, beforeTool: look }],
    ['ok'],
    { name: 'me', tenant: 't' },
  );
  await agent.session('s').run('go', { metadata: { who: 'x' } });
  const rest = [0, 'me', 't', 'x', true, 's', 'string'];
  expect(seen).toEqual([
    ['run', 0, ...rest],
    ['model', 1, ...rest],
    ['tool', 1, ...rest],
    ['model', 2, ...rest],
  ]);
});
