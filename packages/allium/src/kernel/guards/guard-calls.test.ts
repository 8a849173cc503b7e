/** What guards are asked, and what comes of it: each call is judged for itself, and nothing depends on who watches. */
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type Guard,
  type Message,
  type Middleware,
  type Model,
  type ModelResponse,
  memoryStore,
  type RunResult,
  type Store,
  type Tool,
  textOf,
  tool,
  toolCallsOf,
  toolResult,
  window,
} from 'allium';
import { chunks, failWith, hang, type Script, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { breakingStore } from '../../../../../test/run-checks.js';

const make = (name: string, execute: Tool['execute']): Tool =>
  tool({ name, description: name, input: z.any(), execute }) as Tool;

const SECRET = /SECRET/g;
const find: Guard['find'] = (text) =>
  [...text.matchAll(SECRET)].map(({ index, 0: found }) => ({ start: index, end: index + found.length }));

const MODES = ['run', 'observer', 'stream'] as const;
type Mode = (typeof MODES)[number];

/** Runs the same agent unwatched, with an observer, and with a consumer. */
async function outcome(
  mode: Mode,
  make: (observers: ((event: AgentEvent) => void)[]) => Agent,
  seen: AgentEvent[] = [],
  signal?: AbortSignal,
): Promise<RunResult> {
  const agent = make(mode === 'observer' ? [(event) => void seen.push(event)] : []);
  if (mode !== 'stream') return agent.run('go', { signal }).catch((error) => error.result);
  const stream = agent.stream('go', { signal });
  try {
    for await (const event of stream) seen.push(event);
  } catch {
    // The result tells.
  }
  return stream.result.catch((error) => error.result);
}

const toolTexts = ({ messages }: RunResult): string[] =>
  messages.filter(({ role }) => role === 'tool').map(textOf);

describe('the same object, as the answer to several calls', () => {
  it.each(['a tool', 'a layer', 'a preset'])('is judged for each call: a result of %s', async (kind) => {
    const shared = toolResult({ content: 'row 1' });
    const asked: (string | undefined)[] = [];
    const payroll: Middleware = {
      name: 'payroll-only',
      guard: {
        on: ['tool-result'],
        judge({ toolCall }) {
          asked.push(toolCall?.name);
          return toolCall?.name === 'payroll' ? { type: 'deny', reason: 'Not for you.' } : undefined;
        },
      },
    };
    const layers: Middleware[] =
      kind === 'a layer'
        ? [{ name: 'answers', wrapTool: async () => shared }]
        : kind === 'a preset'
          ? [
              {
                name: 'answers',
                beforeTool(ctx) {
                  ctx.skip = true;
                  ctx.result = shared;
                },
              },
            ]
          : [];
    const result = await new Agent({
      model: scriptedModel([toolCalls({ name: 'weather' }, { name: 'payroll' }), 'done']),
      tools: [make('weather', () => shared), make('payroll', () => shared)],
      middleware: [...layers, payroll],
    }).run('go');
    expect(asked.sort()).toEqual(['payroll', 'weather']);
    expect(toolTexts(result)).toEqual(['row 1', 'Not for you.']);
  });

  it('is judged in each turn: a response of a layer', async () => {
    const call = { type: 'tool-call', id: 'a', name: 'transfer', arguments: '{}' } as const;
    const again: ModelResponse = { role: 'assistant', content: [call], stopReason: 'tool-calls' };
    let sent = 0;
    let asked = 0;
    const result = await new Agent({
      model: scriptedModel(['done']),
      tools: [make('transfer', () => `sent ${++sent}`)],
      middleware: [
        {
          name: 'answers',
          beforeModel(ctx) {
            if (ctx.turn < 3) ctx.response = again;
          },
        },
        {
          name: 'once',
          guard: {
            on: ['tool-args'],
            judge: () => (asked++ > 0 ? { type: 'deny', reason: 'Once only.' } : undefined),
          },
        },
      ],
    }).run('go');
    expect(sent).toBe(1);
    expect(toolTexts(result)).toEqual(['sent 1', 'Once only.']);
  });
});

describe('what an abort or a failure leaves is the same for all, watched or not', () => {
  /** What the last message says, in each mode. */
  async function left(options: (abort: () => void) => Partial<AgentOptions>): Promise<unknown[]> {
    const all: unknown[] = [];
    for (const mode of MODES) {
      const controller = new AbortController();
      const given = options(() => controller.abort());
      const result = await outcome(
        mode,
        (observers) => new Agent({ model: scriptedModel([]), ...given, observers }),
        [],
        controller.signal,
      );
      const last = result.messages.at(-1)!;
      all.push([
        result.status,
        last.role === 'assistant' ? last.content.map((part) => textOf({ content: [part] })) : undefined,
      ]);
    }
    return all;
  }
  const held = (guard: Partial<Guard>): Middleware => ({
    name: 'g',
    guard: { on: ['output'], hold: window(10), find: () => [], ...guard },
  });

  it('in a layer around a model that has answered', async () => {
    const aborts = (abort: () => void): Middleware => ({
      name: 'aborts',
      async wrapModel(ctx, next) {
        await next();
        abort();
        throw ctx.signal.reason;
      },
    });
    const kept = await left((abort) => ({
      model: scriptedModel([chunks('Hello there, this is ', 'all of the text that was made.')]),
      middleware: [aborts(abort), held({})],
    }));
    expect(kept).toEqual(MODES.map(() => ['aborted', ['Hello there, this is all of the text that']]));
  });

  it('in a guard that judges after the others', async () => {
    const kept = await left((abort) => ({
      model: scriptedModel([
        chunks('I look it up.', { type: 'tool-call', id: 'a', name: 'f', arguments: '{}' }),
      ]),
      middleware: [
        {
          name: 'j',
          guard: {
            on: ['output', 'tool-args'],
            async judge({ point }) {
              if (point !== 'tool-args') return;
              abort();
              await new Promise((resolve) => setTimeout(resolve, 1));
            },
          },
        },
      ],
    }));
    expect(kept).toEqual(MODES.map(() => ['aborted', ['I look it up.']]));
  });

  it.each([
    [0, 'stopped'],
    [1, 'error'],
  ])('in a model that fails after a guard has objected, with %i layers', async (layers, status) => {
    const kept = await left(() => ({
      model: scriptedModel([
        failWith(new Error('lost'), 'The SECRET is ', 'out, and much more follows here'),
      ]),
      middleware: [
        held({ action: 'block', find }),
        ...(layers
          ? [{ name: 'l', wrapModel: (_: unknown, next: () => Promise<ModelResponse>) => next() }]
          : []),
      ],
    }));
    expect(kept).toEqual(MODES.map(() => [status, undefined]));
  });

  it('in a block that had ended: nothing of it waits any more', async () => {
    const kept = await left((abort) => ({
      model: scriptedModel([
        hang(
          'I will look that up in the register.',
          { type: 'tool-call', id: 'a', name: 'f', arguments: '{}' },
          'And a second block of text.',
        ),
      ]),
      middleware: [
        held({}),
        {
          name: 'aborts',
          beforeModel() {
            setTimeout(abort, 20);
          },
        },
      ],
    }));
    expect(kept).toEqual(
      MODES.map(() => ['aborted', ['I will look that up in the register.', 'And a second bloc']]),
    );
  });
});

describe('events of a child', () => {
  const kid = (guard: Guard, observers: ((event: AgentEvent) => void)[]): Agent => {
    const child = new Agent({
      name: 'kid',
      tools: [make('peek', () => 'SECRET')],
      model: scriptedModel([toolCalls({ name: 'peek' }), 'All is well.']),
    });
    return new Agent({
      model: scriptedModel([toolCalls({ name: 'kid', args: { prompt: 'go' } }), 'ok']),
      middleware: [{ name: 'g', guard }],
      tools: [child.asTool({ name: 'kid', description: 'A child.', inheritGuards: false })],
      observers,
    });
  };
  const throws: Guard['find'] = (text) => {
    if (text.includes('SECRET')) throw new Error('cannot');
    return [];
  };

  it.each([
    ['stops', { on: ['tool-result'], action: 'stop', find }],
    ['blocks', { on: ['tool-result'], action: 'block', find }],
    ['fails', { on: ['tool-result'], find: throws }],
    ['redacts', { on: ['tool-result'], find }],
    ['warns', { on: ['tool-result'], action: 'warn', find }],
  ] satisfies [string, Guard][])('decide nothing, where a guard %s', async (how, guard) => {
    for (const mode of MODES) {
      const seen: AgentEvent[] = [];
      const result = await outcome(mode, (observers) => kid(guard, observers), seen);
      expect([mode, result.status]).toEqual([mode, 'done']);
      expect(toolTexts(result)).toEqual(['All is well.']);
      expect(result.changes).toEqual([]);
      if (how !== 'warns') expect(JSON.stringify(seen)).not.toContain('SECRET');
      if (mode !== 'run') expect(seen.some(({ type }) => type === 'tool_execution_update')).toBe(true);
    }
  });

  it.each([
    ['JSON', '{"text":"a \\u0053ECRET, \\"quoted\\""}', '{"text":"a [redacted], \\"quoted\\""}'],
    ['no JSON', '{"text":"a \\u0053ECRET', '{"text":"a [redacted]'],
  ])(
    'show arguments of calls without what reads like it, however it is escaped: %s',
    async (_, given, left) => {
      const child = new Agent({
        name: 'kid',
        tools: [make('peek', () => 'ok')],
        model: scriptedModel([toolCalls({ name: 'peek', args: given }), 'All is well.']),
      });
      const seen: AgentEvent[] = [];
      await new Agent({
        model: scriptedModel([toolCalls({ name: 'kid', args: { prompt: 'go' } }), 'ok']),
        middleware: [{ name: 'g', guard: { on: ['tool-result'], find } }],
        tools: [child.asTool({ name: 'kid', description: 'A child.' })],
        observers: [(event) => void seen.push(event)],
      }).run('go');
      expect(JSON.stringify(seen)).not.toContain('u0053');
      expect(JSON.stringify(seen)).toContain(JSON.stringify(left));
    },
  );
});

describe('a call that a guard refused', () => {
  const number = tool({
    name: 'x',
    description: 'x',
    input: z.object({ n: z.number() }),
    execute: () => 'ran',
  }) as Tool;
  const broken: Guard = {
    on: ['tool-args'],
    judge() {
      throw new Error('down');
    },
  };
  const denies: Guard = { on: ['tool-args'], judge: () => ({ type: 'deny', reason: 'Not allowed here.' }) };
  const digits: Guard['find'] = (text) =>
    [...text.matchAll(/\d+/g)].map(({ index, 0: found }) => ({ start: index, end: index + found.length }));

  it.each([
    ['A guard failed while judging this call, so it was not run.', [broken]],
    ['Not allowed here.', [denies, { on: ['tool-args'], find: digits }]],
  ] satisfies [string, Guard[]][])('is told as such, not as wrong arguments: %s', async (said, guards) => {
    const result = await new Agent({
      model: scriptedModel([toolCalls({ name: 'x', args: { n: 5 } }), 'ok']),
      tools: [number],
      middleware: guards.map((guard, i) => ({ name: `g${i}`, guard })),
    }).run('go');
    expect(toolTexts(result)).toEqual([said]);
    expect(result.changes).toContainEqual({ turn: 1, by: 'g0', what: 'blocked x' });
  });
});

it('arguments that are not JSON are judged as they read, and stay as they were where nothing is found', async () => {
  const model = scriptedModel([
    chunks(
      { type: 'tool-call', id: 'a', name: 'x', arguments: '{"text":"a \\u0053ECRET' },
      { type: 'tool-call', id: 'b', name: 'x', arguments: '{"text":"a \\u0053afe' },
    ),
    'ok',
  ]);
  const middleware: Middleware[] = [{ name: 'g', guard: { on: ['tool-args'], find } }];
  const result = await new Agent({ model, tools: [make('x', () => 'r')], middleware }).run('go');
  expect(toolCallsOf(result.messages[1]!).map(({ arguments: given }) => given)).toEqual([
    '{"text":"a [redacted]',
    '{"text":"a \\u0053afe',
  ]);
});

describe('what guards said of a call whose arguments they cleaned', () => {
  const denies: Guard = {
    on: ['tool-args'],
    judge: ({ text }) => (text.includes('SECRET') ? { type: 'deny', reason: 'No secrets.' } : undefined),
  };
  const asks: Guard = {
    on: ['tool-args'],
    judge: ({ text }) => (text.includes('SECRET') ? { type: 'ask', request: { title: 'Send?' } } : undefined),
  };
  const cleans: Guard = { on: ['tool-args'], find };
  const blocks: Guard = { on: ['tool-args'], find, action: 'block' };
  const guarding = (guards: readonly Guard[]): Middleware[] =>
    guards.map((guard, i) => ({ name: `g${i}`, guard }));
  const send = (ran: unknown[]) => make('send', (args) => ran.push(args) && 'sent');

  it('is in no event, message or journal entry where what it found refuses the call', async () => {
    for (const mode of MODES) {
      const store = memoryStore();
      const seen: AgentEvent[] = [];
      const ran: unknown[] = [];
      const model = scriptedModel([toolCalls({ name: 'send', args: { to: 'me', text: 'a SECRET' } }), 'ok']);
      const result = await outcome(
        mode,
        (observers) =>
          new Agent({ model, store, observers, tools: [send(ran)], middleware: guarding([blocks]) }),
        seen,
      );
      expect(toolTexts(result)).toEqual(['Refused by guard "g0".']);
      expect(ran).toEqual([]);
      const entries = await store.read(result.sessionId, 1);
      expect(JSON.stringify([seen, entries, result, model.requests])).not.toContain('SECRET');
      expect(toolCallsOf(result.messages[1]!)[0]!.arguments).toBe('{"to":"me","text":"a [redacted]"}');
    }
  });

  it.each<[string, Guard[], string]>([
    ['a refusal', [denies, cleans], 'No secrets.'],
    ['a refusal by what was found', [blocks], 'Refused by guard "g0".'],
  ])('holds over a suspension: %s', async (_, guards, said) => {
    const store = memoryStore();
    const ran: unknown[] = [];
    const pay = make('pay', () => 'paid');
    const approval: Middleware = {
      name: 'approval',
      suspends: true,
      beforeToolCall: (ctx) => (ctx.is(pay) ? { ask: { title: 'Pay?' } } : undefined),
    };
    const model = scriptedModel([
      toolCalls({ name: 'send', args: { text: 'a SECRET' } }, { name: 'pay' }),
      'ok',
    ]);
    const session = () =>
      new Agent({
        model,
        store,
        tools: [send(ran), pay],
        middleware: [...guarding(guards), approval],
      }).session('s');
    const { pending } = await session().run('go');
    const result = await session().resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(toolTexts(result)).toEqual([said, 'paid']);
    expect(ran).toEqual([]);
  });

  it.each<[string, Guard[], string | undefined]>([
    ['a refusal', [denies, cleans], 'No secrets.'],
    ['a question', [asks, cleans], undefined],
  ])('holds over a crash: %s', async (_, guards, said) => {
    const store = memoryStore();
    const ran: unknown[] = [];
    const model = scriptedModel([toolCalls({ name: 'send', args: { text: 'a SECRET' } }), 'ok', 'ok']);
    const session = (kept: Store) =>
      new Agent({ model, store: kept, tools: [send(ran)], middleware: guarding(guards) }).session('s');
    // The message is written, and nothing after it.
    await expect(session(breakingStore(store, 3).store).run('go')).rejects.toThrow('disk full');
    const result = await session(store).resume();
    expect(ran).toEqual([]);
    if (said) expect(toolTexts(result)).toEqual([said]);
    else expect(result.pending).toMatchObject([{ title: 'Send?', toolName: 'send' }]);
  });

  it.each<[string, Guard, string]>([
    ['without what is found in it', { on: ['tool-result'], find }, 'No [redacted].'],
    [
      'in plain words where a guard judges',
      { on: ['tool-result'], judge: () => {} },
      'Refused by guard "g0".',
    ],
    [
      'in plain words where it is refused',
      { on: ['tool-result'], find, action: 'block' },
      'Refused by guard "g0".',
    ],
  ])('is written %s', async (_, guard, said) => {
    const store = memoryStore();
    const model = scriptedModel([toolCalls({ name: 'send', args: {} }), 'ok', 'ok']);
    const refuses: Guard = { on: ['tool-args'], judge: () => ({ type: 'deny', reason: 'No SECRET.' }) };
    const session = (kept: Store) =>
      new Agent({
        model,
        store: kept,
        tools: [send([])],
        middleware: guarding([refuses, guard]),
      }).session('s');
    await expect(session(breakingStore(store, 3).store).run('go')).rejects.toThrow('disk full');
    if (guard.find) expect(JSON.stringify(await store.read('s', 1))).not.toContain('SECRET');
    expect(toolTexts(await session(store).resume())).toEqual([said]);
  });

  it.each<[string, Guard[]]>([
    ['a refusal', [denies, cleans]],
    ['a refusal by what was found', [blocks]],
    ['a question', [asks, cleans]],
  ])('holds where a sink was shown what is left of arguments that a layer wrote: %s', async (_, guards) => {
    const ran: unknown[] = [];
    const shown: unknown[] = [];
    const writes: Middleware = {
      name: 'writes',
      wrapTool: (_ctx, next) => next({ args: { text: 'a SECRET' } }),
    };
    const sink: Middleware = { name: 'sink', sink: true, beforeTool: (ctx) => void shown.push(ctx.args) };
    await new Agent({
      model: scriptedModel([toolCalls({ name: 'send', args: { text: 'x' } }), 'ok']),
      tools: [send(ran)],
      middleware: [...guarding(guards), writes, sink],
    }).run('go');
    expect(shown).toEqual([{ text: 'a [redacted]' }]);
    expect(ran).toEqual([]);
  });

  it.each<[string, Guard[]]>([
    ['a refusal', [denies, cleans]],
    ['a refusal by what was found', [blocks]],
    ['a question', [asks, cleans]],
  ])('holds where what is left of it is put into another response: %s', async (_, guards) => {
    const rebuilt = (response: ModelResponse): ModelResponse => ({
      ...response,
      content: [{ type: 'text', text: 'So be it.' }, ...response.content.map((part) => ({ ...part }))],
    });
    const rebuilding: Middleware[] = [
      { name: 'hook', afterModelResponse: (response) => ({ response: rebuilt(response) }) },
      { name: 'sink', sink: true, wrapModel: async (_ctx, next) => rebuilt(await next()) },
    ];
    for (const mode of MODES)
      for (const middleware of rebuilding) {
        const ran: unknown[] = [];
        const model = scriptedModel([toolCalls({ name: 'send', args: { text: 'a SECRET' } }), 'ok']);
        const agent = (observers: ((event: AgentEvent) => void)[]) =>
          new Agent({
            model,
            observers,
            tools: [send(ran)],
            middleware: [...guarding(guards), middleware],
          });
        const result = await outcome(mode, agent);
        expect(ran).toEqual([]);
        expect(textOf(result.messages[1]!)).toBe('So be it.');
        if (guards[0] === asks) expect(result.pending).toMatchObject([{ title: 'Send?' }]);
        else expect(toolTexts(result)).toHaveLength(1);
      }
  });

  it('does not hold for a call of another answer, or beside it, that has the same id', async () => {
    const again: Middleware = {
      name: 'again',
      async wrapModel(_ctx, next) {
        await next();
        return next();
      },
    };
    for (const middleware of [[], [again]]) {
      const ran: unknown[] = [];
      const secret = { name: 'send', id: 'c', args: { text: 'a SECRET' } };
      const fine = { name: 'send', id: 'c', args: { text: 'hello' } };
      const model = scriptedModel([
        ...(middleware.length > 0 ? [toolCalls(secret), toolCalls(fine)] : [toolCalls(secret, fine)]),
        'ok',
        'ok',
      ]);
      // A sink has every answer judged.
      const sink: Middleware = { name: 'sink', sink: true, wrapModel: (_ctx, next) => next() };
      await new Agent({
        model,
        tools: [send(ran)],
        middleware: [...middleware, sink, ...guarding([denies, cleans])],
      }).run('go');
      expect(ran).toEqual([{ text: 'hello' }]);
    }
  });

  it.each<[string, Guard[]]>([
    ['a refusal', [denies, cleans]],
    ['a refusal by what was found', [blocks]],
    ['a question', [asks, cleans]],
  ])('holds where a hook makes another call of it: %s', async (_, guards) => {
    for (const [crash, more] of [
      [false, {}],
      [false, { copy: true }],
      [true, {}],
    ] as const) {
      const store = memoryStore();
      const ran: unknown[] = [];
      const deferred: Middleware = {
        name: 'deferred',
        resolveToolCall: ({ arguments: given, ...call }) => ({
          toolCall: { ...call, name: 'send', arguments: JSON.stringify({ ...JSON.parse(given), ...more }) },
          tool: send(ran),
        }),
      };
      const model = scriptedModel([toolCalls({ name: 'later', args: { text: 'a SECRET' } }), 'ok', 'ok']);
      const session = (kept: Store) =>
        new Agent({ model, store: kept, middleware: [...guarding(guards), deferred] }).session('s');
      if (crash) await expect(session(breakingStore(store, 3).store).run('go')).rejects.toThrow('disk full');
      const result = await (crash ? session(store).resume() : session(store).run('go'));
      expect(ran).toEqual([]);
      if (guards[0] === asks) expect(result.pending).toMatchObject([{ title: 'Send?', toolName: 'send' }]);
      else
        expect(toolTexts(result)).toEqual([guards[0] === denies ? 'No secrets.' : 'Refused by guard "g0".']);
    }
  });

  it.each<[string, Middleware[]]>([
    [
      'a layer inside a sink',
      [
        { name: 'writes', wrapTool: (_ctx, next) => next({ args: { text: 'a SECRET' } }) },
        { name: 'sink', sink: true, wrapTool: (_ctx, next) => next() },
        {
          name: 'extends',
          wrapTool: (ctx, next) => next({ args: { ...(ctx.rawArgs as object), to: 'me' } }),
        },
      ],
    ],
    [
      'a layer that has asked',
      [
        {
          name: 'writes',
          async wrapTool(ctx, next) {
            ctx.args = { text: 'a SECRET' };
            await ctx.suspend({ title: 'Really?', onRequest: () => ({ type: 'approve' }) });
            ctx.args = { ...(ctx.rawArgs as object), to: 'me' };
            return next();
          },
        },
      ],
    ],
  ])('holds for what is made of the rest of arguments: %s', async (_, layers) => {
    for (const guards of [[denies, cleans], [blocks], [asks, cleans]]) {
      const ran: unknown[] = [];
      const result = await new Agent({
        model: scriptedModel([toolCalls({ name: 'send', args: { text: 'x' } }), 'ok']),
        tools: [send(ran)],
        middleware: [...layers, ...guarding(guards)],
      }).run('go');
      expect(result.status).toBe(guards[0] === asks ? 'suspended' : 'done');
      expect(ran).toEqual([]);
    }
  });

  it('holds where a hook that resolves calls assigned arguments, which are not its to assign', async () => {
    const ran: unknown[] = [];
    const meddles: Middleware = {
      name: 'meddles',
      resolveToolCall: (_call, ctx) => {
        ctx.args = { text: 'mine' };
      },
    };
    const result = await new Agent({
      model: scriptedModel([toolCalls({ name: 'send', args: { text: 'a SECRET' } }), 'ok']),
      tools: [send(ran)],
      middleware: [meddles, ...guarding([asks, cleans])],
    }).run('go');
    expect(result.pending).toMatchObject([{ title: 'Send?' }]);
    expect(ran).toEqual([]);
  });

  describe.each<[string, Guard[], string | undefined]>([
    ['a refusal', [denies, cleans], 'No secrets.'],
    ['a refusal by what was found', [blocks], 'Refused by guard "g0".'],
    ['a question', [asks, cleans], undefined],
  ])('holds for what they left of it: %s', (_, guards, said) => {
    const copied = ({ content, ...rest }: ModelResponse, args?: string): ModelResponse => ({
      ...rest,
      content: content.map((part) =>
        part.type === 'tool-call' ? { ...part, arguments: args ?? part.arguments } : part,
      ),
    });
    const sink: Middleware = { name: 'sink', sink: true, wrapModel: (_ctx, next) => next() };

    it.each<[string, Middleware[]]>([
      ['afterModelResponse', [{ name: 'x', afterModelResponse: (given) => ({ response: copied(given) }) }]],
      [
        'afterModelResponse, with other arguments',
        [{ name: 'x', afterModelResponse: (given) => ({ response: copied(given, '{"to":"me"}') }) }],
      ],
      ['a layer around a sink', [{ name: 'x', wrapModel: async (_ctx, next) => copied(await next()) }, sink]],
      ['a sink', [{ ...sink, wrapModel: async (_ctx, next) => copied(await next()) }]],
      [
        'a transform around a sink',
        [
          { name: 'x', beforeModel: (ctx) => ctx.transform(() => ({ part: (part, emit) => emit(part) })) },
          sink,
        ],
      ],
    ])('in a response that %s made', async (_how, middleware) => {
      for (const mode of MODES) {
        const ran: unknown[] = [];
        const model = scriptedModel([toolCalls({ name: 'send', args: { text: 'a SECRET' } }), 'ok']);
        const result = await outcome(
          mode,
          (observers) =>
            new Agent({
              model,
              observers,
              tools: [send(ran)],
              middleware: [...middleware, ...guarding(guards)],
            }),
        );
        if (said) expect(toolTexts(result)).toEqual([said]);
        else expect(result.pending).toMatchObject([{ title: 'Send?' }]);
        expect(ran).toEqual([]);
      }
    });
  });

  it.each<[string, Guard[], string | undefined]>([
    ['a refusal', [denies, cleans], 'No secrets.'],
    ['a refusal by what was found', [blocks], 'Refused by guard "g0".'],
    ['a question', [asks, cleans], undefined],
  ])('holds where a hook says which tool is meant: %s', async (_, guards, said) => {
    const store = memoryStore();
    const ran: unknown[] = [];
    const renames: Middleware = {
      name: 'renames',
      resolveToolCall: (toolCall) => ({ toolCall: { ...toolCall, name: 'send' } }),
    };
    const call = toolCalls({ name: 'Send', args: { text: 'a SECRET' } });
    const session = (kept: Store, ...script: Script[]) =>
      new Agent({
        model: scriptedModel(script),
        store: kept,
        tools: [send(ran)],
        middleware: [renames, ...guarding(guards)],
      }).session('s');
    // The message is written, and nothing after it.
    await expect(session(breakingStore(store, 3).store, call, 'ok').run('go')).rejects.toThrow('disk full');
    const resumed = await session(store, 'ok').resume();
    for (const result of [resumed, await session(memoryStore(), call, 'ok').run('go')]) {
      if (said) expect(toolTexts(result)).toEqual([said]);
      else expect(result.pending).toMatchObject([{ title: 'Send?', toolName: 'send' }]);
    }
    expect(ran).toEqual([]);
  });
});

describe('arguments that middleware writes', () => {
  const strict = tool({ name: 'act', description: 'act', input: z.strictObject({}), execute: () => 'done' });
  const args = { SECRET: 1 };
  const cleans: Middleware = { name: 'cleans', guard: { on: ['tool-args'], find } };
  const left = async (given: Tool, ...middleware: Middleware[]) => {
    const store = memoryStore();
    const seen: AgentEvent[] = [];
    const model = scriptedModel([toolCalls({ name: 'act' }), 'ok']);
    const observers = [(event: AgentEvent) => void seen.push(event)];
    const agent = new Agent({ model, store, observers, tools: [given], middleware: [...middleware, cleans] });
    const result = await agent.run('go');
    const entries = await store.read(result.sessionId, 1);
    expect(JSON.stringify([seen, entries, result, model.requests])).not.toContain('SECRET');
    return result;
  };

  it.each<[string, Middleware]>([
    [
      'resolveToolCall',
      { resolveToolCall: (toolCall) => ({ toolCall: { ...toolCall, arguments: JSON.stringify(args) } }) },
    ],
    ['beforeToolCall', { beforeToolCall: () => ({ args }) }],
    ['a layer', { wrapTool: (_ctx, next) => next({ args }) }],
  ])('are judged before a schema can quote them: %s', async (_, writes) => {
    const result = await left(strict as Tool, { name: 'writes', ...writes });
    expect(toolTexts(result)[0]).toContain('Unrecognized key: "[redacted]"');
  });

  it('are judged as text where a hook brings some that are no JSON', async () => {
    const result = await left(strict as Tool, {
      name: 'writes',
      resolveToolCall: (toolCall) => ({ toolCall: { ...toolCall, arguments: 'SECRET' } }),
    });
    expect(toolTexts(result)[0]).toContain('not valid JSON');
  });

  it.each<[string, Middleware[]]>([
    [
      'assigned',
      [
        {
          name: 'asks',
          async wrapTool(ctx, next) {
            ctx.args = args;
            await ctx.suspend({ title: 'Really?' });
            return next();
          },
        },
      ],
    ],
    [
      'handed inward',
      [
        { name: 'writes', wrapTool: (_ctx, next) => next({ args }) },
        {
          name: 'asks',
          async wrapTool(ctx, next) {
            await ctx.suspend({ title: 'Really?' });
            return next();
          },
        },
      ],
    ],
  ])('are judged before somebody is asked about them: %s', async (_, asking) => {
    const ran: unknown[] = [];
    const act = make('act', (given) => ran.push(given) && 'done');
    const { pending } = await left(act, ...asking);
    expect(pending).toMatchObject([{ title: 'Really?', arguments: '{"[redacted]":1}' }]);
    // Answered at once, it goes on with what is left.
    const onRequest = () => ({ type: 'approve' as const });
    const middleware = [...asking, cleans];
    const model = scriptedModel([toolCalls({ name: 'act' }), 'ok']);
    await new Agent({ model, tools: [act], middleware, onRequest }).run('go');
    expect(ran).toEqual([{ '[redacted]': 1 }]);
  });
});

it('probabilities of tokens go with what was found beside them, in details too', async () => {
  const details = { says: 'a SECRET', logprobs: [{ token: 'SEC' }, { token: 'RET' }], kept: 1 };
  const result = await new Agent({
    model: scriptedModel([toolCalls({ name: 'x' }), 'ok']),
    tools: [make('x', () => toolResult({ content: 'r', details }))],
    middleware: [{ name: 'g', guard: { on: ['tool-result'], find } }],
  }).run('go');
  const message = result.messages.find(({ role }) => role === 'tool') as { details?: unknown };
  expect(message.details).toEqual({ says: 'a [redacted]', kept: 1 });
});

describe('what a hook returns', () => {
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const slow: Middleware = {
    name: 'slow',
    guard: {
      on: ['input', 'output', 'tool-result'],
      async judge({ text }) {
        await wait(5);
        return text.includes('SECRET') ? { type: 'deny', reason: 'No.' } : undefined;
      },
    },
  };

  it.each(['acceptMessage', 'afterModelResponse', 'afterToolCall'] as const)(
    'cannot be edited while guards judge it: %s',
    async (hook) => {
      const part = { type: 'text' as const, text: 'fine' };
      const edited = (): unknown => {
        setTimeout(() => {
          try {
            part.text = 'SECRET';
          } catch {
            // It is frozen.
          }
        }, 1);
        if (hook === 'acceptMessage') return { role: 'user', content: [part] };
        if (hook === 'afterToolCall') return { content: [part] };
        return { response: { role: 'assistant', content: [part], stopReason: 'stop' } };
      };
      const result = await new Agent({
        model: scriptedModel(hook === 'afterToolCall' ? [toolCalls({ name: 'x' }), 'ok'] : ['ok']),
        tools: [make('x', () => 'r')],
        middleware: [{ name: 'edits', [hook]: edited }, slow],
      }).run('go');
      expect(result.status).toBe('done');
      expect(JSON.stringify(result.messages)).not.toContain('SECRET');
      expect(result.messages.map(textOf)).toContain('fine');
    },
  );
});

describe('a message that its middleware changes between turns', () => {
  it.each(['transformContext', 'convertToLlm', 'beforeModel'] as const)(
    'is judged anew: %s',
    async (hook) => {
      const part = { type: 'text' as const, text: 'nothing yet' };
      const note = { role: 'user', content: [part] } as unknown as Message;
      const withNote = (messages: readonly Message[], turn: number): readonly Message[] => {
        if (turn === 2) part.text = 'a SECRET';
        return [...messages, note];
      };
      const changing: Middleware =
        hook === 'beforeModel'
          ? {
              name: 'changing',
              beforeModel(ctx) {
                ctx.messages = withNote(ctx.messages, ctx.turn);
              },
            }
          : {
              name: 'changing',
              [hook]: (messages: readonly Message[], ctx: { turn: number }) => withNote(messages, ctx.turn),
            };
      const sent: string[] = [];
      const scripted = scriptedModel([toolCalls({ name: 'x' }), 'ok']);
      const model: Model = {
        provider: 'p',
        id: 'i',
        stream(request, options) {
          sent.push(textOf(request.messages.at(-1)!));
          return scripted.stream(request, options);
        },
      };
      await new Agent({
        model,
        tools: [make('x', () => 'r')],
        middleware: [changing, { name: 'g', guard: { on: ['request'], find } }],
      }).run('go');
      expect(sent).toEqual(['nothing yet', 'a [redacted]']);
    },
  );
});
