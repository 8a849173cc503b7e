import {
  Agent,
  attribution,
  defineMiddleware,
  type Model,
  type ModelPart,
  memoryStore,
  textOf,
  tool,
  type UserContent,
} from 'allium';
import {
  type Answer,
  chunks,
  collect,
  failWith,
  fakeClock,
  hang,
  scriptedModel,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const finish: ModelPart = { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
const say = (content: string): ModelPart => ({ type: 'text', text: content });
const modelOf = (stream: (...args: Parameters<Model['stream']>) => unknown): Model => ({
  provider: 'test',
  id: 'odd',
  stream: stream as Model['stream'],
});
const run = (model: Model) => new Agent({ model }).run('hi');

/** Lets everything that is ready run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('a copy of a request is complete, so a model can wrap another model', async () => {
  const inner = scriptedModel(['Hello.']);
  const around = modelOf((request, options) =>
    inner.stream({ ...request, systemPrompt: 'Be kind.' }, { ...options }),
  );
  const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'rain' });
  const { text: said } = await new Agent({ model: around, tools: [look] }).run('hi');
  expect(said).toBe('Hello.');
  const [request] = inner.requests;
  expect(request!.systemPrompt).toBe('Be kind.');
  expect(request!.messages.map(textOf)).toEqual(['hi']);
  expect(request!.tools.map(({ name }) => name)).toEqual(['look']);
});

it('a request and its options expose nothing of the kernel, and copies of them are complete', async () => {
  let keys: readonly string[][] = [];
  await run(
    modelOf((request, options) => {
      keys = [Object.keys(request).sort(), Object.keys(options)];
      expect({ ...options }.signal).toBeInstanceOf(AbortSignal);
      return [say('a'), finish];
    }),
  );
  expect(keys).toEqual([['messages', 'settings', 'systemPrompt', 'tools'], ['signal']]);
});

describe('the model port is stream-only', () => {
  it.each([
    [
      'an async generator',
      async function* () {
        yield* [say('a'), say('b'), finish];
      },
    ],
    [
      'a generator',
      function* () {
        yield* [say('a'), say('b'), finish];
      },
    ],
    ['a list', () => [say('a'), say('b'), finish]],
    [
      'an iterator of promises',
      () => {
        const parts = [say('a'), say('b'), finish];
        return {
          [Symbol.asyncIterator]: () => ({
            next: () => Promise.resolve({ done: parts.length === 0, value: parts.shift() }),
          }),
        };
      },
    ],
    [
      'a web stream',
      () =>
        new ReadableStream({
          start(controller) {
            for (const part of [say('a'), say('b'), finish]) controller.enqueue(part);
            controller.close();
          },
        }),
    ],
  ])('%s is read to its end', async (_, stream) => {
    await expect(run(modelOf(stream as never))).resolves.toMatchObject({ status: 'done', text: 'ab' });
    const { shown } = await collect(new Agent({ model: modelOf(stream as never) }).stream('hi'));
    expect([...shown.values()]).toEqual(['ab']);
  });

  it.each([
    ['a promise', async () => [finish]],
    ['a promise that rejects', async () => Promise.reject(new Error('boom'))],
    ['nothing', () => undefined],
    ['null', () => null],
    ['text', () => 'hello'],
    ['an object that cannot be iterated', () => ({ parts: [] })],
    ['an iterator without next', () => ({ [Symbol.asyncIterator]: () => ({}) })],
    [
      'an iterator whose steps are nothing',
      () => ({ [Symbol.asyncIterator]: () => ({ next: () => undefined }) }),
    ],
  ])('stream() that returns %s is MODEL_STREAM_INVALID', async (_, stream) => {
    await expect(run(modelOf(stream))).rejects.toMatchObject({ code: 'MODEL_STREAM_INVALID' });
  });

  it('stream() that throws fails the run with that very error', async () => {
    const boom = new Error('no key');
    const failure = await run(
      modelOf(() => {
        throw boom;
      }),
    ).catch((error) => error);
    expect(failure).toMatchObject({ code: 'MODEL_ERROR', cause: boom });
    expect(attribution(boom)).toEqual({ hook: 'model', attempts: 1 });
  });

  it('a stream that throws half way fails the run with that very error', async () => {
    const boom = new Error('reset');
    await expect(run(scriptedModel([failWith(boom, 'half')]))).rejects.toMatchObject({
      code: 'MODEL_ERROR',
      cause: boom,
    });
  });

  it('a stream without finish is MODEL_STREAM_CUT', async () => {
    await expect(run(modelOf(() => [say('half')]))).rejects.toMatchObject({ code: 'MODEL_STREAM_CUT' });
    await expect(run(modelOf(() => []))).rejects.toMatchObject({ code: 'MODEL_STREAM_CUT' });
  });

  it('parts after finish are MODEL_STREAM_INVALID', async () => {
    await expect(run(modelOf(() => [finish, say('late')]))).rejects.toMatchObject({
      code: 'MODEL_STREAM_INVALID',
    });
  });

  it('a malformed part ends the stream: iterator.return is called', async () => {
    let returned = 0;
    const model = modelOf(async function* () {
      try {
        yield { type: 'text' };
        yield finish;
      } finally {
        returned++;
      }
    });
    await expect(run(model)).rejects.toMatchObject({
      code: 'MODEL_STREAM_INVALID',
      cause: { data: { part: { type: 'text' } } },
    });
    expect(returned).toBe(1);
  });

  it('interleaved blocks come out as blocks, live and in the message', async () => {
    const parts: ModelPart[] = [
      { type: 'thinking', text: 'h', block: 0 },
      { type: 'text', text: 'a', block: 1 },
      { type: 'thinking', text: 'm', block: 0 },
      { type: 'text', text: 'b', block: 2 },
      { type: 'text', text: 'A', block: 1 },
      finish,
    ];
    const { events, result } = await collect(new Agent({ model: modelOf(() => parts) }).stream('hi'));
    const deltas = events.flatMap((one) =>
      one.type === 'message_update' && one.delta.type !== 'tool-call'
        ? [`${one.delta.block}${one.delta.text}`]
        : [],
    );
    expect(deltas).toEqual(['0h', '1a', '0m', '2b', '1A']);
    expect(result!.messages.at(-1)!.content).toEqual([
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'aA' },
      { type: 'text', text: 'b' },
    ]);
  });

  it('calls with repeated or missing ids get ids of their own, in events and history alike', async () => {
    const ran: string[] = [];
    const echo = tool({
      name: 'echo',
      description: 'Echoes.',
      input: z.object({ n: z.number() }),
      execute: ({ n }) => `${ran.push(`${n}`)}`,
    });
    const call = (id: unknown, n: number): ModelPart => ({
      type: 'tool-call',
      id: id as string,
      name: 'echo',
      arguments: `{"n":${n}}`,
    });
    const model = scriptedModel([
      chunks(call('x', 1), call('x', 2), call('', 3), call(undefined, 4)),
      chunks(call('x', 5)),
      'end',
    ]);
    const { events, result } = await collect(new Agent({ model, tools: [echo] }).stream('hi'));
    const live = events.flatMap((one) =>
      one.type === 'message_update' && one.delta.type === 'tool-call' ? [one.delta.id] : [],
    );
    const kept = result!.messages.flatMap(({ content }) =>
      content.flatMap((part) => (part.type === 'tool-call' ? [part.id] : [])),
    );
    expect(live).toEqual(kept);
    expect(new Set(kept).size).toBe(5);
    expect(ran).toEqual(['1', '2', '3', '4', '5']);
  });
});

describe('a stream that does not end after finish', () => {
  const again = tool({ name: 'again', description: 'Again.', input: z.object({}), execute: () => 'ok' });

  it('is abandoned after a while, and its answer counts', async () => {
    const clock = fakeClock();
    let returned = 0;
    let answer = (_: IteratorResult<ModelPart>): void => {};
    const parts = [say('a'), finish];
    const model = modelOf(() => ({
      [Symbol.asyncIterator]: () => ({
        next: () => {
          const value = parts.shift();
          if (value) return Promise.resolve({ done: false, value });
          return new Promise<IteratorResult<ModelPart>>((resolve) => {
            answer = resolve;
          });
        },
        return: () => {
          returned++;
          return Promise.reject(new Error('nobody hears this'));
        },
      }),
    }));
    const running = new Agent({ model, clock, teardownTimeoutMs: 100 }).run('hi');
    await clock.advance(99);
    expect(returned).toBe(0);
    await clock.advance(1);
    expect(await running).toMatchObject({ status: 'done', text: 'a', usage: { totalTokens: 2 } });
    expect([returned, clock.pending]).toEqual([1, 0]);
    answer({ done: false, value: say('late') });
    await settle();
  });

  it('adds nothing more, not to later turns either', async () => {
    const clock = fakeClock();
    const late: (() => void)[] = [];
    let turn = 0;
    const model = modelOf(async function* () {
      if (++turn < 3) yield { type: 'tool-call', id: `${turn}`, name: 'again', arguments: '{}' };
      else yield say('a');
      yield finish;
      await new Promise<void>((resolve) => late.push(resolve));
      yield say('late');
    });
    const agent = new Agent({ model, tools: [again], clock });
    const running = agent.run('hi');
    for (let i = 0; i < 2; i++) await clock.advanceToNext();
    for (const goOn of late.slice(0, 2)) goOn();
    await clock.advanceToNext();
    expect(await running).toMatchObject({ status: 'done', text: 'a', turns: 3 });
    expect(clock.pending).toBe(0);
  });

  it('is waited for meanwhile: late parts are MODEL_STREAM_INVALID, and errors fail the run', async () => {
    const after = (late: () => ModelPart): Model =>
      modelOf(async function* () {
        yield finish;
        await settle();
        await settle();
        yield late();
      });
    const clock = fakeClock();
    await expect(new Agent({ model: after(() => say('late')), clock }).run('hi')).rejects.toMatchObject({
      code: 'MODEL_STREAM_INVALID',
    });
    const broken = new Error('broken');
    const failing = after(() => {
      throw broken;
    });
    await expect(new Agent({ model: failing, clock }).run('hi')).rejects.toMatchObject({ cause: broken });
    expect(clock.pending).toBe(0);
  });

  it('is aborted like any other', async () => {
    const clock = fakeClock();
    const controller = new AbortController();
    const model = scriptedModel([hang('a', finish)]);
    const running = new Agent({ model, clock }).run('hi', { signal: controller.signal });
    await settle();
    await settle();
    expect(clock.pending).toBe(1);
    controller.abort();
    await expect(running).rejects.toMatchObject({ code: 'ABORTED', result: { text: 'a' } });
    expect(clock.pending).toBe(0);
  });

  it('needs no timer if streams end at once', async () => {
    const clock = fakeClock();
    let timers = 0;
    const setTimer = (fn: () => void, ms: number): (() => void) => {
      timers++;
      return clock.setTimer(fn, ms);
    };
    const model = scriptedModel([toolCalls({ name: 'again' }), toolCalls({ name: 'again' }), text('done')]);
    const agent = new Agent({ model, tools: [again], clock: { ...clock, setTimer } });
    expect(await agent.run('hi')).toMatchObject({ text: 'done', turns: 3 });
    await settle();
    expect(timers).toBe(0);
  });
});

describe('aborting a model call', () => {
  it('a model that ignores its signal is cut off, and told to stop', async () => {
    let returned = 0;
    const model = modelOf(() => ({
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => {}),
        return: () => {
          returned++;
          return Promise.reject(new Error('nobody hears this'));
        },
      }),
    }));
    const controller = new AbortController();
    const running = new Agent({ model }).run('hi', { signal: controller.signal });
    await settle();
    controller.abort(new Error('enough'));
    await expect(running).rejects.toMatchObject({ code: 'ABORTED', cause: { message: 'enough' } });
    expect(returned).toBe(1);
  });

  it('a model that never waits cannot break a time limit', async () => {
    const model = modelOf(function* () {
      for (;;) yield say('');
    });
    await expect(new Agent({ model, limits: { timeoutMs: 30 } }).run('hi')).resolves.toMatchObject({
      stop: { reason: 'timeout' },
    });
  });

  it('an abort by the model itself, in the middle of a list, stops there', async () => {
    const controller = new AbortController();
    let made = 0;
    const model = modelOf(function* () {
      for (;;) {
        if (++made === 3) controller.abort();
        yield say('x');
      }
    });
    await expect(new Agent({ model }).run('hi', { signal: controller.signal })).rejects.toMatchObject({
      code: 'ABORTED',
    });
    expect(made).toBe(3);
  });

  it.each<[string, (cut: () => void) => Iterable<ModelPart> | AsyncIterable<ModelPart>]>([
    [
      'as it ends',
      function* (cut) {
        yield say('a');
        yield finish;
        cut();
      },
    ],
    [
      'with the next piece',
      function* (cut) {
        yield say('a');
        cut();
        yield say('b');
      },
    ],
    [
      'after finish, without ending',
      async function* (cut) {
        yield say('a');
        yield finish;
        cut();
        await new Promise(() => {});
      },
    ],
  ])('after an abort by the model itself nothing more of it is used: %s', async (_, stream) => {
    const clock = fakeClock();
    const controller = new AbortController();
    const model = modelOf(() => stream(() => controller.abort()));
    const session = new Agent({ model, clock, teardownTimeoutMs: 100 }).session('s');
    const { events, error } = await collect(session.stream('hi', { signal: controller.signal }));
    await clock.advance(1000);
    expect(error!.code).toBe('ABORTED');
    const said = (await session.messages()).filter(({ role }) => role === 'assistant');
    expect(said).toMatchObject([{ content: [{ text: 'a' }], stopReason: 'aborted' }]);
    expect(events.slice(3).map(({ type }) => type)).toEqual([
      'turn_start',
      'message_start',
      'message_update',
      'message_end',
      'turn_end',
      'agent_end',
    ]);
    expect(clock.pending).toBe(0);
  });

  it('a cleanup that throws is ignored', async () => {
    const controller = new AbortController();
    const model = modelOf(() => ({
      [Symbol.iterator]: () => ({
        next: () => {
          controller.abort();
          return { done: false, value: say('x') };
        },
        return: () => {
          throw new Error('cleanup');
        },
      }),
    }));
    await expect(new Agent({ model }).run('hi', { signal: controller.signal })).rejects.toMatchObject({
      code: 'ABORTED',
    });
    await settle();
  });

  it('nothing is called when the run is already to end', async () => {
    const model = scriptedModel(['never', 'never']);
    const swallow = defineMiddleware({
      name: 'swallow',
      async wrapModel(_, next) {
        return next().catch(() => next());
      },
    });
    const stop = defineMiddleware({ name: 'stop', beforeModel: (ctx) => ctx.stop('stopped', 'no') });
    const { stop: why } = await new Agent({ model, middleware: [swallow, stop] }).run('hi');
    expect(why).toMatchObject({ reason: 'stopped', by: 'stop' });
    expect(model.requests).toHaveLength(0);
  });
});

describe('tokens of a stream that broke off', () => {
  it('are estimated, with and without limits', async () => {
    const failure = (limits: { tokens?: number }) =>
      new Agent({ model: scriptedModel([failWith(new Error('boom'), 'x'.repeat(400))]), limits })
        .run('y'.repeat(40))
        .catch((error) => error);
    for (const limits of [{}, { tokens: 10_000 }]) {
      const { usage } = (await failure(limits)).result;
      expect(usage.outputTokens).toBe(100);
      expect(usage.inputTokens).toBeGreaterThan(0);
    }
  });

  it('that cannot be estimated do not hide why it broke off', async () => {
    const broken = new Error('broken');
    const content: UserContent[] = [];
    const inner = scriptedModel([failWith(broken, 'half')]);
    const model = modelOf((request, options) => {
      content.push(null as never);
      return inner.stream(request, options);
    });
    const breaks = defineMiddleware({
      wrapModel: (ctx, next) => {
        ctx.messages = [Object.freeze({ id: '', role: 'user', content })];
        return next();
      },
    });
    await expect(new Agent({ model, middleware: [breaks] }).run('hi')).rejects.toMatchObject({
      cause: broken,
    });
  });
  it('are none if nothing came', async () => {
    const failure = await new Agent({ model: scriptedModel([failWith(new Error('boom'))]) })
      .run('hi')
      .catch((error) => error);
    expect(failure.result.usage.totalTokens).toBe(0);
  });
});

describe('plain stream transforms', () => {
  const upper = (name: string, change: (text: string) => string) =>
    defineMiddleware({
      name,
      beforeModel(ctx) {
        ctx.transform(() => ({
          part: (part, emit) => emit(part.type === 'text' ? { ...part, text: change(part.text) } : part),
        }));
      },
    });

  it('are applied inside-out, to live events and the message alike', async () => {
    const middleware = [
      upper('outer', (piece) => `<${piece}>`),
      upper('inner', (piece) => piece.toUpperCase()),
    ];
    const { shown, result } = await collect(
      new Agent({ model: scriptedModel([chunks('a', 'b')]), middleware }).stream('hi'),
    );
    expect([...shown.values()]).toEqual(['<A><B>']);
    expect(result!.text).toBe('<A><B>');
  });

  it('are created again for each stream', async () => {
    let made = 0;
    const counting = defineMiddleware({
      name: 'counting',
      wrapModel(ctx, next) {
        ctx.transform(() => {
          made++;
          return { part: (part, emit) => emit(part) };
        });
        return next().catch(() => next());
      },
    });
    await new Agent({
      model: scriptedModel([failWith(new Error('boom')), 'ok']),
      middleware: [counting],
    }).run('hi');
    expect(made).toBe(2);
  });

  it('that hold text back give it at the end', async () => {
    const reverse = defineMiddleware({
      name: 'reverse',
      beforeModel(ctx) {
        ctx.transform(() => {
          let held = '';
          return {
            part(part, emit) {
              if (part.type === 'text') held += part.text;
              else emit(part);
            },
            end: (emit) => emit({ type: 'text', text: [...held].reverse().join('') }),
          };
        });
      },
    });
    const { shown, result } = await collect(
      new Agent({ model: scriptedModel([chunks('a', 'b', 'c')]), middleware: [reverse] }).stream('hi'),
    );
    expect([[...shown.values()], result!.text]).toEqual([['cba'], 'cba']);
  });

  it('apply to a cached response that did not stream', async () => {
    const cache = defineMiddleware({
      name: 'cache',
      wrapModel: () => ({
        role: 'assistant',
        content: [{ type: 'text', text: 'cached' }],
        stopReason: 'stop',
      }),
    });
    const { shown, result } = await collect(
      new Agent({
        model: scriptedModel([]),
        middleware: [upper('outer', (piece) => piece.toUpperCase()), cache],
      }).stream('hi'),
    );
    expect([[...shown.values()], result!.text]).toEqual([['CACHED'], 'CACHED']);
  });

  it.each([
    [
      'part()',
      () => ({
        part: () => {
          throw new Error('boom');
        },
      }),
    ],
    [
      'end()',
      () => ({
        part: (part: ModelPart, emit: (part: ModelPart) => void) => emit(part),
        end: () => {
          throw new Error('boom');
        },
      }),
    ],
    [
      'the factory',
      () => {
        throw new Error('boom');
      },
    ],
  ])('that throw in %s are blamed on their middleware, not on the model', async (_, factory) => {
    const bad = defineMiddleware({ name: 'bad', beforeModel: (ctx) => ctx.transform(factory as never) });
    for (const outer of [[], [upper('outer', (piece) => piece)]]) {
      const failure = await new Agent({ model: scriptedModel([text('hi')]), middleware: [...outer, bad] })
        .run('hi')
        .catch((error) => error);
      expect(failure).toMatchObject({ code: 'MIDDLEWARE_ERROR', cause: { message: 'boom' } });
      expect(attribution(failure.cause)).toMatchObject({ middleware: 'bad', hook: 'transform' });
    }
  });

  it('that are not transforms are INVALID_HOOK_RESULT', async () => {
    const bad = defineMiddleware({
      name: 'bad',
      beforeModel: (ctx) => ctx.transform(() => undefined as never),
    });
    await expect(
      new Agent({ model: scriptedModel([text('hi')]), middleware: [bad] }).run('hi'),
    ).rejects.toMatchObject({ code: 'INVALID_HOOK_RESULT' });
  });

  it('that return parts instead of emitting them get an error that says so', async () => {
    const bad = defineMiddleware({
      name: 'bad',
      beforeModel: (ctx) => ctx.transform(() => ({ part: (part) => part as never })),
    });
    await expect(
      new Agent({ model: scriptedModel([text('hi')]), middleware: [bad] }).run('hi'),
    ).rejects.toMatchObject({ message: expect.stringContaining('returned a part, which is lost') });
  });
});

describe('what is sent', () => {
  it('an assistant message that held only withheld thinking is left out', async () => {
    const model = scriptedModel([[{ type: 'thinking', text: 'secret', signature: 's' }], 'end']);
    const guard = defineMiddleware({
      name: 'g',
      guard: {
        on: ['thinking'],
        find: (found) => [...found.matchAll(/secret/g)].map((m) => ({ start: m.index, end: m.index + 6 })),
      },
    });
    const session = new Agent({ model, middleware: [guard] }).session('s');
    await session.run('one');
    await session.run('two');
    expect(model.requests[1]!.messages.map(({ role }) => role)).toEqual(['user', 'user']);
  });

  const nothing: [string, Answer][] = [
    ['no parts', chunks()],
    ['empty text', text('')],
    [
      'empty texts',
      [
        { type: 'text', text: '' },
        { type: 'text', text: '' },
      ],
    ],
  ];
  it.each(nothing)('an empty answer is left out, since providers refuse it: %s', async (_, empty) => {
    const store = memoryStore();
    const later = scriptedModel(['end', 'end']);
    await new Agent({ model: scriptedModel([empty]), store }).session('s').run('one');
    const session = new Agent({ model: later, store }).session('s');
    await session.run('two');
    for await (const _event of session.stream('three'));
    expect(later.requests.map(({ messages }) => messages.map(textOf))).toEqual([
      ['one', 'two'],
      ['one', 'two', 'end', 'three'],
    ]);
    expect((await session.messages()).map(({ role }) => role).slice(0, 3)).toEqual([
      'user',
      'assistant',
      'user',
    ]);
  });

  it('empty text beside something else is left out, unless its metadata says something', async () => {
    const sealed = { type: 'text' as const, text: '', metadata: { seal: 's' } };
    const call = { type: 'tool-call' as const, id: 'c', name: 'a', arguments: '{}' };
    const model = scriptedModel([[{ type: 'text', text: '' }, sealed, call], 'end']);
    const a = tool({ name: 'a', description: 'A.', input: z.object({}), execute: () => 'ok' });
    await new Agent({ model, tools: [a] }).run('go');
    expect(model.requests[1]!.messages[1]!.content).toEqual([sealed, call]);
  });

  it('tools are shown as they are in this call', async () => {
    const model = scriptedModel([toolCalls({ name: 'a' }), 'end']);
    const a = tool({ name: 'a', description: 'A.', input: z.object({}), execute: () => 'ok' });
    const hide = defineMiddleware({
      name: 'hide',
      beforeModel(ctx) {
        if (ctx.turn > 1) ctx.tools = [];
      },
    });
    await new Agent({ model, tools: [a], middleware: [hide] }).run('hi');
    expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([['a'], []]);
  });
});
