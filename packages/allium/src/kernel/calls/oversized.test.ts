/** Values that are very deep or very long: a call with them gets an error result, and the session goes on. */
import {
  Agent,
  type AssistantMessage,
  assistantMessage,
  defineMiddleware,
  type GuardPoint,
  memoryStore,
  requestKey,
  textOf,
  tool,
  toolResult,
  userMessage,
} from 'allium';
import { chunks, collect, type ScriptStep, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { canonicalJson } from '../lib/hash.js';
import { deepFreeze } from '../messages/messages.js';

const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const long = `{"a":${JSON.stringify('x "quoted" \\ '.repeat(800_000))}}`;
const HUGE: readonly [string, string][] = [
  ['10,000 levels', deep(10_000)],
  ['100,000 levels', deep(100_000)],
  ['10 MB', long],
];

const POINTS: GuardPoint[] = ['input', 'request', 'output', 'thinking', 'tool-args', 'tool-result', 'final'];
const guard = defineMiddleware({
  name: 'guard',
  guard: {
    on: POINTS,
    find: (given) => [...given.matchAll(/secret/g)].map((m) => ({ start: m.index, end: m.index + 6 })),
  },
});
const ran: unknown[] = [];
const look = tool({
  name: 'look',
  description: '',
  input: z.object({ a: z.any() }),
  execute: ({ a }) => {
    ran.push(a);
    return 'seen';
  },
});
const call = (args: string): ScriptStep =>
  chunks({ type: 'tool-call', id: 'c1', name: 'look', arguments: args });
const inPieces = (args: string): ScriptStep =>
  chunks(
    { type: 'tool-call', id: 'c1', name: 'look', arguments: '' },
    ...[0, 1, 2, 3].map((i) => ({
      type: 'tool-call-delta' as const,
      id: 'c1',
      arguments: args.slice((i * args.length) / 4, ((i + 1) * args.length) / 4),
    })),
  );

describe.each([
  ['without guards', []],
  ['under guards', [guard]],
])('%s', (_, middleware) => {
  describe.each(HUGE)('arguments of %s', (_name, args) => {
    it.each([
      ['whole', call],
      ['in pieces', inPieces],
    ])('that come %s are answered with an error, and the session goes on', async (_how, step) => {
      ran.length = 0;
      const model = scriptedModel([step(args), text('I see.'), text('Still here.')]);
      const agent = new Agent({ model, store: memoryStore(), tools: [look], middleware });
      const session = agent.session('s');
      const { events, result } = await collect(session.stream('go'));
      expect(result).toMatchObject({ status: 'done', text: 'I see.' });
      const [, asked, answered] = result!.messages;
      expect(answered).toMatchObject({ role: 'tool', isError: true });
      expect(textOf(answered!)).toMatch(
        /The arguments of "look" were not accepted: they are (nested|longer)/,
      );
      expect(JSON.stringify(asked).length).toBeLessThan(1000);
      expect(ran).toEqual([]);
      // What was shown since the last reset is what the message says.
      let shown = '';
      for (const event of events) {
        if (event.type === 'message_reset') shown = '';
        if (event.type === 'message_update' && event.delta.type === 'tool-call')
          shown += event.delta.arguments;
      }
      expect(shown).toBe((asked!.content[0] as { arguments: string }).arguments);
      expect(await session.run('and now?')).toMatchObject({ status: 'done', text: 'Still here.' });
    });

    it('of a preset response, or in a history from elsewhere, do no harm', async () => {
      const preset = defineMiddleware({
        name: 'preset',
        beforeModel(ctx) {
          if (ctx.turn === 1)
            ctx.response = assistantMessage([{ type: 'tool-call', id: 'p', name: 'look', arguments: args }]);
        },
      });
      const agent = new Agent({
        model: scriptedModel([text('I see.'), text('Still here.')]),
        store: memoryStore(),
        tools: [look],
        middleware: [preset, ...middleware],
      });
      const result = await agent.run([
        userMessage('before'),
        { ...assistantMessage([{ type: 'tool-call', id: 'old', name: 'look', arguments: args }]), id: '' },
        { id: '', role: 'tool', toolCallId: 'old', toolName: 'look', content: [], isError: false },
        userMessage('go'),
      ]);
      expect(result).toMatchObject({ status: 'done', text: 'I see.' });
      expect(result.messages.filter(({ role }) => role === 'tool').at(-1)).toMatchObject({ isError: true });
    });
  });

  it('a result whose details are too deep is an error result', async () => {
    for (const levels of [1500, 10_000, 100_000]) {
      const details: unknown = JSON.parse(deep(levels));
      const fetch = tool({
        name: 'fetch',
        description: '',
        input: z.object({}),
        execute: () => toolResult({ content: 'fine', details }),
      });
      const model = scriptedModel([toolCalls({ name: 'fetch', args: {} }), text('I see.'), text('And on.')]);
      const agent = new Agent({ model, store: memoryStore(), tools: [fetch], middleware });
      const session = agent.session('s');
      const result = await session.run('go');
      expect(result).toMatchObject({ status: 'done', text: 'I see.' });
      expect(result.messages[2]).toMatchObject({ role: 'tool', isError: true });
      expect(await session.run('more')).toMatchObject({ text: 'And on.' });
    }
  });

  it('results and input of 10 MB are text like any other', async () => {
    const much = 'x "quoted" \\ '.repeat(800_000);
    const fetch = tool({ name: 'fetch', description: '', input: z.object({}), execute: () => much });
    const model = scriptedModel([toolCalls({ name: 'fetch', args: {} }), text('I see.')]);
    const agent = new Agent({ model, tools: [fetch], middleware });
    const result = await agent.run(much);
    expect(result).toMatchObject({ status: 'done', text: 'I see.' });
    expect(result.messages.map((message) => textOf(message).length)).toContain(much.length);
  });

  it('input that is too deep is refused with a code, and nothing is written', async () => {
    const agent = new Agent({ model: scriptedModel([text('Fine.')]), store: memoryStore(), middleware });
    const session = agent.session('s');
    for (const levels of [1500, 10_000, 100_000]) {
      const metadata = JSON.parse(deep(levels));
      await expect(session.run(userMessage('hi', metadata))).rejects.toMatchObject({
        code: 'INVALID_MESSAGE',
      });
      const nested = JSON.parse(`${'['.repeat(levels)}"hi"${']'.repeat(levels)}`);
      await expect(session.run(nested)).rejects.toMatchObject({ code: 'INVALID_MESSAGE' });
    }
    expect(await session.run('hi')).toMatchObject({ text: 'Fine.' });
  });
});

describe('limits.argsDepth and limits.argsChars', () => {
  it("limit the depth and length of a call's arguments", async () => {
    const answerOf = async (limits: object, args: string) => {
      const model = scriptedModel([call(args), text('done')]);
      const { messages } = await new Agent({ model, tools: [look], limits }).run('go');
      return textOf(messages[2]!);
    };
    expect(await answerOf({ argsDepth: 3 }, '{"a":[[1]]}')).toBe('seen');
    expect(await answerOf({ argsDepth: 3 }, '{"a":[[[1]]]}')).toContain('nested more than 3 levels deep');
    expect(await answerOf({ argsDepth: 3 }, '{"a":"[[[[[["}')).toBe('seen');
    expect(await answerOf({ argsDepth: 900 }, deep(900))).toBe('seen');
    expect(await answerOf({ argsDepth: Number.POSITIVE_INFINITY }, deep(5000))).toContain(
      'more than 1000 levels',
    );
    expect(await answerOf({ argsChars: 20 }, '{"a":"123456789012"}')).toBe('seen');
    expect(await answerOf({ argsChars: 20 }, '{"a":"1234567890123"}')).toContain('longer than 20 characters');
    expect(await answerOf({ argsChars: Number.POSITIVE_INFINITY }, long)).toBe('seen');
  });

  it('are checked', () => {
    expect(() => new Agent({ model: scriptedModel([]), limits: { argsDepth: -1 } })).toThrow(
      'limits.argsDepth',
    );
    expect(() => new Agent({ model: scriptedModel([]), limits: { argsChars: 1.5 } })).toThrow(
      'limits.argsChars',
    );
  });
});

describe('what reads values', () => {
  it('does not care how deep they are', () => {
    const value = JSON.parse(deep(100_000));
    expect(canonicalJson(value)).toBe(deep(100_000));
    expect(Object.isFrozen(deepFreeze(value).a.a.a)).toBe(true);
    const response = { ...assistantMessage([{ type: 'provider', kind: 'k', value }]), id: '1' };
    const model = { provider: 'p', id: 'm' };
    expect(requestKey({ model, messages: [response] })).toHaveLength(22);
  });

  it('notices a cycle', () => {
    const cycle: Record<string, unknown> = {};
    cycle.a = { b: [cycle] };
    expect(() => canonicalJson(cycle)).toThrow('cycles');
  });
});

describe('a journal written before there were limits', () => {
  it('can be continued, whatever its messages hold', async () => {
    const store = memoryStore();
    const args = deep(100_000);
    const value = JSON.parse(deep(100_000));
    const [runId, at, v] = ['r', 1, 1];
    const said: AssistantMessage = {
      ...assistantMessage([
        { type: 'provider', kind: 'k', value },
        { type: 'tool-call', id: 'c', name: 'look', arguments: args },
      ]),
      id: 'r.2',
    };
    await store.append('s', 0, [
      { v, at, type: 'run_start', runId, plan: ['guard'] },
      { v, at, type: 'message', runId, message: { ...userMessage('go'), id: 'r.1' } },
      { v, at, type: 'message', runId, message: said },
    ]);
    const model = scriptedModel([text('On we go.'), text('And on.')]);
    const session = new Agent({ model, store, tools: [look], middleware: [guard] }).session('s');
    const result = await session.resume();
    expect(result).toMatchObject({ status: 'done', text: 'On we go.' });
    expect(textOf(result.messages[2]!)).toContain('nested more than 100 levels deep');
    expect(await session.run('more')).toMatchObject({ status: 'done', text: 'And on.' });
    // Nobody could search it.
    expect(model.requests[0]!.messages[1]!.content[0]).toMatchObject({ type: 'provider', value: null });
  });
});
