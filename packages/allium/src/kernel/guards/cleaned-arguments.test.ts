// What guards said of a call whose arguments they cleaned, and what middleware writes there.

import {
  Agent,
  type AgentEvent,
  type Guard,
  type Middleware,
  type ModelResponse,
  memoryStore,
  type Store,
  type Tool,
  textOf,
  tool,
  toolCallsOf,
} from 'allium';
import { type Script, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { find, MODES, make, outcome, toolTexts } from '../../../../../test/guard-calls-setup.js';
import { breakingStore } from '../../../../../test/run-checks.js';

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

  it('is in no event, message or journal entry if the guard refuses the call', async () => {
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
  ])('holds if a sink was shown the cleaned arguments that a layer wrote: %s', async (_, guards) => {
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
  ])('holds if the cleaned call is put into another response: %s', async (_, guards) => {
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
  ])('holds if a hook turns it into another call: %s', async (_, guards) => {
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
  ])('holds for whatever is made from the cleaned arguments: %s', async (_, layers) => {
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

  it('holds if resolveToolCall assigns arguments, which it may not', async () => {
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
  ])('holds for the cleaned call: %s', (_, guards, said) => {
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
  ])('holds if a hook says which tool is meant: %s', async (_, guards, said) => {
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

  it('are judged as text if they are not JSON', async () => {
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
  ])('are judged before a person is asked about them: %s', async (_, asking) => {
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
