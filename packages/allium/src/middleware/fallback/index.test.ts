import { Agent, AlliumError, defineMiddleware, type ModelSettings, memoryStore, StopRun, tool } from 'allium';
import { type FallbackError, type FallbackOptions, fallback, mayFallBack } from 'allium/middleware/fallback';
import { retry } from 'allium/middleware/retry';
import {
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const status = (code: number) => Object.assign(new Error(`status ${code}`), { status: code });
const named = (id: string, script: readonly Script[], provider = 'test') =>
  scriptedModel(script, { id, provider });
const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'ok' });

/** Three models and an agent that falls back from the first to the others. */
function setup(scripts: readonly (readonly Script[])[], options: Partial<FallbackOptions> = {}) {
  const [model, ...models] = scripts.map((script, index) => named('abc'[index]!, script));
  const agent = new Agent({ model: model!, tools: [look], middleware: [fallback({ models, ...options })] });
  return { agent, calls: () => [model!, ...models].map(({ requests }) => requests.length) };
}

const spare = () => scriptedModel([text('Plan B.')], { id: 'spare', repeat: true });
testMiddleware(() => fallback({ models: [spare()] }), {
  name: 'fallback',
  handles: ['model-errors'],
  describe,
  it,
});
testMiddleware(() => fallback({ models: [spare()], sticky: true }), {
  name: 'sticky fallback',
  handles: ['model-errors'],
  describe,
  it,
});
testMiddleware(
  () => fallback({ models: [scriptedModel([failWith(status(503))], { id: 'down', repeat: true })] }),
  { name: 'fallback to a model that is down too', describe, it },
);

describe('fallback', () => {
  it('asks the next model when the first one fails, with the same request', async () => {
    const a = named('a', [failWith(status(500))]);
    const b = named('b', ['hello']);
    const result = await new Agent({
      model: a,
      systemPrompt: 'Be kind.',
      middleware: [fallback({ models: [b] })],
    }).run('hi');
    expect(result).toMatchObject({ status: 'done', text: 'hello', turns: 1 });
    expect(result.messages.at(-1)).toMatchObject({ model: 'test/b' });
    expect(b.requests[0]).toEqual(a.requests[0]);
    expect(result.changes).toEqual([
      { turn: 1, by: 'fallback', what: 'fallback after: status 500' },
      { turn: 1, by: 'fallback', what: 'rewrote the model of the request' },
    ]);
  });

  it('asks nobody else when the first model answers', async () => {
    const { agent, calls } = setup([['hello'], ['never']]);
    expect((await agent.run('hi')).text).toBe('hello');
    expect(calls()).toEqual([1, 0]);
  });

  it('goes through the list in order', async () => {
    const { agent, calls } = setup([[failWith(status(500))], [failWith(status(400))], ['hello']]);
    expect((await agent.run('hi')).text).toBe('hello');
    expect(calls()).toEqual([1, 1, 1]);
  });

  it('begins with the first model again in the next turn', async () => {
    const { agent, calls } = setup([[failWith(status(500)), 'done'], [toolCalls({ name: 'look' })]]);
    expect((await agent.run('hi')).text).toBe('done');
    expect(calls()).toEqual([2, 1]);
  });

  it('reports the first error as the cause and the others beside it', async () => {
    const errors = [status(500), status(400), 'just text'] as const;
    const { agent } = setup(errors.map((error) => [failWith(error)]));
    const error = await agent.run('hi').catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'FALLBACK_EXHAUSTED' });
    const exhausted = error.cause as FallbackError;
    expect(exhausted).toBeInstanceOf(AlliumError);
    expect(exhausted.cause).toBe(errors[0]);
    expect(exhausted.errors).toEqual(errors);
    expect(exhausted.data).toEqual({ models: ['test/a', 'test/b', 'test/c'] });
    expect(exhausted.message).toBe(
      'None of 3 models answered. test/a: status 500; test/b: status 400; test/c: just text',
    );
  });

  it('falls back from a model of the list to those after it', async () => {
    const [a, b, c] = [named('a', ['never']), named('b', [failWith(status(500))]), named('c', ['hello'])];
    const router = defineMiddleware({
      name: 'router',
      beforeModel(ctx) {
        ctx.model = b;
      },
    });
    const agent = new Agent({ model: named('x', []), middleware: [router, fallback({ models: [a, b, c] })] });
    expect((await agent.run('hi')).text).toBe('hello');
    expect(a.requests).toHaveLength(0);
  });

  it('leaves the error of the last model of the list alone when no other was asked', async () => {
    const last = named('last', [failWith(status(500))]);
    const agent = new Agent({ model: last, middleware: [fallback({ models: [last] })] });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'MODEL_ERROR', cause: { status: 500 } });
  });

  it('takes back what was shown, so that streamed and final text agree', async () => {
    const { agent } = setup([[failWith(status(529), 'Hel')], ['Good day']]);
    const { types, shown, events, result } = await collect(agent.stream('hi'));
    expect(types.filter((type) => type === 'message_reset')).toHaveLength(1);
    expect([...shown.values()]).toEqual(['Good day']);
    expect(result?.text).toBe('Good day');
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({
      name: 'fallback',
      by: 'fallback',
      data: { from: 'test/a', to: 'test/b', error: 'status 529' },
    });
  });

  it('falls back when a stream breaks off', async () => {
    const { agent } = setup([[{ parts: [{ type: 'text', text: 'Hel' }] }], ['Hello']]);
    expect((await agent.run('hi')).text).toBe('Hello');
  });

  describe('settings', () => {
    const settings: ModelSettings = {
      temperature: 0,
      provider: { one: { effort: 'high' }, two: { tier: 'fast' } },
    };
    const asked = async (to: string) => {
      const other = named('b', ['hello'], to);
      const model = named('a', [failWith(status(500))], 'one');
      await new Agent({ model, settings, middleware: [fallback({ models: [other] })] }).run('hi');
      expect(model.requests[0]?.settings).toEqual(settings);
      return other.requests[0]?.settings;
    };

    it('keep what is named for the new provider only', async () => {
      expect(await asked('two')).toEqual({ temperature: 0, provider: { two: { tier: 'fast' } } });
      expect(await asked('one')).toEqual({ temperature: 0, provider: { one: { effort: 'high' } } });
    });

    it('start from those of the call for each model of a chain, and after a sticky switch', async () => {
      const provider = { one: { x: 1 }, two: { y: 2 }, three: { z: 3 } };
      for (const sticky of [false, true]) {
        const a = named('a', [failWith(status(400))], 'one');
        const b = named('b', [toolCalls({ name: 'look' }), failWith(status(400))], 'two');
        const b2 = named('b2', [failWith(status(400))], 'none');
        const c = named('c', ['hello'], 'three');
        const given = sticky ? [a, b, c] : [a, b2, c];
        const [model, ...models] = given;
        const middleware = [fallback({ models, sticky })];
        await new Agent({ model: model!, tools: [look], settings: { provider }, middleware }).run('hi');
        expect(given.at(-1)!.requests[0]!.settings).toEqual({ provider: { three: { z: 3 } } });
      }
    });

    it('lose `provider` when nothing is named for the new one', async () => {
      expect(await asked('three')).toEqual({ temperature: 0 });
    });
  });

  describe('two of them', () => {
    it('ask the models of the inner one, then those of the outer one, whatever a model raised', async () => {
      const [a, b] = [named('a', [failWith(status(400))]), named('b', [failWith(status(400))])];
      const c = named('c', ['hello']);
      const middleware = [fallback({ models: [c] }), fallback({ models: [b] })];
      const { text: answer } = await new Agent({ model: a, middleware }).run('hi');
      expect(answer).toBe('hello');
      expect([a, b, c].map(({ requests }) => requests.length)).toEqual([1, 1, 1]);
    });

    it('ask no further model about a bug of a middleware', async () => {
      const [a, b, c] = [named('a', [failWith(status(400))]), named('b', ['never']), named('c', ['never'])];
      const buggy = defineMiddleware({
        name: 'buggy',
        beforeModel(ctx) {
          if (ctx.model === b) throw new TypeError('a bug');
        },
      });
      const middleware = [fallback({ models: [c] }), fallback({ models: [b] }), buggy];
      const error = await new Agent({ model: a, middleware }).run('hi').catch((thrown) => thrown);
      expect(error.cause.code).toBe('FALLBACK_EXHAUSTED');
      expect(c.requests).toHaveLength(0);
    });
  });

  describe('sticky', () => {
    const scripts = () => [
      [failWith(status(500)), 'never'],
      [toolCalls({ name: 'look' }), toolCalls({ name: 'look' }), 'done'],
    ];

    it('stays with the model for the rest of the run, and begins anew with the next run', async () => {
      const { agent, calls } = setup(scripts(), { sticky: true });
      const session = agent.session('s');
      expect((await session.run('hi')).text).toBe('done');
      expect(calls()).toEqual([1, 3]);
      expect((await session.run('again')).text).toBe('never');
      expect(calls()).toEqual([2, 3]);
    });

    it('drops settings of other providers in the turns after the switch too', async () => {
      const a = named('a', [failWith(status(500))], 'one');
      const b = named('b', [toolCalls({ name: 'look' }), 'done'], 'two');
      const settings = { provider: { one: { effort: 'high' } } };
      const middleware = [fallback({ models: [b], sticky: true })];
      await new Agent({ model: a, tools: [look], settings, middleware }).run('hi');
      expect(b.requests.map((request) => request.settings)).toEqual([{}, {}]);
    });

    it('moves on when the model it stays with fails', async () => {
      const { agent, calls } = setup(
        [[failWith(status(500))], [toolCalls({ name: 'look' }), failWith(status(500))], ['done']],
        { sticky: true },
      );
      expect((await agent.run('hi')).text).toBe('done');
      expect(calls()).toEqual([1, 2, 1]);
    });

    it('is remembered by a run that is suspended and resumed', async () => {
      const ask = tool({
        name: 'ask',
        description: 'Asks.',
        input: z.object({}),
        execute: async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
      });
      const store = memoryStore();
      const make = (first: readonly Script[], second: readonly Script[]) => {
        const [a, b] = [named('a', first), named('b', second)];
        const middleware = [fallback({ models: [b], sticky: true })];
        return { a, session: new Agent({ model: a, tools: [ask], store, middleware }).session('s') };
      };
      const before = make([failWith(status(500))], [toolCalls({ name: 'ask' })]);
      const { pending } = await before.session.run('hi');
      const after = make([], ['done']);
      const answers = { [pending[0]!.id]: { type: 'approve' as const } };
      expect(await after.session.resume({ answers })).toMatchObject({ status: 'done', text: 'done' });
      expect(after.a.requests).toHaveLength(0);
    });

    it('works twice in one list', async () => {
      const [a, b, c] = [
        named('a', [failWith(status(500))]),
        named('b', [failWith(status(500))]),
        named('c', ['hi']),
      ];
      const middleware = [fallback({ models: [c], sticky: true }), fallback({ models: [b], sticky: true })];
      expect((await new Agent({ model: a, middleware }).run('hi')).text).toBe('hi');
    });
  });

  describe('with retry', () => {
    it('inside, tries each model several times before the next one', async () => {
      const clock = fakeClock();
      const [a, b] = [
        named('a', [failWith(status(503))].concat(failWith(status(503)))),
        named('b', [failWith(status(503)), 'hello']),
      ];
      const middleware = [fallback({ models: [b] }), retry({ attempts: 2, clock })];
      const run = new Agent({ model: a, middleware }).run('hi');
      await clock.advance(60_000);
      expect((await run).text).toBe('hello');
      expect([a.requests.length, b.requests.length]).toEqual([2, 2]);
    });

    it('outside, goes through all models again after a wait', async () => {
      const clock = fakeClock();
      const [a, b] = [
        named('a', [failWith(status(503)), failWith(status(503))]),
        named('b', [failWith(status(400)), 'hello']),
      ];
      const middleware = [retry({ attempts: 2, clock }), fallback({ models: [b] })];
      const run = new Agent({ model: a, middleware }).run('hi');
      await clock.advance(60_000);
      expect((await run).text).toBe('hello');
      expect([a.requests.length, b.requests.length]).toEqual([2, 2]);
    });

    it('outside, does not go through models again that all failed for good', async () => {
      const clock = fakeClock();
      const [a, b] = [named('a', [failWith(status(400))]), named('b', [failWith(status(401))])];
      const middleware = [retry({ attempts: 2, clock }), fallback({ models: [b] })];
      await expect(new Agent({ model: a, middleware }).run('hi')).rejects.toMatchObject({
        code: 'FALLBACK_EXHAUSTED',
      });
      expect(clock.pending).toBe(0);
    });
  });

  describe('never falls back', () => {
    it('from a stop', async () => {
      const stop = defineMiddleware({ name: 'enough', beforeModel: (ctx) => ctx.stop('stopped', 'Enough.') });
      const b = named('b', ['never']);
      const agent = new Agent({
        model: named('a', []),
        middleware: [fallback({ models: [b], on: () => true }), stop],
      });
      expect((await agent.run('hi')).status).toBe('stopped');
      expect(b.requests).toHaveLength(0);
    });

    it('from an abort', async () => {
      const { agent, calls } = setup([[hang('Hel')], ['never']], { on: () => true });
      const abort = new AbortController();
      const run = agent.run('hi', { signal: abort.signal }).catch((error) => error);
      await fakeClock().advance(0);
      abort.abort();
      expect(await run).toMatchObject({ code: 'ABORTED' });
      expect(calls()).toEqual([1, 0]);
    });

    it('from a bug of a middleware', async () => {
      const bug = new TypeError('x is not a function');
      const broken = defineMiddleware({
        name: 'broken',
        beforeModel() {
          throw bug;
        },
      });
      const agent = new Agent({
        model: named('a', []),
        middleware: [fallback({ models: [named('b', [])] }), broken],
      });
      await expect(agent.run('hi')).rejects.toMatchObject({ code: 'MIDDLEWARE_ERROR', cause: bug });
    });

    it('from errors that `on` refuses, but reports them with the earlier errors', async () => {
      const on = (error: unknown) => (error as { status?: number }).status === 500;
      const refused = setup([[failWith(status(400))], ['never']], { on });
      await expect(refused.agent.run('hi')).rejects.toMatchObject({
        code: 'MODEL_ERROR',
        cause: { status: 400 },
      });
      const later = setup([[failWith(status(500))], [failWith(status(400))], ['never']], { on });
      await expect(later.agent.run('hi')).rejects.toMatchObject({ cause: { cause: { status: 500 } } });
      expect(later.calls()).toEqual([1, 1, 0]);
    });
  });

  it('serves 100 concurrent runs, each with its own failures', async () => {
    const a = scriptedModel([failWith(status(500), 'Hel')], { id: 'a', repeat: true });
    const b = scriptedModel([({ messages }) => text(`re: ${JSON.stringify(messages.at(-1)?.content)}`)], {
      id: 'b',
      repeat: true,
    });
    const agent = new Agent({ model: a, middleware: [fallback({ models: [b], sticky: true })] });
    const runs = await Promise.all(Array.from({ length: 100 }, (_, i) => agent.run(`n${i}`)));
    expect(runs.map(({ text: answer }) => /n\d+/.exec(answer)?.[0])).toEqual(runs.map((_, i) => `n${i}`));
    expect([a.requests.length, b.requests.length]).toEqual([100, 100]);
  });

  it.each([
    [
      undefined,
      'Expected `options` to be an object with models, on, sticky, name for fallback(), got undefined.',
    ],
    [{}, 'Expected `models` to be a list of at least one model, got undefined.'],
    [{ models: [] }, 'Expected `models` to be a list of at least one model'],
    [
      { models: ['gpt'] },
      'Expected `models[0]` to be a model with provider, id and stream(), got "gpt". A name',
    ],
    [{ models: [spare()], on: 503 }, 'Expected `on` to be a function or a class of errors, got 503.'],
    [{ models: [spare()], sticky: 'run' }, 'Expected `sticky` to be true or false, got "run".'],
    [{ model: spare() }, 'Unknown option `model` of fallback(). Did you mean `models`?'],
  ])('refuses %j', (options, message) => {
    expect(() => fallback(options as never)).toThrow(message);
  });

  it('refuses the same model twice', () => {
    const model = named('a', []);
    expect(() => fallback({ models: [model, model] })).toThrow(
      'Expected `models[1]` to be a model that is not in the list already, got "test/a".',
    );
  });
});

describe('mayFallBack', () => {
  it.each<[string, unknown, boolean]>([
    ['a text', 'oh', true],
    ['a lost connection', Object.assign(new Error('reset'), { code: 'ECONNRESET' }), true],
    ['an open circuit', new AlliumError('CIRCUIT_OPEN', 'open'), true],
    ['a limit', new AlliumError('RATE_LIMITED', 'wait'), true],
    ['a guard that failed', new AlliumError('GUARD_FAILED', 'oh'), false],
    ['a bug', new TypeError('x is not a function'), false],
    ['a stop', new StopRun(), false],
  ])('for %s', (_, error, expected) => {
    expect(mayFallBack(error)).toBe(expected);
  });
});
