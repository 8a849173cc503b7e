/** Values that break whoever touches them, and what cannot be written: the run says so, and nothing else breaks. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Agent,
  type AgentEvent,
  AlliumError,
  attribution,
  type Context,
  type Middleware,
  type Model,
  type ModelPart,
  memoryStore,
  type Session,
  type Store,
  type Tool,
  textOf,
  tool,
  toolResult,
  userMessage,
} from 'allium';
import { fileStore } from 'allium/stores/file';
import { collect, failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectValidHistory, settle, storeWith } from '../../../../../test/run-checks.js';

const cycle: Record<string, unknown> = {};
cycle.me = cycle;
const make = (name: string, execute: Tool['execute']) =>
  tool({ name, description: name, input: z.any(), execute });
const good = make('good', () => 'good');
const both = () => toolCalls({ name: 'bad' }, { name: 'good' });

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});
async function onDisk(): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), 'allium-hostile-'));
  folders.push(folder);
  return fileStore({ dir: folder });
}

describe('details that cannot be written as JSON', () => {
  const asTool: [string, unknown][] = [
    ['a BigInt', { rows: 3n }],
    ['a cycle', cycle],
  ];

  it.each(asTool)('of a tool are an error of that call, and its sibling is safe: %s', async (_, details) => {
    for (const store of [memoryStore(), await onDisk()]) {
      const bad = make('bad', () => toolResult({ content: 'fine', details }));
      const agent = new Agent({ store, model: scriptedModel([both(), 'end', 'again']), tools: [bad, good] });
      const session = agent.session('s');
      const { messages, status } = await session.run('go');
      expect(status).toBe('done');
      const [first, second] = messages.filter(({ role }) => role === 'tool');
      expect(textOf(first!)).toContain('`details`');
      expect(first).toMatchObject({ isError: true });
      expect(textOf(second!)).toBe('good');
      expect((await session.run('again')).text).toBe('again');
      expectValidHistory(await session.messages());
    }
  });

  it.each<[string, Middleware]>([
    ['afterToolCall', { afterToolCall: () => ({ details: cycle }) }],
    [
      'wrapTool',
      {
        async wrapTool(ctx, next) {
          ctx.result = { ...(await next()), details: { n: 1n } };
        },
      },
    ],
  ])('of %s are an error of that middleware', async (_, hooks) => {
    const store = await onDisk();
    const model = scriptedModel([toolCalls({ name: 'good' }), 'end']);
    const agent = new Agent({ store, model, tools: [good], middleware: [{ name: 'meta', ...hooks }] });
    const { messages } = await agent.session('s').run('go');
    expect(messages.map(textOf).join()).toContain('"meta"');
    expectValidHistory(messages);
  });

  it('that are fine stay unchanged for their owner', async () => {
    const cache = { rows: [1] };
    const keeps = make('bad', () => toolResult({ content: 'fine', details: cache }));
    const adds: Middleware = { name: 'adds', afterToolCall: () => ({ details: cache }) };
    for (const middleware of [[], [adds]]) {
      const agent = new Agent({ model: scriptedModel([both(), 'end']), tools: [keeps, good], middleware });
      const { messages } = await agent.run('go');
      cache.rows.push(2);
      expect(messages.find(({ role }) => role === 'tool')).toMatchObject({ details: { rows: [1] } });
      cache.rows.pop();
    }
  });

  it('of progress updates are shown as they are, or left out if guards judge them', async () => {
    const tells = make('bad', async (_, ctx) => {
      await ctx.update('half', cycle);
      return 'fine';
    });
    const guarded: Middleware = { name: 'g', guard: { on: ['tool-result'], find: () => [] } };
    for (const middleware of [[], [guarded]]) {
      const agent = new Agent({ model: scriptedModel([both(), 'end']), tools: [tells, good], middleware });
      const { events, result } = await collect(agent.stream('go'));
      expect(result!.messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(['fine', 'good']);
      const [event] = events.filter(({ type }) => type === 'tool_execution_update');
      expect(event).toMatchObject({ update: [{ type: 'text', text: 'half' }] });
    }
  });

  it('of a question are an error for the caller that asks', async () => {
    const asks = tool({
      name: 'asks',
      description: '',
      input: z.any(),
      execute: (_, ctx) => ctx.suspend({ title: 'May I?', details: cycle }),
    });
    const model = scriptedModel([toolCalls({ name: 'asks' }), 'end']);
    const { messages } = await new Agent({ model, tools: [asks] }).run('go');
    expect(messages.map(textOf).join()).toContain('ctx.suspend() takes a request');
  });

  it('of a provider are an error of the model', async () => {
    const model: Model = {
      provider: 'p',
      id: 'm',
      async *stream(): AsyncGenerator<ModelPart> {
        yield { type: 'provider', kind: 'odd', value: cycle } as never;
        yield { type: 'finish', reason: 'stop' };
      },
    };
    await expect(new Agent({ model }).run('go')).rejects.toMatchObject({
      code: 'MODEL_STREAM_INVALID',
      message: expect.stringContaining('`value` that can be written as JSON'),
    });
  });

  it('as the result of a tool are reported in our own words', async () => {
    const model = scriptedModel([both(), 'end']);
    const agent = new Agent({ model, tools: [make('bad', () => ({ n: 1n })), good] });
    const { messages } = await agent.run('go');
    expect(messages.map(textOf).join()).toContain('must return text, a JSON value or content');
  });
});

describe('content of a tool', () => {
  it.each<[string, unknown]>([
    ['a BigInt in its metadata', [{ type: 'text', text: 'x', metadata: { rows: 3n } }]],
    ['a BigInt beside its text', [{ type: 'text', text: 'x', rows: 3n }]],
    ['a cycle in its metadata', [{ type: 'text', text: 'x', metadata: cycle }]],
  ])('that cannot be written is an error of that call: %s', async (_, content) => {
    for (const store of [memoryStore(), await onDisk()]) {
      const bad = make('bad', () => content);
      const agent = new Agent({ store, model: scriptedModel([both(), 'end', 'again']), tools: [bad, good] });
      const session = agent.session('s');
      const { messages, status } = await session.run('go');
      expect(status).toBe('done');
      const [first, second] = messages.filter(({ role }) => role === 'tool');
      expect(first).toMatchObject({ isError: true });
      expect(textOf(first!)).toContain('cannot be written as JSON');
      expect(textOf(second!)).toBe('good');
      expect((await session.run('again')).text).toBe('again');
      expectValidHistory(await session.messages());
    }
    expect(() => toolResult({ content: content as never })).toThrow('`content`');
  });

  it('with a hole in the list is treated as JSON, not as content', async () => {
    const list: unknown[] = [{ type: 'text', text: 'x' }];
    list.length = 2;
    const agent = new Agent({
      model: scriptedModel([both(), 'end']),
      tools: [make('bad', () => list), good],
    });
    const { messages } = await agent.run('go');
    expect(messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual([
      '[{"type":"text","text":"x"},null]',
      'good',
    ]);
  });

  it('stays a list that the tool can go on working with', async () => {
    const log: { type: 'text'; text: string; metadata: { places: number[] } }[] = [];
    const notes = (wrap: boolean) =>
      make('bad', () => {
        for (const { metadata } of log) metadata.places.push(log.length);
        log.push({ type: 'text', text: `${log.length}`, metadata: { places: [] } });
        return wrap ? toolResult({ content: log }) : log;
      });
    const again: Middleware = { name: 'again', afterToolCall: () => ({ content: log }) };
    for (const [wrap, middleware] of [
      [false, []],
      [true, []],
      [false, [again]],
    ] as const) {
      log.length = 0;
      const model = scriptedModel([toolCalls({ name: 'bad' }), toolCalls({ name: 'bad' }), 'end']);
      const { messages } = await new Agent({ model, tools: [notes(wrap)], middleware }).run('go');
      expect(messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(['0', '01']);
      expect(Object.isFrozen(messages[2]!.content[0])).toBe(true);
      expect(messages[2]!.content[0]!.metadata).toEqual({ places: [] });
    }
  });
});

describe('a list with a hole', () => {
  it('of tools is an error of the layer that assigned it', async () => {
    const odd: Middleware = {
      name: 'odd',
      beforeModel(ctx) {
        ctx.tools = new Array(1);
      },
    };
    const agent = new Agent({ model: scriptedModel(['hi']), middleware: [odd] });
    await expect(agent.run('go')).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(
        'Expected `ctx.tools` to be a list of tools made with tool(), got [null].',
      ),
    });
  });
});

describe('an object that cannot be touched', () => {
  const untouchable = () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  };
  const throwing = () => {
    throw untouchable();
  };
  const places: [string, Model, Middleware[], string][] = [
    ['a model', scriptedModel([failWith(untouchable()), 'next']), [], 'MODEL_ERROR'],
    ['beforeModel', scriptedModel(['next']), [{ name: 'bad', beforeModel: throwing }], 'MIDDLEWARE_ERROR'],
    ['onRunEnd', scriptedModel(['next']), [{ name: 'bad', onRunEnd: throwing }], 'MIDDLEWARE_ERROR'],
    [
      'onError',
      scriptedModel([failWith(new Error('no'))]),
      [{ name: 'bad', onError: throwing }],
      'MIDDLEWARE_ERROR',
    ],
  ];

  it.each(places)('thrown by %s fails the run and nothing else', async (_, model, middleware, code) => {
    const session = new Agent({ model }).session('s');
    await expect(session.run('go', { middleware })).rejects.toMatchObject({ code });
    expect(await session.messages()).not.toHaveLength(0);
    if (code === 'MODEL_ERROR') expect((await session.run('on')).text).toBe('next');
  });

  it('thrown by a tool is a result', async () => {
    const model = scriptedModel([both(), 'end']);
    const { messages, status } = await new Agent({ model, tools: [make('bad', throwing), good] }).run('go');
    expect(status).toBe('done');
    expectValidHistory(messages);
  });
});

describe('who is to blame', () => {
  it('for an error object that is thrown again in another run, or by somebody else', async () => {
    const constant = new Error('always the same');
    const policy: Middleware = {
      name: 'policy',
      beforeModel() {
        throw constant;
      },
    };
    await expect(new Agent({ model: scriptedModel([failWith(constant)]) }).run('go')).rejects.toMatchObject({
      code: 'MODEL_ERROR',
    });
    const second = new Agent({ model: scriptedModel([]), middleware: [policy] });
    await expect(second.run('go')).rejects.toMatchObject({ code: 'MIDDLEWARE_ERROR' });
    expect(attribution(constant)).toEqual({ middleware: 'policy', hook: 'beforeModel' });
    const third = new Agent({ model: scriptedModel([]), middleware: [{ ...policy, name: 'other' }] });
    await expect(third.run('go')).rejects.toThrow('(in beforeModel of "other")');
  });

  it('for a request with calls that lack a result is the layer that left them', async () => {
    const events: AgentEvent[] = [];
    const drops: Middleware = {
      name: 'drops',
      beforeModel(ctx) {
        if (ctx.turn === 2) ctx.messages = ctx.messages.filter(({ role }) => role !== 'tool');
      },
    };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'good' }), 'end']),
      tools: [good],
      middleware: [drops, { name: 'innocent', beforeModel() {} }],
      observers: [(event) => void events.push(event)],
    });
    const { changes } = await agent.run('go');
    await settle();
    expect(changes.filter(({ what }) => what.includes('without results')).map(({ by }) => by)).toEqual([
      'drops',
    ]);
    expect(events.find((event) => event.type === 'custom')).toMatchObject({
      name: 'orphans_dropped',
      by: 'drops',
      data: { by: ['drops'] },
    });
  });

  it('for junk in a stream is the transform that emitted it', async () => {
    const junk: Middleware = {
      name: 'junk',
      beforeModel: (ctx) => ctx.transform(() => ({ part: (_, emit) => emit('A' as never) })),
    };
    const failure = await new Agent({ model: scriptedModel(['hi']), middleware: [junk] })
      .run('go')
      .catch((error) => error);
    expect(failure).toMatchObject({ code: 'INVALID_HOOK_RESULT', message: expect.stringContaining('"A"') });
    expect(attribution(failure.cause)).toMatchObject({ middleware: 'junk' });
  });

  it('for a store that fails is the store', async () => {
    const down = new Error('ECONNREFUSED');
    const whole = memoryStore();
    let appends = 0;
    const store = storeWith(whole, {
      append(id, seq, entries) {
        if (++appends > 1) throw down;
        return whole.append(id, seq, entries);
      },
    });
    const agent = new Agent({ store, model: scriptedModel(['hi']) });
    await expect(agent.session('s').run('go')).rejects.toMatchObject({ code: 'STORE_FAILED', cause: down });
  });

  const ask = tool({
    name: 'ask',
    description: '',
    input: z.any(),
    execute: (_, ctx) => ctx.suspend({ title: '?' }),
  });
  const sessionIn = (store: Store) =>
    new Agent({ store, model: scriptedModel([toolCalls({ name: 'ask' }), 'end']), tools: [ask] }).session(
      's',
    );
  const ways: [string, (store: Store, requestId: string) => Promise<unknown>, (keyof Store)[]][] = [
    [
      'a run after one that waits',
      (store) => sessionIn(store).run('more'),
      ['read', 'take', 'head', 'append'],
    ],
    [
      'a resume',
      (store, id) => sessionIn(store).resume({ answers: { [id]: { type: 'approve' } } }),
      ['read', 'take', 'append'],
    ],
  ];
  async function expectStoreFailed([, work, methods]: (typeof ways)[number]): Promise<void> {
    const down = new Error('ECONNREFUSED');
    const atOnce = () => {
      throw down;
    };
    for (const method of methods)
      for (const fails of [atOnce, async () => atOnce()]) {
        const whole = memoryStore();
        const { pending } = await sessionIn(whole).run('go');
        const failure = await work(storeWith(whole, { [method]: fails }), pending[0]!.id).catch(
          (error) => error,
        );
        expect(failure, method).toBeInstanceOf(AlliumError);
        expect(failure, method).toMatchObject({ code: 'STORE_FAILED', cause: down });
      }
  }

  it.each(ways)('for a store that fails when %s begins is the store', (...way) => expectStoreFailed(way));

  it.each<[string, (session: Session, requestId: string) => Promise<unknown>, (keyof Store)[]]>([
    ['messages()', (session) => session.messages(), ['read']],
    ['pending()', (session) => session.pending(), ['read']],
    ['steer()', (session) => session.steer('hey'), ['read', 'post']],
    ['followUp()', (session) => session.followUp('hey'), ['read', 'post']],
    ['answer()', (session, id) => session.answer(id, { type: 'approve' }), ['read', 'take', 'post']],
    ['abort()', (session) => session.abort(), ['read', 'post']],
  ])('for a store that fails in %s is the store', (name, ask, methods) =>
    expectStoreFailed([name, (store, id) => ask(sessionIn(store), id), methods]),
  );

  it.each(['read', 'take'] as const)(
    'for a store whose %s() returns nothing is the store',
    async (method) => {
      const store = storeWith(memoryStore(), { [method]: () => null as never });
      const agent = new Agent({ store, model: scriptedModel(['hi']) });
      await expect(agent.session('s').run('go')).rejects.toMatchObject({
        code: 'STORE_FAILED',
        message: expect.stringContaining(`${method}() of the store returned null`),
      });
    },
  );
});

describe('messages of a hook', () => {
  it.each<[string, unknown]>([
    ['a role nobody knows', { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }],
    ['a part that is none', { role: 'user', content: [null] }],
    ['nothing', undefined],
    ['a frozen one', Object.freeze({ role: 'user', content: 'Be brief.' })],
    [
      'a frozen part',
      Object.freeze({ role: 'user', content: Object.freeze([Object.freeze({ type: 'text' })]) }),
    ],
  ])('that are not messages are an error that names the hook: %s', async (_, wrong) => {
    const middleware: Middleware[] = [
      { name: 'wrong', transformContext: (messages) => [...messages, wrong as never] },
      { name: 'wrong', convertToLlm: (messages) => [...messages, wrong as never] },
      {
        name: 'wrong',
        beforeModel(ctx) {
          ctx.messages = [...ctx.messages, wrong as never];
        },
      },
    ];
    for (const one of middleware) {
      const agent = new Agent({ model: scriptedModel(['never']), middleware: [one] });
      await expect(agent.run('go')).rejects.toThrow(/\(?at \[1\].*\(in \w+ of "wrong"\)/);
    }
  });

  it('may be new objects each time', async () => {
    const adds: Middleware = {
      name: 'adds',
      transformContext: (messages) => [userMessage('first'), ...messages],
    };
    const model = scriptedModel(['fine']);
    expect((await new Agent({ model, middleware: [adds] }).run('go')).text).toBe('fine');
    expect(model.requests[0]!.messages.map(textOf)).toEqual(['first', 'go']);
  });
});

it('ctx.generate() that nobody awaits does not end the process', async () => {
  const unhandled: unknown[] = [];
  const listen = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', listen);
  const hasty: Middleware = {
    name: 'hasty',
    beforeModel(ctx) {
      void ctx.generate(scriptedModel([failWith(new Error('down'))]), { messages: '?' });
    },
  };
  try {
    const { status } = await new Agent({ model: scriptedModel([text('hi')]), middleware: [hasty] }).run('go');
    expect(status).toBe('done');
    await settle();
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', listen);
  }
});

it('ctx.generate() after the end of the run calls no model, because its usage would count nowhere', async () => {
  const contexts: Context[] = [];
  const keeps: Middleware = { name: 'keeps', beforeModel: (ctx) => void contexts.push(ctx) };
  const other = scriptedModel(['late']);
  await new Agent({ model: scriptedModel(['hi']), middleware: [keeps] }).run('go');
  await expect(contexts[0]!.generate(other, { messages: '?' })).rejects.toMatchObject({
    code: 'MISSING_AWAIT',
    message: expect.stringContaining('ctx.generate()'),
  });
  expect(other.requests).toEqual([]);
});

it.each<[string, () => unknown, RegExp]>([
  [
    'a list that holds itself',
    () => {
      const list: unknown[] = [];
      list.push(list);
      return { middleware: list };
    },
    /middleware\[0\] is a list that contains itself/,
  ],
  [
    'a name that is no text',
    () => ({ middleware: [{ name: Symbol('x'), beforeRun() {} }] }),
    /Expected `name` to be non-empty text/,
  ],
  ['a hole between middleware', () => ({ middleware: new Array(1) }), /middleware\[0\] is undefined/],
  [
    'what cannot be shown either',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return { name: proxy };
    },
    /`name` to be non-empty text, got an object that cannot be read/,
  ],
  [
    'a function whose name is none',
    () => ({ systemPrompt: Object.defineProperty(() => {}, 'name', { value: Symbol('x') }) }),
    /`systemPrompt` to be text, .*got a function\./,
  ],
  [
    'replaces of nobody',
    () => ({ replaces: ['typo'] }),
    /`replaces` names "typo", but no middleware has that name. The names are: none\./,
  ],
  [
    'points that are no list',
    () => ({ middleware: [{ guard: { on: 'output', find: () => [] } }] }),
    /got "output"/,
  ],
])('a mistake is reported at construction: %s', (_, options, message) => {
  expect(() => new Agent({ model: scriptedModel([]), ...(options() as object) })).toThrow(message);
});

it('a reason that is not text is an error of the hook', async () => {
  const blocks = { name: 'blocks', acceptMessage: () => ({ block: true, reason: 5 }) } as never as Middleware;
  await expect(new Agent({ model: scriptedModel([]), middleware: [blocks] }).run('go')).rejects.toMatchObject(
    {
      code: 'INVALID_HOOK_RESULT',
    },
  );
});

it('a usage that is not a record of numbers is an error', async () => {
  const model: Model = {
    provider: 'p',
    id: 'm',
    async *stream(): AsyncGenerator<ModelPart> {
      yield { type: 'finish', reason: 'stop', usage: 'x' as never };
    },
  };
  await expect(new Agent({ model }).run('go')).rejects.toMatchObject({
    code: 'MODEL_STREAM_INVALID',
    message: expect.stringContaining('"x"'),
  });
});
