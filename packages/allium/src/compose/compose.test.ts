import {
  Agent,
  BaseMiddleware,
  compose,
  defineMiddleware,
  type Middleware,
  type MiddlewareList,
  pipeline,
  textOf,
  tool,
} from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const named = (name: string, rest: Partial<Middleware> = {}): Middleware => ({
  name,
  beforeModel() {},
  ...rest,
});
const namesOf = (list: MiddlewareList): string[] => compose(list).middleware.map(({ name }) => name);
const codeOf = (list: unknown, options = {}): { code?: string; message: string } => {
  try {
    compose(list as MiddlewareList, options);
  } catch (error) {
    return error as Error;
  }
  throw new Error('compose() accepted it');
};
const work = (name = 'work') => tool({ name, description: name, input: z.object({}), execute: () => name });

describe('flattening', () => {
  it('takes nested lists and pipelines apart, in order', () => {
    const list = [
      named('a'),
      [named('b'), [named('c')], []],
      pipeline([named('d'), pipeline([named('e')])]),
      [pipeline([named('f')])],
    ];
    expect(namesOf(list)).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  it('takes a pipeline in place of a list', async () => {
    const list = pipeline([named('a'), [named('b')] as never]);
    expect(namesOf(pipeline([named('a'), named('b')]))).toEqual(['a', 'b']);
    expect(list.layers).toHaveLength(2);
    const model = scriptedModel(['ok', 'ok']);
    const agent = new Agent({ model, middleware: pipeline([named('a')]) });
    await agent.run('go', { middleware: pipeline([named('b')]) });
    expect(agent.explain({ middleware: pipeline([named('b')]) }).middleware.map(({ name }) => name)).toEqual([
      'a',
      'b',
    ]);
  });

  it('accepts an empty list', () => {
    expect(namesOf([])).toEqual([]);
  });

  it('puts per-run middleware inside the layers and after the rules of the agent', async () => {
    const log: string[] = [];
    const logging = (name: string): Middleware => ({
      name,
      wrapModel(_, next) {
        log.push(`${name} wrap`);
        return next();
      },
      transformSystemPrompt: (prompt) => `${prompt} ${name}`,
    });
    const model = scriptedModel(['ok']);
    await new Agent({ model, systemPrompt: 'Prompt:', middleware: [logging('agent')] }).run('go', {
      middleware: [logging('run')],
    });
    expect(log).toEqual(['agent wrap', 'run wrap']);
    expect(model.requests[0]?.systemPrompt).toBe('Prompt: agent run');
  });

  it('takes {} as a middleware that does nothing, wherever it stands', async () => {
    const empty = [{}, new (class extends BaseMiddleware {})(), defineMiddleware({})];
    const agent = new Agent({ model: scriptedModel(['ok', 'ok']), middleware: [empty, {}] });
    expect((await agent.run('go')).text).toBe('ok');
    expect((await agent.run('go', { middleware: [{}] })).text).toBe('ok');
    expect(String(agent.explain())).toContain('Plan: 4 middleware');
  });

  it.each([
    [undefined, 'Expected `middleware` to be a list or a pipeline, got undefined.'],
    ['retry', 'got "retry"'],
    [{ name: 'a', beforeModel() {} }, 'Put it into a list: [it].'],
    [[undefined], 'middleware[0] is undefined, not a middleware object. To leave one out, spread a list'],
    [[false], 'middleware[0] is false, not a middleware object. To leave one out, spread a list'],
    [[async (_ctx: unknown, next: () => unknown) => next()], 'A function of (ctx, next) is a hook of one'],
    [[function timing() {}], 'write `timing()`, not `timing`.'],
    [
      [function retry() {}],
      'middleware[0] is a function (retry), not a middleware object. A factory has to be called: write `retry()`, not `retry`.',
    ],
    [[class Timing extends BaseMiddleware {}], 'A class has to be instantiated: write `new Timing()`.'],
    [[named('a'), 5], 'middleware[1] is 5'],
    [
      [Promise.resolve(named('a'))],
      'middleware[0] is [object Promise], not a middleware object. Await it first.',
    ],
    [[named('a'), [named('b'), 5]], 'middleware[1][1] is 5'],
    [[[], [{ x: 1 }]], 'Middleware middleware[1][0]: it has no hook'],
    [[{ x: 1 }], 'Middleware at index 0: it has no hook, tool, state or guard.'],
    [[new Map()], 'Middleware at index 0: it has no hook, tool, state or guard'],
    [
      [{ name: 'no-echo', forbid() {} }],
      'Middleware "no-echo": it has no hook, tool, state or guard, and `forbid` is not one.',
    ],
    [[{ name: 'no-echo', wrapToolCall() {} }], '`wrapToolCall` is not a hook. Did you mean `wrapTool`?'],
    [[{ name: 'a', beforeAgent() {}, beforeModel() {} }], 'Did you mean `beforeRun`?'],
  ])('rejects %o, saying what was received', (list, message) => {
    expect(codeOf(list)).toMatchObject({
      code: 'INVALID_MIDDLEWARE',
      message: expect.stringContaining(message),
    });
  });
});

describe('names', () => {
  it('are made unique, and given to middleware without one', () => {
    expect(namesOf([named('retry'), named('retry'), { beforeModel() {} }, named('retry')])).toEqual([
      'retry',
      'retry#2',
      'middleware-3',
      'retry#3',
    ]);
  });

  it('stay unique next to names that look like generated ones', () => {
    expect(namesOf([named('retry'), named('retry'), named('retry#2')])).toEqual([
      'retry',
      'retry#2',
      'retry#2#2',
    ]);
  });
});

describe('misspelt members', () => {
  const suggestions: [string, string][] = [
    ['befroeModel', 'beforeModel'],
    ['beforModel', 'beforeModel'],
    ['before_model', 'beforeModel'],
    ['after_tool_call', 'afterToolCall'],
    ['wrapmodel', 'wrapModel'],
    ['on_error', 'onError'],
    ['onErrors', 'onError'],
    ['transform_system_prompt', 'transformSystemPrompt'],
    ['convertToLLM', 'convertToLlm'],
    ['on_run_start', 'beforeRun'],
    ['proces', 'process'],
    ['shouldStopAfterTurns', 'shouldStopAfterTurn'],
  ];

  it.each(suggestions)('rejects `%s` of an object and suggests `%s`', (key, meant) => {
    expect(codeOf([{ name: 'a', beforeTool() {}, [key]() {} }])).toMatchObject({
      code: 'INVALID_MIDDLEWARE',
      message: `Middleware "a": \`${key}\` is not a hook. Did you mean \`${meant}\`?`,
    });
  });

  it.each(suggestions)('rejects `%s` of a class instance and suggests `%s`', (key, meant) => {
    class Parent extends BaseMiddleware {
      [key as 'anything'](): void {}
    }
    class Child extends Parent {
      override readonly name = 'child';
      override beforeTool(): void {}
    }
    expect(codeOf([new Child()])).toMatchObject({
      code: 'INVALID_MIDDLEWARE',
      message: `Middleware "child": \`${key}\` is not a hook. Did you mean \`${meant}\`?`,
    });
  });

  it('does not read getters of other names', () => {
    class Connected extends BaseMiddleware {
      get connection(): never {
        throw new Error('not connected yet');
      }
      override beforeModel(): void {}
    }
    expect(() => compose([new Connected()])).not.toThrow();
  });

  it('allows helper methods and fields', () => {
    class Counting extends BaseMiddleware {
      stats = { calls: 0 };
      #secret = 1;
      count(): number {
        return this.#secret + this.stats.calls;
      }
      reset(): void {}
      override beforeModel(): void {}
    }
    expect(() => compose([new Counting()])).not.toThrow();
  });

  it.each([
    ['on_fail', 'open', 'onFail'],
    ['Sink', true, 'sink'],
    ['extra_llm_calls', [], 'extraLlmCalls'],
    ['gaurd', { on: ['output'], find: () => [] }, 'guard'],
    ['guards', { on: ['output'], judge() {} }, 'guard'],
  ])('rejects the declaration `%s`', (key, value, meant) => {
    expect(codeOf([named('a', { [key]: value })]).message).toContain(
      `\`${key}\` is not a hook. Did you mean \`${meant}\`?`,
    );
  });

  it.each([
    [{ beforeModel: 5 }, '`beforeModel` must be a function, got 5'],
    [{ name: '' }, 'Expected `name` to be non-empty text'],
    [{ onFail: 'maybe' }, "Expected `onFail` to be 'closed' or 'open', got \"maybe\""],
    [{ seams: ['turn'] }, "Expected `seams[0]` to be 'run', 'model' or 'tool', got \"turn\""],
    [{ tools: {} }, 'Expected `tools` to be a list'],
    [{ traits: 'caches' }, 'Expected `traits` to be a list of names, got "caches"'],
    [{ traits: ['caches', 5] }, 'Expected `traits` to be a list of names, got ["caches",5]'],
    [{ order: new Map([['outside', ['x']]]) }, 'Expected `order` to be an object, got [object Map]'],
    [{ order: { outside: new Array(1) } }, 'Expected `order.outside` to be a list of names, got [null]'],
    [{ sink: 'yes' }, 'Expected `sink` to be true or false'],
    [{ order: { before: ['x'] } }, 'Unknown option `before` of order. It takes: outside, inside, requires.'],
    [{ order: { outside: 'x' } }, 'Expected `order.outside` to be a list of names, got "x"'],
    [{ name: 'me', order: { outside: ['me'] } }, "`order.outside` may not contain the middleware's own name"],
    [
      { name: 'me', order: { requires: ['other', 'me'] } },
      "`order.requires` may not contain the middleware's own name",
    ],
    [{ extraLlmCalls: [] }, 'Expected `extraLlmCalls` to be a function, got []'],
    [{ guard: { on: [] } }, 'Expected `guard.on` to be a non-empty list, got []'],
    [
      { guard: { on: ['everywhere'], find: () => [] } },
      "Expected `guard.on[0]` to be 'input', 'request', 'output'",
    ],
    [{ guard: { on: ['output'] } }, '`guard` needs `find` or `judge`'],
    [
      { guard: { on: ['output'], find: /secret/, judge() {} } },
      'Expected `guard.find` to be a function, got [object RegExp]',
    ],
    [
      { guard: { on: ['output'], find: () => [], hold: 5 } },
      "Expected `guard.hold` to be 'full' or window(n), got 5",
    ],
    [{ guard: { on: ['output'], find: () => [], action: 'delete' } }, 'Expected `guard.action` to be'],
    [
      { guard: { on: ['output'], find: () => [], replacement: 5 } },
      'Expected `guard.replacement` to be text, got 5',
    ],
    [
      { guard: { on: ['output'], find: () => [], windw: 5 } },
      'Unknown option `windw` of guard. Did you mean `find`? It takes: on, hold, find, judge, action, replacement, maxFeedback, parallel, originals, restore.',
    ],
  ])('rejects %o', (members, message) => {
    expect(codeOf([{ beforeTool() {}, ...members }])).toMatchObject({
      code: 'INVALID_MIDDLEWARE',
      message: expect.stringContaining(message),
    });
  });
});

describe('options of compose()', () => {
  it.each([
    [5, 'Expected `options` to be an object with tools, state, hooks, replaces for compose(), got 5.'],
    [{ tool: [] }, 'Unknown option `tool` of compose(). Did you mean `tools`?'],
    [{ tools: {} }, 'Expected `tools` to be a list, got {}.'],
    [{ state: 5 }, 'Expected `state` to be a list, got 5.'],
    [{ hooks: [] }, 'Expected `hooks` to be an object, got [].'],
    [{ replaces: 'a' }, 'Expected `replaces` to be a list of names, got "a".'],
  ])('are checked: %j', (options, message) => {
    expect(() => compose([], options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
    );
  });
});

describe('unknown keys in returned objects', () => {
  const failing = async (hook: Partial<Middleware>): Promise<unknown> => {
    const model = scriptedModel([toolCalls({ name: 'work' }), text('done')]);
    return new Agent({ model, tools: [work()], middleware: [{ name: 'odd', ...hook }] }).run('go').then(
      (result) => textOf(result.messages.find(({ role }) => role === 'tool')!),
      (error: Error) => error.message,
    );
  };

  it.each([
    ['beforeToolCall', { beforeToolCall: () => ({ blok: true }) }],
    ['beforeToolCall', { beforeToolCall: () => ({ block: true, why: 'x' }) }],
    ['afterToolCall', { afterToolCall: () => ({ contents: 'x' }) }],
    ['afterModelResponse', { afterModelResponse: () => ({ inject: [] }) }],
    ['acceptMessage', { acceptMessage: () => ({ blocked: true }) }],
    ['shouldStopAfterTurn', { shouldStopAfterTurn: () => ({ why: 'x' }) }],
  ])('are errors that name the middleware: %s', async (hook, members) => {
    expect(await failing(members as never)).toContain(`${hook} of "odd" returned`);
  });
});

describe('tools', () => {
  it('are those of the agent, then those of the middleware', () => {
    const plan = compose([named('a', { tools: [work('two')] }), named('b', { tools: [work('three')] })], {
      tools: [work('one')],
    });
    expect(plan.tools.map(({ name }) => name)).toEqual(['one', 'two', 'three']);
    expect(plan.toolsByName.get('three')?.name).toBe('three');
  });

  it('with the same name are an error that names both owners and the fix', () => {
    expect(codeOf([named('a', { tools: [work()] }), named('b', { tools: [work()] })])).toMatchObject({
      code: 'DUPLICATE_TOOL',
      message:
        'Tool "work" is brought by middleware "a" and by middleware "b". Rename one, or leave one out.',
    });
    expect(codeOf([named('a', { tools: [work()] })], { tools: [work()] }).message).toContain(
      'by the agent and by middleware "a"',
    );
  });

  it('must be made with tool()', () => {
    expect(codeOf([named('a', { tools: [{ name: 'x' } as never] })])).toMatchObject({ code: 'INVALID_TOOL' });
  });
});

describe('order', () => {
  it('passes when the list satisfies it, also for names that are not in the list', () => {
    expect(
      namesOf([
        named('cache', { order: { outside: ['retry', 'absent'], inside: ['limit'] } }),
        named('retry'),
      ]),
    ).toEqual(['cache', 'retry']);
    expect(
      namesOf([named('limit'), named('cache', { order: { inside: ['limit'], requires: ['limit'] } })]),
    ).toEqual(['limit', 'cache']);
  });

  it('outside: names both sides, their places and the fix', () => {
    expect(codeOf([named('retry'), named('cache', { order: { outside: ['retry'] } })])).toMatchObject({
      code: 'ORDER_IMPOSSIBLE',
      message:
        '"cache" must stand outside "retry", but is at place 2 with "retry" at 1. Put "cache" before "retry" in the list.',
    });
  });

  it('inside: names both sides, their places and the fix', () => {
    expect(codeOf([named('cache', { order: { inside: ['limit'] } }), named('limit')])).toMatchObject({
      code: 'ORDER_IMPOSSIBLE',
      message:
        '"cache" must stand inside "limit", but is at place 1 with "limit" at 2. Put "limit" before "cache" in the list.',
    });
  });

  it('requires: a missing one is an error', () => {
    expect(codeOf([named('resume', { order: { requires: ['journal'] } })])).toMatchObject({
      code: 'REQUIRED_MIDDLEWARE_MISSING',
      message: '"resume" requires "journal", which is not in the list. Add it, or remove "resume".',
    });
  });

  it.each(['outside', 'inside'] as const)(
    'contradicting constraints (%s) say that no order satisfies both',
    (side) => {
      expect(
        codeOf([named('a', { order: { [side]: ['b'] } }), named('b', { order: { [side]: ['a'] } })]),
      ).toMatchObject({
        code: 'ORDER_IMPOSSIBLE',
        message: expect.stringContaining('No order satisfies all of this'),
      });
    },
  );

  it('contradicting constraints of different kinds, or of more than two, name everyone involved', () => {
    expect(codeOf([named('b'), named('a', { order: { outside: ['b'], inside: ['b'] } })]).message).toBe(
      '"a" must stand outside "b", "a" must stand inside "b". No order satisfies all of this: remove one of the constraints or one of the middleware.',
    );
    const circle = [
      named('a', { order: { outside: ['b'] } }),
      named('b', { order: { outside: ['c'] } }),
      named('c', { order: { outside: ['a'] } }),
    ];
    expect(codeOf(circle).message).toContain(
      '"c" must stand outside "a", "a" must stand outside "b", "b" must stand outside "c". No order',
    );
  });

  it('holds for every instance of a name', () => {
    expect(
      codeOf([named('retry'), named('cache', { order: { outside: ['retry'] } }), named('retry')]).code,
    ).toBe('ORDER_IMPOSSIBLE');
  });

  it('is checked together with per-run middleware', async () => {
    const agent = new Agent({ model: scriptedModel(['ok']), middleware: [named('retry')] });
    await expect(
      agent.run('go', { middleware: [named('cache', { order: { outside: ['retry'] } })] }),
    ).rejects.toMatchObject({ code: 'ORDER_IMPOSSIBLE' });
  });
});

describe('explicit hooks', () => {
  it('replace the composed hook of their name', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({
      model,
      middleware: [{ name: 'a', transformSystemPrompt: () => 'middleware' }],
      transformSystemPrompt: () => 'explicit',
    });
    await agent.run('go');
    expect(model.requests[0]?.systemPrompt).toBe('explicit');
    expect(agent.plan.replaced).toEqual([{ hook: 'transformSystemPrompt', names: ['a'] }]);
  });

  it('may not replace the hook of a middleware that protects either', () => {
    const protecting = named('approval', { beforeToolCall() {}, traits: ['protects'] });
    expect(codeOf([protecting], { hooks })).toMatchObject({
      code: 'GUARD_REPLACED',
      message: expect.stringContaining("replaces: ['approval']"),
    });
    expect(compose([protecting], { hooks, replaces: ['approval'] }).replaced).toHaveLength(1);
  });

  const guarding = named('pii', { beforeToolCall() {}, guard: { on: ['output'], find: () => [] } });
  const hooks = { beforeToolCall: () => {} };

  it('may not replace the hook of a middleware that guards, unless told so', () => {
    expect(codeOf([guarding], { hooks })).toMatchObject({
      code: 'GUARD_REPLACED',
      message: expect.stringContaining("replaces: ['pii']"),
    });
    expect(compose([guarding], { hooks, replaces: ['pii'] }).replaced).toEqual([
      { hook: 'beforeToolCall', names: ['pii'] },
    ]);
  });

  it('must be functions, and decision hooks only', () => {
    expect(codeOf([], { hooks: { beforeToolCall: 5 } })).toMatchObject({
      code: 'INVALID_OPTION',
      message: 'Expected `beforeToolCall` to be a function, got 5.',
    });
    expect(() => new Agent({ model: scriptedModel([]), beforeModel() {} } as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('Unknown option `beforeModel`'),
      }),
    );
  });
});

it('hooks are bound to their object and read once', async () => {
  class Greeting extends BaseMiddleware {
    override readonly name = 'greeting';
    private readonly word = 'hello';
    override transformSystemPrompt(): string {
      return this.word;
    }
  }
  const model = scriptedModel(['ok']);
  await new Agent({ model, middleware: [new Greeting()] }).run('go');
  expect(model.requests[0]?.systemPrompt).toBe('hello');
});

it('defineMiddleware returns what it was given', () => {
  const made = named('a');
  expect(defineMiddleware(made)).toBe(made);
});
