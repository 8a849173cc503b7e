import { inspect } from 'node:util';
import {
  Agent,
  type AssistantMessage,
  assistantMessage,
  attribution,
  defineMiddleware,
  defineState,
  type Guard,
  type GuardPoint,
  type Message,
  type Middleware,
  type Model,
  type ModelPart,
  type ModelResponse,
  memoryStore,
  NO_USAGE,
  type RunError,
  textOf,
  tool,
  toolResult,
  userMessage,
  type Verdict,
  window,
} from 'allium';
import { chunks, collect, hang, type Script, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const find = (pattern: RegExp) => (given: string) =>
  [...given.matchAll(pattern)].map((m) => ({ start: m.index, end: m.index + m[0].length }));
const guarding = (name: string, guard: Guard, more: Partial<Middleware> = {}): Middleware =>
  defineMiddleware({ name, guard, ...more });
const redacting = (on: GuardPoint[], more: Partial<Guard> = {}): Middleware =>
  guarding('redact', { on, find: find(/SECRET/g), ...more });
const judging = (on: GuardPoint[], judge: Guard['judge'], more: Partial<Middleware> = {}): Middleware =>
  guarding('judge', { on, judge }, more);

const calls: unknown[] = [];
const act = tool({
  name: 'act',
  description: 'Acts.',
  input: z.any(),
  execute(args) {
    calls.push(args);
    return 'did SECRET';
  },
});

function agentOf(script: readonly Script[], ...middleware: Middleware[]) {
  calls.length = 0;
  const model = scriptedModel(script);
  const store = memoryStore();
  const agent = new Agent({ model, store, middleware, tools: [act] });
  return { model, store, agent, session: agent.session('s') };
}

const resultTexts = (messages: readonly { role: string; content: readonly { type: string }[] }[]): string[] =>
  messages.filter(({ role }) => role === 'tool').map(textOf);

describe('guards run wherever they stand in the list', () => {
  const cache = defineMiddleware({
    name: 'cache',
    wrapModel: () => ({ role: 'assistant', content: [{ type: 'text', text: 'SECRET' }], stopReason: 'stop' }),
  });

  it.each([
    ['first', [redacting(['output']), cache]],
    ['last', [cache, redacting(['output'])]],
  ])('%s', async (_, middleware) => {
    await expect(agentOf([], ...middleware).agent.run('hi')).resolves.toMatchObject({ text: '[redacted]' });
  });

  it('per run', async () => {
    await expect(
      agentOf(['SECRET']).agent.run('hi', { middleware: [redacting(['output'])] }),
    ).resolves.toMatchObject({ text: '[redacted]' });
  });

  it('in list order among themselves', async () => {
    const one = guarding('one', { on: ['output'], find: find(/a/g), replacement: 'b' });
    const two = guarding('two', { on: ['output'], find: find(/b/g), replacement: 'c' });
    expect((await agentOf(['ab'], one, two).agent.run('hi')).text).toBe('cc');
    expect((await agentOf(['ab'], two, one).agent.run('hi')).text).toBe('bc');
  });
});

describe('what guards have judged', () => {
  type Text = { text: string };
  const edit = (content: readonly object[]): void => {
    (content[0] as Text).text = 'the SECRET again';
  };

  it.each<[string, Middleware]>([
    ['acceptMessage', { acceptMessage: ({ content }) => edit(content) }],
    ['afterModelResponse', { afterModelResponse: ({ content }) => edit(content) }],
    ['ctx.message', { afterModelResponse: (_, { message }) => edit(message!.content) }],
    ['a sink', { sink: true, afterModelResponse: ({ content }) => edit(content) }],
    ['afterToolCall', { afterToolCall: ({ result }) => edit(result!.content) }],
  ])('cannot be edited in place: %s', async (_, hooks) => {
    const swap: Middleware = {
      afterModelResponse: (response) => ({
        response: hooks.sink ? assistantMessage('SECRET') : response,
      }),
    };
    const { agent, session } = agentOf(
      [toolCalls({ name: 'act', text: 'a SECRET' }), 'b SECRET'],
      swap,
      defineMiddleware({ name: 'editing', ...hooks }),
      redacting(['input', 'output', 'tool-result']),
    );
    await agent
      .session('s')
      .run('c SECRET')
      .catch(() => undefined);
    const said = (await session.messages()).map(textOf).join();
    expect(said).not.toContain('SECRET');
  });
});

describe('deny beats ask beats rewrite beats allow', () => {
  const verdicts: Record<string, Verdict> = {
    deny: { type: 'deny', reason: 'no' },
    ask: { type: 'ask', request: { title: 'Sure?' } as never },
    rewrite: { type: 'rewrite', args: { q: 'rewritten' } },
    allow: { type: 'allow' },
  };
  const orders = [
    ['deny', 'ask', 'rewrite', 'allow'],
    ['allow', 'rewrite', 'ask', 'deny'],
    ['ask', 'deny', 'allow', 'rewrite'],
  ];
  const guards = (names: readonly string[]) =>
    names.map((name) => guarding(name, { on: ['tool-args'], judge: () => verdicts[name]! }));

  it.each(orders)('deny wins among %s, %s, %s, %s: nobody is asked, nothing runs', async (...names) => {
    const { agent } = agentOf([toolCalls({ name: 'act', args: { q: 1 } }), 'end'], ...guards(names));
    const { status, messages } = await agent.run('hi');
    expect(status).toBe('done');
    expect(resultTexts(messages)).toEqual(['no']);
    expect(calls).toEqual([]);
  });

  it.each([
    ['rewrite', 'ask'],
    ['ask', 'rewrite'],
  ])('ask wins over rewrite (%s, %s), about the rewritten arguments', async (...names) => {
    const { session } = agentOf(
      [toolCalls({ name: 'act', args: { q: 1 } }), 'end'],
      ...guards([...names, 'allow']),
    );
    const { status, pending } = await session.run('hi');
    expect(status).toBe('suspended');
    expect(pending[0]!.arguments).toBe('{"q":"rewritten"}');
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(calls).toEqual([{ q: 'rewritten' }]);
  });

  it('rewrite wins over allow', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 1 } }), 'end'],
      ...guards(['allow', 'rewrite', 'allow']),
    );
    await agent.run('hi');
    expect(calls).toEqual([{ q: 'rewritten' }]);
  });

  it('at response points: a later deny wins over an earlier rewrite', async () => {
    const { agent } = agentOf(
      ['hi'],
      judging(['output'], () => ({ type: 'rewrite', text: 'x' })),
      guarding('no', { on: ['output'], judge: () => ({ type: 'deny', reason: 'never' }) }),
    );
    await expect(agent.run('hi')).resolves.toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', message: 'never', by: 'no' },
    });
  });

  it('a refused call is cleaned by the guards before and after the one that refuses', async () => {
    const no = guarding('no', { on: ['tool-args'], judge: () => ({ type: 'deny', reason: 'no' }) });
    const first = guarding('first', { on: ['tool-args'], find: find(/ONE/g) });
    const last = guarding('last', { on: ['tool-args'], find: find(/TWO/g) });
    const { agent } = agentOf([toolCalls({ name: 'act', args: { q: 'ONE TWO' } }), 'end'], first, no, last);
    const { messages } = await agent.run('hi');
    expect(JSON.stringify(messages)).not.toMatch(/ONE|TWO/);
    expect(resultTexts(messages)).toEqual(['no']);
  });
});

describe('actions', () => {
  it.each<[GuardPoint, 'block' | 'stop']>([
    ['input', 'block'],
    ['output', 'block'],
    ['output', 'stop'],
    ['tool-result', 'block'],
    ['tool-result', 'stop'],
  ])('a refusal is noted: %s, %s', async (point, action) => {
    const { agent } = agentOf([toolCalls({ name: 'act' }), 'SECRET'], redacting([point], { action }));
    const { changes } = await agent.run(point === 'input' ? 'SECRET' : 'hi');
    expect(changes.map(({ by, what }) => [by, what])).toEqual([['redact', `refused ${point}`]]);
  });

  it('a call that is refused is noted once by its guard, and once as blocked', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { a: 'SECRET' } }), 'ok'],
      redacting(['tool-args'], { action: 'block' }),
    );
    expect((await agent.run('hi')).changes).toMatchObject([
      { by: 'redact', what: 'refused tool-args' },
      { by: 'redact', what: 'blocked act' },
    ]);
  });

  it.each(['window', 'full'] as const)(
    'redact puts the replacement of the span, of the guard, or [redacted] (%s)',
    async (kind) => {
      const hold = kind === 'full' ? ('full' as const) : window(8);
      const own = guarding('own', {
        on: ['output'],
        hold,
        find: (given) => find(/SECRET/g)(given).map((span) => ({ ...span, replacement: '<own>' })),
        replacement: '<guard>',
      });
      expect((await agentOf(['a SECRET b'], own).agent.run('hi')).text).toBe('a <own> b');
      expect(
        (await agentOf(['a SECRET b'], redacting(['output'], { hold, replacement: '' })).agent.run('hi'))
          .text,
      ).toBe('a  b');
      expect((await agentOf(['a SECRET b'], redacting(['output'], { hold })).agent.run('hi')).text).toBe(
        'a [redacted] b',
      );
    },
  );

  it.each([
    ['block', 'window'],
    ['block', 'full'],
    ['stop', 'window'],
    ['stop', 'full'],
  ] as const)('%s refuses a response: the run stops with reason guardrail (%s)', async (action, kind) => {
    const guard = redacting(['output'], { action, hold: kind === 'full' ? 'full' : window(8) });
    for (const watched of [true, false]) {
      const { session, store } = agentOf([chunks('a long beginning, then SEC', 'RET and more')], guard);
      const result = watched ? (await collect(session.stream('hi'))).result! : await session.run('hi');
      expect(result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', by: 'redact' },
        text: '',
      });
      expect(result.messages.map(({ role }) => role)).toEqual(['user']);
      expect(JSON.stringify(await store.read('s', 0))).not.toContain('beginning');
    }
  });

  it('block refuses a call; the run goes on', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 'SECRET' } }), 'end'],
      redacting(['tool-args'], { action: 'block' }),
    );
    const { text: said, messages } = await agent.run('hi');
    expect([said, calls]).toEqual(['end', []]);
    expect(resultTexts(messages)[0]).toContain('Refused by guard "redact"');
  });

  it('stop at the arguments ends the run, and nothing of the response stays', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 'SECRET' } })],
      redacting(['tool-args'], { action: 'stop' }),
    );
    const { stop, messages } = await agent.run('hi');
    expect(stop).toMatchObject({ reason: 'guardrail', by: 'redact' });
    expect(messages).toHaveLength(1);
    expect(calls).toEqual([]);
  });

  it('block withholds a result, details and all; stop ends the run as well', async () => {
    const detailed = tool({
      name: 'detailed',
      description: 'D.',
      input: z.any(),
      execute: () => toolResult({ content: 'fine', details: { raw: 'SECRET' } }),
    });
    const run = (action: 'block' | 'stop') =>
      new Agent({
        model: scriptedModel([toolCalls({ name: 'detailed' }), 'end']),
        tools: [detailed],
        middleware: [redacting(['tool-result'], { action })],
      }).run('hi');
    const blocked = await run('block');
    expect([blocked.text, JSON.stringify(blocked.messages)]).toEqual([
      'end',
      expect.not.stringContaining('SECRET'),
    ]);
    const stopped = await run('stop');
    expect(stopped.stop).toMatchObject({ reason: 'guardrail' });
    expect(JSON.stringify(stopped.messages)).not.toContain('SECRET');
    expect(stopped.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  });

  it.each([[1], [3], [50]])('warn only reports, once per match, for chunks of %i', async (size) => {
    const said = 'SECRET and SECRET again, and lastly SECRET.';
    const pieces = said.match(new RegExp(`.{1,${size}}`, 'g'))!;
    for (const hold of ['full' as const, window(8)]) {
      const { agent } = agentOf([chunks(...pieces)], redacting(['output'], { action: 'warn', hold }));
      const { events, result } = await collect(agent.stream('hi'));
      expect(result!.text).toBe(said);
      const warnings = events.filter((one) => one.type === 'custom');
      expect(warnings).toHaveLength(3);
      expect(warnings[0]).toMatchObject({ name: 'guard_warning', by: 'redact', data: { point: 'output' } });
    }
  });

  it('a judge under warn refuses nothing either', async () => {
    const { agent } = agentOf(
      ['hi'],
      guarding('dry-run', {
        on: ['output'],
        action: 'warn',
        judge: () => ({ type: 'deny', reason: 'would refuse' }),
      }),
    );
    const { events, result } = await collect(agent.stream('hi'));
    expect(result!.text).toBe('hi');
    expect(events.filter((one) => one.type === 'custom')).toHaveLength(1);
  });

  it('result.changes tells who acted', async () => {
    const { changes } = await agentOf(['SECRET'], redacting(['output'])).agent.run('hi');
    expect(changes).toMatchObject([{ turn: 1, by: 'redact', what: 'redacted output' }]);
  });
});

describe('a guard that fails', () => {
  const boom = new Error('cannot judge SECRET');
  const throwing = (): never => {
    throw boom;
  };
  const after = (count: number) => {
    let left = count;
    return (given: string) => (left-- > 0 ? find(/SECRET/g)(given) : throwing());
  };
  const kinds: [string, () => Partial<Guard>][] = [
    ['find, at once', () => ({ find: throwing, hold: window(4) })],
    ['find, mid-stream', () => ({ find: after(1), hold: window(4) })],
    ['find, at the end', () => ({ find: throwing, hold: 'full' })],
    ['judge', () => ({ judge: throwing })],
    ['judge, later', () => ({ judge: async () => throwing() })],
    ['an invalid span', () => ({ find: () => [{ start: 5, end: 2 }], hold: window(4) })],
    ['an invalid verdict', () => ({ judge: () => ({ type: 'maybe' }) as never })],
  ];

  describe.each(kinds)('closed: %s', (_, how) => {
    it.each([true, false])(
      'nothing more is released and the run fails with GUARD_FAILED (watched: %s)',
      async (watched) => {
        const released = 'x'.repeat(24);
        const { session, store } = agentOf(
          [chunks(released, released, 'SECRET', released), 'second'],
          guarding('broken', { on: ['output'], ...how() }),
        );
        const { events = [], error } = watched
          ? await collect(session.stream('hi'))
          : await session.run('hi').then(
              () => ({ error: undefined, events: [] }),
              (error: RunError) => ({ error, events: [] }),
            );
        expect(error).toMatchObject({ code: 'GUARD_FAILED', result: { status: 'error' } });
        expect(error!.message).toContain('"broken"');
        expect(error!.message).not.toContain('SECRET');
        expect(attribution(error!.cause)).toMatchObject({ middleware: 'broken', hook: 'guard' });
        expect(
          JSON.stringify([events.filter(({ type }) => type !== 'agent_end'), await store.read('s', 0)]),
        ).not.toContain('SECRET');
        expect(error!.result.messages.map(({ role }) => role)).toEqual(['user']);
      },
    );

    it('no layer gets past it by trying again', async () => {
      const stubborn = defineMiddleware({
        name: 'stubborn',
        wrapModel: (_ctx, next) =>
          next()
            .catch(() => next())
            .catch(
              () =>
                ({
                  role: 'assistant',
                  content: [{ type: 'text', text: 'SECRET' }],
                  stopReason: 'stop',
                }) as const,
            ),
      });
      const { agent, model } = agentOf(
        ['x'.repeat(30), 'second', 'third'],
        stubborn,
        guarding('broken', { on: ['output'], ...how() }),
      );
      const { error } = await collect(agent.stream('hi'));
      expect(error).toMatchObject({ code: 'GUARD_FAILED' });
      expect(model.requests).toHaveLength(1);
    });
  });

  it('the original object is the cause', async () => {
    const failure = await agentOf(['hi'], judging(['output'], throwing))
      .agent.run('hi')
      .catch((error) => error);
    expect(failure.cause).toBe(boom);
  });

  it.each(kinds)('open: %s — that guard is skipped, the others are not', async (_, how) => {
    const filler = 'x'.repeat(60);
    const broken = guarding('broken', { on: ['output'], ...how() }, { onFail: 'open' });
    const { agent } = agentOf(
      [chunks(filler, 'a SEC', 'RET b', filler)],
      broken,
      redacting(['output'], { hold: window(8) }),
    );
    const { result } = await collect(agent.stream('hi'));
    expect(result!.text).toBe(`${filler}a [redacted] b${filler}`);
    expect(
      result!.changes.some(({ by, what }) => by === 'broken' && what.startsWith('failed and was skipped')),
    ).toBe(true);
  });

  it('at tool-args refuses the call and withholds its arguments; the run goes on', async () => {
    const { agent, model } = agentOf(
      [
        chunks(
          { type: 'tool-call', id: 'a', name: 'act', arguments: '{"q":"SECRET"}' },
          { type: 'tool-call', id: 'b', name: 'act', arguments: 'SECRET' },
        ),
        'end',
      ],
      judging(['tool-args'], throwing),
    );
    const { events, result } = await collect(agent.stream('hi'));
    expect(result!.text).toBe('end');
    expect(calls).toEqual([]);
    expect(JSON.stringify([events, model.requests[1]!.messages])).not.toContain('SECRET');
  });

  it('at tool-result withholds the result; the run goes on', async () => {
    const { agent } = agentOf([toolCalls({ name: 'act' }), 'end'], judging(['tool-result'], throwing));
    const { events, result } = await collect(agent.stream('hi'));
    expect(result!.text).toBe('end');
    expect(JSON.stringify(events)).not.toContain('SECRET');
    expect(result!.messages[2]).toMatchObject({ role: 'tool', isError: true });
  });

  it('at input keeps the message out; at request sends nothing', async () => {
    for (const point of ['input', 'request'] as const) {
      const { agent, model } = agentOf(['hi'], judging([point], throwing));
      await expect(agent.run('SECRET')).rejects.toMatchObject({ code: 'GUARD_FAILED', cause: boom });
      expect(model.requests).toHaveLength(0);
    }
  });
});

/** A history as somebody brings it along, with the secret in everything it says. */
const history: readonly Message[] = [
  userMessage('q'),
  {
    id: '',
    role: 'assistant',
    stopReason: 'tool-calls',
    metadata: { note: 'SECRET', n: 1 },
    content: [
      { type: 'thinking', text: 'think SECRET', signature: 'sealed' },
      { type: 'text', text: 'say SECRET', metadata: { note: 'SECRET' } },
      { type: 'provider', kind: 'source', value: { url: 'SECRET' } },
      { type: 'tool-call', id: 'c1', name: 'act', arguments: '{"a": "SECRET", "n": 1}' },
      { type: 'tool-call', id: 'c2', name: 'act', arguments: '{"a": "SECRET' },
      { type: 'tool-call', id: 'c3', name: 'act', arguments: '{"a":"SECRET","a":1}' },
    ],
  },
  ...['c1', 'c2', 'c3'].map(
    (toolCallId): Message => ({
      id: '',
      role: 'tool',
      toolCallId,
      toolName: 'act',
      content: [{ type: 'text', text: 'got SECRET' }],
      isError: false,
      details: toolCallId === 'c3' ? new Map([['raw', 'SECRET']]) : { raw: 'SECRET', n: 1 },
    }),
  ),
  userMessage('go'),
];

describe('input', () => {
  it('all that an imported history says is judged', async () => {
    const { model, store, session } = agentOf(['ok'], redacting(['input']));
    const { events } = await collect(session.stream(history));
    const journal = await store.read('s', 0);
    expect(inspect([events, journal, model.requests], { depth: null })).not.toContain('SECRET');
    const [, assistant, first, , third] = await session.messages();
    expect(assistant).toMatchObject({
      metadata: { note: '[redacted]', n: 1 },
      content: [
        { type: 'thinking', text: 'think [redacted]', redacted: true },
        { text: 'say [redacted]' },
        { value: { url: '[redacted]' } },
        { arguments: '{"a":"[redacted]","n":1}' },
        { arguments: '{"a": "[redacted]' },
        { arguments: '{"a":1}' },
      ],
    });
    expect(assistant!.content[0]).not.toHaveProperty('signature');
    expect(first).toMatchObject({ details: { raw: '[redacted]', n: 1 } });
    expect(third).toMatchObject({ details: {} });
    // Thinking without its seal is not sent back.
    expect(model.requests[0]!.messages[1]!.content[0]).toMatchObject({ type: 'text' });
  });

  it('a judge sees all of it, and what it rewrites is all that is left', async () => {
    const texts: string[] = [];
    const { session } = agentOf(
      ['ok'],
      judging(['input'], ({ text: given }) => {
        texts.push(given);
        return given.includes('SECRET') ? { type: 'rewrite', text: 'gone' } : undefined;
      }),
    );
    await session.run(history);
    const [, assistant, first] = await session.messages();
    expect(texts[1]).toBe('think SECRET\nsay SECRET\nurl\nSECRET\na\nSECRET\nn\n1\n{"a": "SECRET\na\n1');
    expect(assistant).toMatchObject({ metadata: { n: 1 } });
    expect(assistant!.content).toEqual([
      { type: 'text', text: 'gone' },
      { type: 'tool-call', id: 'c1', name: 'act', arguments: '{}' },
      { type: 'tool-call', id: 'c2', name: 'act', arguments: '{}' },
      { type: 'tool-call', id: 'c3', name: 'act', arguments: '{}' },
    ]);
    // Details are for applications: a judge that writes its text anew must not put them before the model.
    expect(texts[2]).toBe('got SECRET');
    expect(textOf(first!)).toBe('gone');
    expect(first).not.toHaveProperty('details');
  });

  it('details alone are a reason to refuse', async () => {
    const { session, model } = agentOf(['ok'], redacting(['input'], { action: 'block' }));
    const call = { type: 'tool-call', id: 'c', name: 'act', arguments: '{}' } as const;
    const told = { toolCallId: 'c', toolName: 'act', content: [], isError: false, details: ['SECRET'] };
    const { stop } = await session.run([
      userMessage('q'),
      { id: '', role: 'assistant', stopReason: 'tool-calls', content: [call] },
      { id: '', role: 'tool', ...told },
      userMessage('go'),
    ]);
    expect(stop).toMatchObject({ reason: 'guardrail', by: 'redact' });
    expect(model.requests).toHaveLength(0);
  });

  it('a message without text gets the text of the judge', async () => {
    const call = { type: 'tool-call', id: 'c1', name: 'act', arguments: '{"a":"SECRET"}' } as const;
    const { session } = agentOf(
      ['ok'],
      judging(['input'], ({ message }) =>
        message!.role === 'assistant' ? { type: 'rewrite', text: 'gone' } : undefined,
      ),
    );
    await session.run([
      userMessage('q'),
      { id: '', role: 'assistant', stopReason: 'tool-calls', content: [call] },
      { id: '', role: 'tool', toolCallId: 'c1', toolName: 'act', content: [], isError: false },
      userMessage('go'),
    ]);
    expect((await session.messages())[1]!.content).toEqual([
      { type: 'text', text: 'gone' },
      { ...call, arguments: '{}' },
    ]);
  });

  it('is rewritten before it is appended, sent or told', async () => {
    const { session, store, model } = agentOf(['ok'], redacting(['input']));
    const { events } = await collect(session.stream('my SECRET'));
    expect(JSON.stringify([events, await store.read('s', 0), model.requests[0]!.messages])).not.toContain(
      'SECRET',
    );
    expect(textOf(model.requests[0]!.messages[0]!)).toBe('my [redacted]');
  });

  it('that is refused stops the run before the model is called', async () => {
    const { agent, model } = agentOf(['ok'], redacting(['input'], { action: 'block' }));
    await expect(agent.run('my SECRET')).resolves.toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', by: 'redact' },
      messages: [],
    });
    expect(model.requests).toHaveLength(0);
  });

  it('judges every text of a message, images aside', async () => {
    const { agent, model } = agentOf(['ok'], redacting(['input']));
    await agent.run([
      { type: 'text', text: 'SECRET 1' },
      { type: 'image', data: 'AA', mimeType: 'image/png' },
      { type: 'text', text: 'SECRET 2' },
    ]);
    expect(model.requests[0]!.messages[0]!.content).toMatchObject([
      { text: '[redacted] 1' },
      { type: 'image' },
      { text: '[redacted] 2' },
    ]);
  });

  it('steering and follow-ups pass it too', async () => {
    const { session, model } = agentOf(
      [
        (_, call) => {
          void session.followUp('SECRET later');
          return text(`${call}`);
        },
        'end',
      ],
      redacting(['input']),
    );
    await session.run('hi');
    expect(model.requests[1]!.messages.map(textOf)).toEqual(['hi', '1', '[redacted] later']);
  });
});

describe('request', () => {
  it('covers calls, thinking and details of earlier turns; the history keeps them', async () => {
    const { model, session } = agentOf(
      [
        chunks(
          { type: 'thinking', text: 'SECRET', signature: 'sealed' },
          { type: 'tool-call', id: 'c', name: 'act', arguments: '{"a":"SECRET"}' },
        ),
        'ok',
      ],
      redacting(['request']),
    );
    await session.run('hi');
    expect(JSON.stringify(model.requests)).not.toContain('SECRET');
    expect(model.requests[1]!.messages[1]!.content).toEqual([
      { type: 'tool-call', id: 'c', name: 'act', arguments: '{"a":"[redacted]"}' },
    ]);
    expect((await session.messages())[1]!.content).toMatchObject([
      { text: 'SECRET', signature: 'sealed' },
      { arguments: '{"a":"SECRET"}' },
    ]);
  });

  describe('system prompt', () => {
    const script = [toolCalls({ name: 'act' }), toolCalls({ name: 'act' }), 'ok'];
    const agentWith = (middleware: Middleware[], systemPrompt = 'Be SECRET.') => {
      const model = scriptedModel(script);
      return { model, agent: new Agent({ model, tools: [act], middleware, systemPrompt }) };
    };
    const prompts = (model: { requests: readonly { systemPrompt?: string }[] }) =>
      model.requests.map(({ systemPrompt }) => systemPrompt);

    it('is judged, once while it stays the same', async () => {
      let judged = 0;
      const judge = judging(['request'], ({ message }) => void (message || judged++));
      const { agent, model } = agentWith([judge, redacting(['request'])]);
      await agent.run('hi');
      expect(prompts(model)).toEqual(Array(3).fill('Be [redacted].'));
      expect(judged).toBe(1);
    });

    it('is judged as middleware leaves it', async () => {
      const { agent, model } = agentWith([
        { name: 'turns', transformSystemPrompt: (_, ctx) => `SECRET ${ctx.turn}` },
        redacting(['request']),
      ]);
      await agent.run('hi');
      expect(prompts(model)).toEqual(['[redacted] 1', '[redacted] 2', '[redacted] 3']);
    });

    it('is a reason to send nothing', async () => {
      const { agent, model } = agentWith([redacting(['request'], { action: 'block' })]);
      await expect(agent.run('hi')).resolves.toMatchObject({ stop: { reason: 'guardrail', by: 'redact' } });
      expect(model.requests).toHaveLength(0);
    });
  });

  it('changes what is sent, not what is kept', async () => {
    const { session, model } = agentOf(['ok'], redacting(['request']));
    await session.run('my SECRET');
    expect(textOf(model.requests[0]!.messages[0]!)).toBe('my [redacted]');
    expect((await session.messages()).map(textOf)).toEqual(['my SECRET', 'ok']);
  });

  it('judges each message once, however many turns there are', async () => {
    const judged: string[] = [];
    const script = [...Array.from({ length: 5 }, (_, i) => toolCalls({ name: 'act', id: `c${i}` })), 'end'];
    const { agent, model } = agentOf(
      script,
      judging(['request'], (subject) => void judged.push(subject.message!.role)),
      redacting(['request']),
    );
    await agent.run('hi');
    expect(judged).toHaveLength(11);
    expect(model.requests.at(-1)!.messages).toHaveLength(11);
    expect(JSON.stringify(model.requests.map(({ messages }) => messages))).not.toContain('SECRET');
  });

  it('judges messages that a layer or transform put in its place', async () => {
    const swap = defineMiddleware({
      name: 'swap',
      transformContext: (messages) => [
        ...messages,
        { id: '', role: 'user', content: [{ type: 'text', text: 'SECRET' }] },
      ],
    });
    const { agent, model } = agentOf(['ok'], swap, redacting(['request']));
    await agent.run('hi');
    expect(model.requests[0]!.messages.map(textOf)).toEqual(['hi', '[redacted]']);
  });

  it('that refuses stops the run with reason guardrail; retrying does not help', async () => {
    const again = defineMiddleware({ name: 'again', wrapModel: (_, next) => next().catch(() => next()) });
    const { agent, model } = agentOf(['ok', 'ok'], again, redacting(['request'], { action: 'block' }));
    await expect(agent.run('my SECRET')).resolves.toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', by: 'redact' },
    });
    expect(model.requests).toHaveLength(0);
  });

  it('judges once when two attempts ask at the same time', async () => {
    let judged = 0;
    const both = defineMiddleware({
      name: 'both',
      wrapModel: async (_, next) => (await Promise.all([next(), next()]))[0],
    });
    const { agent } = agentOf(
      ['a', 'b'],
      both,
      judging(['request'], () => void judged++),
    );
    await agent.run('hi');
    expect(judged).toBe(1);
  });
});

describe('thinking', () => {
  const thought = [
    { type: 'thinking', text: 'the SECRET is', signature: 'seal' },
    { type: 'text', text: 'ok' },
  ] as const;

  it('that is redacted loses its signature and is not sent back', async () => {
    const { session, model } = agentOf([thought, 'end'], redacting(['thinking']));
    const { messages } = await session.run('hi');
    expect(messages[1]!.content[0]).toEqual({ type: 'thinking', text: 'the [redacted] is', redacted: true });
    await session.run('again');
    expect(model.requests[1]!.messages[1]!.content).toEqual([{ type: 'text', text: 'ok' }]);
  });

  it('that is left alone keeps its signature and is sent back', async () => {
    const { session, model } = agentOf(
      [thought, 'end'],
      redacting(['output', 'thinking'], { find: find(/nothing/g) }),
    );
    await session.run('hi');
    await session.run('again');
    expect(model.requests[1]!.messages[1]!.content).toEqual(thought);
  });

  it('is not judged by a guard of the output, nor text by one of the thinking', async () => {
    const both = [
      { type: 'thinking', text: 'SECRET' },
      { type: 'text', text: 'SECRET' },
    ] as const;
    expect(
      (await agentOf([both], redacting(['output'])).agent.run('hi')).messages[1]!.content.map(
        (part) => 'text' in part && part.text,
      ),
    ).toEqual(['SECRET', '[redacted]']);
    expect(
      (await agentOf([both], redacting(['thinking'])).agent.run('hi')).messages[1]!.content.map(
        (part) => 'text' in part && part.text,
      ),
    ).toEqual(['[redacted]', 'SECRET']);
  });
});

describe('tool-args', () => {
  it('are held until the call is complete', async () => {
    const call = chunks(
      'text first',
      { type: 'tool-call', id: 'a', name: 'act', arguments: '{"q":' },
      { type: 'tool-call-delta', id: 'a', arguments: '"SEC' },
      { type: 'tool-call-delta', id: 'a', arguments: 'RET"}' },
    );
    const { agent } = agentOf([call, 'end'], redacting(['tool-args']));
    const { events } = await collect(agent.stream('hi'));
    const deltas = events.flatMap((one) =>
      one.type === 'message_update' && one.delta.type === 'tool-call' ? [one.delta.arguments] : [],
    );
    expect(deltas).toEqual(['{"q":"[redacted]"}']);
  });

  it('stream as they come when nothing guards them', async () => {
    const call = chunks(
      { type: 'tool-call', id: 'a', name: 'act', arguments: '{"q":' },
      { type: 'tool-call-delta', id: 'a', arguments: '1}' },
    );
    const { events } = await collect(agentOf([call, 'end'], redacting(['output'])).agent.stream('hi'));
    expect(
      events.flatMap((one) =>
        one.type === 'message_update' && one.delta.type === 'tool-call' ? [one.delta.arguments] : [],
      ),
    ).toEqual(['{"q":', '1}']);
  });

  it('are judged parsed: escapes, any depth, keys and numbers', async () => {
    const guard = redacting(['tool-args'], { find: find(/SECRET|4111/g) });
    const args = '{"a":["\\u0053ECRET",{"b":{"SECRET":[4111,41110,true,null]}}]}';
    const { agent } = agentOf([toolCalls({ name: 'act', args }), 'end'], guard);
    await agent.run('hi');
    expect(calls).toEqual([
      { a: ['[redacted]', { b: { '[redacted]': ['[redacted]', '[redacted]0', true, null] } }] },
    ]);
  });

  it('that nothing was found in stay exactly as the model wrote them', async () => {
    const written = '{ "q" : "caf\\u00e9",\n "n": 1.0 }';
    const { agent } = agentOf([toolCalls({ name: 'act', args: written }), 'end'], redacting(['tool-args']));
    const { messages } = await agent.run('hi');
    expect(messages[1]!.content[0]).toMatchObject({ arguments: written });
  });

  it('hide nothing behind a key that repeats', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: '{"q":"SECRET","q":"ok"}' }), 'end'],
      redacting(['tool-args']),
    );
    const { messages } = await agent.run('hi');
    expect(messages[1]!.content[0]).toMatchObject({ arguments: '{"q":"ok"}' });
  });

  it('that are not JSON are judged as text', async () => {
    const { agent, model } = agentOf(
      [toolCalls({ name: 'act', args: '{"q": SECRET' }), 'end'],
      redacting(['tool-args']),
    );
    await agent.run('hi');
    expect(model.requests[1]!.messages[1]!.content[0]).toMatchObject({ arguments: '{"q": [redacted]' });
    expect(calls).toEqual([]);
  });

  it('that are not JSON may be rewritten into some that are', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: 'q=1' }), 'end'],
      judging(['tool-args'], ({ args }) =>
        args === undefined ? { type: 'rewrite', args: { q: 1 } } : undefined,
      ),
    );
    await agent.run('hi');
    expect(calls).toEqual([{ q: 1 }]);
  });

  it('execution gets the judged arguments, which are the ones persisted', async () => {
    const { session, store } = agentOf(
      [toolCalls({ name: 'act', args: { q: 1 } }), 'end'],
      judging(['tool-args'], () => ({ type: 'rewrite', args: { q: 2 } })),
    );
    await session.run('hi');
    expect(calls).toEqual([{ q: 2 }]);
    expect(JSON.stringify(await store.read('s', 0))).not.toContain('{\\"q\\":1}');
  });

  it('a judge is told the call, its parsed arguments and its texts', async () => {
    const seen: unknown[] = [];
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 'x' } }), 'end'],
      judging(
        ['tool-args'],
        ({ toolCall, args, text: given, point }) => void seen.push([toolCall!.name, args, given, point]),
      ),
    );
    await agent.run('hi');
    expect(seen).toEqual([['act', { q: 'x' }, 'q\nx', 'tool-args']]);
  });
});

describe('what a guard removed is not told beside the text either', () => {
  const quoting = (part: object, metadata: object): Model => ({
    provider: 'p',
    id: 'm',
    async *stream() {
      yield part as ModelPart;
      yield { type: 'text', text: 'fine', block: 'b', metadata: { seal: 'kept' } };
      yield { type: 'finish', reason: 'stop', usage: NO_USAGE, metadata } as ModelPart;
    },
  });
  const metadata = {
    cacheHit: true,
    openai: { id: 'a', note: 'SECRET', logprobs: [{ token: 'SEC' }, { token: 'RET' }] },
  };
  const answer = async (model: Model, ...middleware: Middleware[]) => {
    const store = memoryStore();
    const { events, result } = await collect(
      new Agent({ model, store, middleware }).session('s').stream('hi'),
    );
    const told = JSON.stringify([events, await store.read('s', 0)]);
    return { message: result!.messages[1] as AssistantMessage, leaks: /SEC|RET/.test(told) };
  };

  it.each([
    ['text', { type: 'text', text: 'SECRET', metadata: { quote: 'SECRET' } }],
    ['thinking', { type: 'thinking', text: 'SECRET', signature: 's', metadata: { quote: 'SECRET' } }],
  ])('metadata of the block and the response: %s', async (_, part) => {
    const sinks: unknown[] = [];
    const sink = defineMiddleware({
      name: 'sink',
      sink: true,
      afterModel: (ctx) => void sinks.push(ctx.response),
    });
    const { message, leaks } = await answer(
      quoting(part, metadata),
      sink,
      redacting(['output', 'thinking'], { hold: window(6) }),
    );
    expect(leaks || /SEC|RET/.test(JSON.stringify(sinks))).toBe(false);
    expect(message.content[0]).not.toHaveProperty('metadata');
    expect(message.content[1]).toMatchObject({ metadata: { seal: 'kept' } });
    expect(message.metadata).toEqual({ cacheHit: true, openai: { id: 'a', note: '[redacted]' } });
  });

  it('metadata stays as it is when nothing is in it', async () => {
    const plain = { id: 'm1', logprobs: [{ token: 'h' }, { token: 'm' }] };
    const { message } = await answer(
      quoting({ type: 'text', text: 'hm', metadata: { a: 1 } }, plain),
      redacting(['output']),
    );
    expect(message.metadata).toEqual(plain);
    expect(message.content[0]).toMatchObject({ metadata: { a: 1 } });
  });

  it('metadata is searched although the text is clean: of the response, and of its parts', async () => {
    const { message, leaks } = await answer(
      quoting(
        { type: 'text', text: 'hm', metadata: { quote: 'SECRET' } },
        { a: { note: 'it is SECRET' }, n: 1 },
      ),
      redacting(['output']),
    );
    expect(message.metadata).toEqual({ a: { note: 'it is [redacted]' }, n: 1 });
    expect(message.content[0]).toEqual({ type: 'text', text: 'hm' });
    expect(leaks).toBe(false);
  });

  it('after a rewrite of a judge no text of the metadata stays', async () => {
    const { message } = await answer(
      quoting({ type: 'text', text: 'hm' }, { cacheHit: true, a: { note: 'about hm', n: 1 } }),
      judging(['output'], () => ({ type: 'rewrite', text: 'ah' })),
    );
    expect(message.metadata).toEqual({ cacheHit: true, a: { n: 1 } });
  });

  it('metadata that a layer put on the same response later', async () => {
    const layer = defineMiddleware({
      name: 'layer',
      afterModel(ctx) {
        ctx.response = { ...ctx.response!, metadata: { late: 'SECRET' } };
      },
    });
    const model = quoting({ type: 'text', text: 'SECRET' }, {});
    expect((await answer(model, layer, redacting(['output']))).message.metadata).toEqual({
      late: '[redacted]',
    });
  });

  it('a guard that fails on metadata ends the run', async () => {
    const broken = guarding('broken', {
      on: ['output'],
      find(given) {
        if (given === 'note') throw new Error('SECRET');
        return find(/SECRET/g)(given);
      },
    });
    const model = quoting({ type: 'text', text: 'SECRET' }, metadata);
    await expect(new Agent({ model, middleware: [broken] }).run('hi')).rejects.toMatchObject({
      code: 'GUARD_FAILED',
    });
  });

  describe('content of the provider', () => {
    const source = {
      type: 'provider',
      kind: 'source',
      value: { url: 'https://x/SECRET', rank: 1 },
      metadata: { quote: 'SECRET' },
    };

    it('is searched at output', async () => {
      const { message, leaks } = await answer(quoting(source, metadata), redacting(['output']));
      expect(message.content[0]).toEqual({
        type: 'provider',
        kind: 'source',
        value: { url: 'https://x/[redacted]', rank: 1 },
      });
      expect(leaks).toBe(false);
    });

    it('is kept as it is when nothing was found', async () => {
      const plain = { ...source, value: { url: 'https://x' }, metadata: { a: 1 } };
      const { message } = await answer(quoting(plain, {}), redacting(['output']));
      expect(message.content[0]).toEqual(plain);
    });

    it('is a reason to refuse the response', async () => {
      const agent = new Agent({
        model: quoting(source, {}),
        middleware: [redacting(['output'], { action: 'block' })],
      });
      await expect(agent.run('hi')).resolves.toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', by: 'redact' },
      });
    });
  });
});

describe('numbers in arguments that JavaScript cannot hold', () => {
  const card = '6222021000123456781';
  const cards = guarding('cards', { on: ['tool-args'], find: find(/\d{19}/g) });

  it('are judged as they are written', async () => {
    const { session, store } = agentOf(
      [toolCalls({ name: 'act', args: `{"card":${card},"n":1.0}` }), 'end'],
      cards,
    );
    await session.run('hi');
    expect(calls).toEqual([{ card: '[redacted]', n: 1 }]);
    expect(JSON.stringify(await store.read('s', 0))).not.toContain(card);
  });

  it('stay as they are if nobody objects', async () => {
    const args = `{"id": ${card}, "n": 1.0}`;
    const { agent } = agentOf([toolCalls({ name: 'act', args }), 'end'], redacting(['tool-args']));
    const { messages } = await agent.run('hi');
    expect(messages[1]!.content[0]).toMatchObject({ arguments: args });
    expect(calls).toEqual([{ id: Number(card), n: 1 }]);
  });
});

describe('tool-result', () => {
  it('is cleaned before it is told, kept or sent, and judged once with sinks around', async () => {
    let judged = 0;
    const seen: string[] = [];
    const sink = defineMiddleware({
      name: 'sink',
      sink: true,
      wrapTool: async (_, next) => void seen.push(textOf(await next())),
    });
    const { agent } = agentOf(
      [toolCalls({ name: 'act' }), 'end'],
      sink,
      { ...sink, name: 'sink2' },
      redacting(['tool-result']),
      judging(['tool-result'], () => void judged++),
    );
    const { messages } = await agent.run('hi');
    expect(resultTexts(messages)).toEqual(['did [redacted]']);
    expect(seen).toEqual(['did [redacted]', 'did [redacted]']);
    expect(judged).toBe(1);
  });

  it('updates are cleaned; under a judge none is shown, because none can wait for it', async () => {
    const chatty = tool({
      name: 'chatty',
      description: 'C.',
      input: z.any(),
      execute(_, ctx) {
        ctx.update('half SECRET');
        return 'done';
      },
    });
    const updates = async (...middleware: Middleware[]) => {
      const { events } = await collect(
        new Agent({
          model: scriptedModel([toolCalls({ name: 'chatty' }), 'end']),
          tools: [chatty],
          middleware,
        }).stream('hi'),
      );
      return events.flatMap((one) =>
        one.type === 'tool_execution_update' ? [textOf({ content: one.update })] : [],
      );
    };
    expect(await updates(redacting(['tool-result']))).toEqual(['half [redacted]']);
    expect(await updates(redacting(['tool-result'], { action: 'block' }))).toEqual([]);
    expect(await updates(judging(['tool-result'], () => undefined))).toEqual([]);
  });

  it('details go when a judge rewrote the text', async () => {
    const detailed = tool({
      name: 'detailed',
      description: 'D.',
      input: z.any(),
      execute: () => toolResult({ content: 'SECRET', details: { raw: 'SECRET' } }),
    });
    const { messages } = await new Agent({
      model: scriptedModel([toolCalls({ name: 'detailed' }), 'end']),
      tools: [detailed],
      middleware: [judging(['tool-result'], () => ({ type: 'rewrite', text: 'nothing' }))],
    }).run('hi');
    expect(messages[2]).toMatchObject({ content: [{ text: 'nothing' }] });
    expect(messages[2]).not.toHaveProperty('details');
  });

  const circular: Record<string, unknown> = { raw: 'SECRET' };
  circular.self = circular;
  it.each<[string, unknown, unknown]>([
    ['a map', new Map([['raw', 'SECRET']]), {}],
    ['an error', { error: new Error('SECRET'), n: 1 }, { error: {}, n: 1 }],
    ['a value that hides what it holds', { raw: 'SECRET', toJSON: () => ({ n: 1 }) }, { n: 1 }],
    ['a circular value', circular, undefined],
    ['a bigint', { raw: 'SECRET', n: 1n }, undefined],
  ])(
    'details that are %s are told as the JSON they are stored as, or not at all',
    async (_, details, told) => {
      const detailed = tool({
        name: 'detailed',
        description: 'D.',
        input: z.any(),
        execute(_, ctx) {
          ctx.update('half', details);
          return toolResult({ content: 'all', details });
        },
      });
      const { events, result } = await collect(
        new Agent({
          model: scriptedModel([toolCalls({ name: 'detailed' }), 'end']),
          tools: [detailed],
          middleware: [redacting(['tool-result'])],
        }).stream('hi'),
      );
      const seen = [result?.messages[2], events.find(({ type }) => type === 'tool_execution_update')];
      expect(seen.map((one) => (one as { details?: unknown }).details)).toEqual([told, told]);
    },
  );

  /** What became of two calls, and whether the secret is anywhere. */
  async function batch(middleware: Middleware[], first = 'act') {
    const { model, store, session } = agentOf(
      [toolCalls({ name: first, id: 'a' }, { name: 'act', id: 'b' }), 'end'],
      ...middleware,
    );
    const { events, result } = await collect(session.stream('hi'));
    const requests = model.requests.map(({ messages }) => messages);
    const leaks = /SECRET/.test(JSON.stringify([events, requests, await store.read('s', 0)]));
    return { texts: resultTexts(result?.messages ?? []), leaks };
  }
  const plain = 'Not run: the run was stopped.';
  const answers: [string, string, NonNullable<Middleware['beforeToolCall']>][] = [
    ['preset', 'It is', () => ({ result: toolResult({ content: 'It is SECRET', details: 'SECRET' }) })],
    ['blocked', 'No', () => ({ block: true, reason: 'No SECRET' })],
    [
      'failed',
      '"act" was not completed: middleware "hook" failed: Oh',
      () => {
        throw new Error('Oh SECRET');
      },
    ],
  ];

  describe.each(answers)('of a call that was %s', (_, said, beforeToolCall) => {
    const stopping: Middleware = {
      name: 'hook',
      beforeToolCall: (ctx) =>
        ctx.toolCall.id === 'a' ? beforeToolCall(ctx) : ctx.stop('stopped', 'enough'),
    };

    it('is cleaned in the verdict as well', async () => {
      const { texts, leaks } = await batch([{ name: 'hook', beforeToolCall }, redacting(['tool-result'])]);
      expect({ texts, leaks }).toEqual({ texts: Array(2).fill(`${said} [redacted]`), leaks: false });
    });

    it('is cleaned although the batch breaks off', async () => {
      const { texts, leaks } = await batch([stopping, redacting(['tool-result'])]);
      expect(texts).toEqual([`${said} [redacted]`, 'Not run: the run was stopped: enough']);
      expect(leaks).toBe(false);
    });

    it('is judged once, and nothing is once the run stops', async () => {
      let judged = 0;
      const judge = judging(['tool-result'], ({ text }) => {
        judged++;
        return { type: 'rewrite', text: text.replace('SECRET', '[x]') };
      });
      const whole = await batch([{ name: 'hook', beforeToolCall }, judge]);
      expect({ ...whole, judged }).toEqual({ texts: Array(2).fill(`${said} [x]`), leaks: false, judged: 2 });
      const broken = await batch([stopping, judge]);
      expect({ ...broken, judged }).toEqual({ texts: [`${said} [x]`, plain], leaks: false, judged: 3 });
    });
  });

  it('gives way to plain words when the run stops before a judge has seen it', async () => {
    const stops: Middleware = { name: 'stops', beforeToolCall: (ctx) => ctx.stop('stopped', 'SECRET') };
    const judge = judging(['tool-result'], () => undefined);
    expect((await batch([stops, judge], 'SECRET')).texts).toEqual([plain, plain]);
  });

  it('is cleaned when the run stops before anything has seen the call', async () => {
    const early: Middleware = { name: 'early', resolveToolCall: (_, ctx) => ctx.stop('stopped', 'SECRET') };
    const cleaned = 'Not run: the run was stopped: [redacted]';
    expect((await batch([early, redacting(['tool-result'])])).texts).toEqual([cleaned, cleaned]);
  });

  it('gives way to plain words when the run stops and the guard fails', async () => {
    const stops: Middleware = { name: 'stops', beforeToolCall: (ctx) => ctx.stop('stopped', 'SECRET') };
    const broken = guarding('broken', {
      on: ['tool-result'],
      find: () => {
        throw new Error('SECRET');
      },
    });
    expect((await batch([stops, broken])).texts).toEqual([plain, plain]);
  });

  it('of a call that stops the run is cleaned', async () => {
    const stop: Middleware = { name: 'stop', wrapTool: (ctx) => ctx.stop('stopped', 'SECRET') };
    const { texts } = await batch([stop, redacting(['tool-result'])]);
    expect(texts).toEqual(['Stopped: [redacted]', 'Not run: the run was stopped: [redacted]']);
  });

  it('that afterToolCall makes of a failure of its own is judged like any other', async () => {
    const hook: Middleware = {
      name: 'hook',
      afterToolCall() {
        throw new Error('SECRET of mine');
      },
    };
    const said = '"act" was not completed: middleware "hook" failed: [redacted] of mine';
    expect(await batch([hook, redacting(['tool-result'])])).toEqual({ texts: [said, said], leaks: false });
    const denying = judging(['tool-result'], ({ text }) =>
      text.includes('of mine') ? { type: 'deny', reason: 'denied' } : undefined,
    );
    expect((await batch([hook, denying])).texts).toEqual(['denied', 'denied']);
  });

  it('that one afterToolCall wrote before another stopped the run is cleaned, or withheld under a judge', async () => {
    const writes: Middleware = { name: 'writes', afterToolCall: () => ({ content: 'SECRET again' }) };
    const stops: Middleware = { name: 'stops', afterToolCall: (ctx) => ctx.stop() };
    const cleaned = await batch([writes, stops, redacting(['tool-result'])]);
    expect(cleaned).toEqual({ texts: ['[redacted] again', '[redacted] again'], leaks: false });
    const judge = judging(['tool-result'], () => undefined);
    const { texts } = await batch([writes, stops, judge]);
    expect(texts).toEqual(['The result was withheld.', 'The result was withheld.']);
  });
});

describe('final', () => {
  it('is only for answers without tool calls', async () => {
    const judged: string[] = [];
    const { agent } = agentOf(
      [toolCalls({ name: 'act', text: 'calling' }), 'the end'],
      judging(['final'], ({ text: given }) => void judged.push(given)),
    );
    await agent.run('hi');
    expect(judged).toEqual(['the end']);
  });

  it('sees what the guards of the output left', async () => {
    const judged: string[] = [];
    const { agent } = agentOf(
      ['a SECRET'],
      judging(['final'], ({ text: given }) => void judged.push(given)),
      redacting(['output'], { hold: window(8) }),
    );
    await agent.run('hi');
    expect(judged).toEqual(['a [redacted]']);
  });
});

describe('sinks', () => {
  it('see the guarded view, judged once, although the response streams live', async () => {
    let judged = 0;
    const seen: string[] = [];
    const sink = (name: string) =>
      defineMiddleware({
        name,
        sink: true,
        afterModel: (ctx) => void seen.push(textOf(ctx.response!)),
        wrapModel: async (_, next) => void seen.push(textOf(await next())),
      });
    for (const watched of [true, false]) {
      judged = 0;
      seen.length = 0;
      const { agent } = agentOf(
        [chunks('a SEC', 'RET b')],
        sink('outer'),
        sink('inner'),
        redacting(['output']),
        judging(['output'], () => void judged++),
      );
      const result = watched ? (await collect(agent.stream('hi'))).result! : await agent.run('hi');
      expect(seen).toEqual(Array(4).fill('a [redacted] b'));
      expect([judged, result.text]).toEqual([1, 'a [redacted] b']);
    }
  });

  it('layers that are no sinks see what came from further in', async () => {
    const seen: string[] = [];
    const plain = defineMiddleware({
      name: 'plain',
      afterModel: (ctx) => void seen.push(textOf(ctx.response!)),
    });
    await agentOf(['SECRET'], plain, redacting(['output'])).agent.run('hi');
    expect(seen).toEqual(['SECRET']);
  });
});

describe('a judge', () => {
  it('that asks a model is not judged in turn, whatever layers and sinks there are', async () => {
    const judge = scriptedModel(['safe'], { repeat: true, id: 'judge' });
    const sink = defineMiddleware({ name: 'sink', sink: true, wrapModel: (_, next) => next() });
    const points: GuardPoint[] = ['input', 'request', 'output'];
    let asked = 0;
    const { agent } = agentOf(
      ['hello'],
      judging(points, async ({ text: given }, { context }) => {
        asked++;
        const answer = await context.generate(judge, { messages: given });
        return textOf(answer) === 'safe' ? undefined : { type: 'deny' };
      }),
      sink,
    );
    await expect(agent.run('hi')).resolves.toMatchObject({ text: 'hello' });
    expect(asked).toBe(3);
    expect(judge.requests).toHaveLength(3);
  });

  it('keeps state, also when the response streamed', async () => {
    const count = defineState({ name: 'count', scope: 'session', initial: 0 });
    for (const watched of [true, false]) {
      const guard = judging(['output'], (_, { context }) => void context.state.update(count, (n) => n + 1), {
        state: [count],
      });
      const { session, store } = agentOf(['a', 'b'], guard);
      for (const input of ['1', '2']) await (watched ? session.stream(input).result : session.run(input));
      const values = (await store.read('s', 0)).flatMap((entry) =>
        entry.type === 'state' ? [entry.value] : [],
      );
      expect(values).toEqual([1, 2]);
    }
  });

  it('may stop the run, even if it swallows its own signal', async () => {
    const { agent } = agentOf(
      ['a'],
      judging(['output'], (_, { context }) => {
        try {
          context.stop('stopped', 'enough');
        } catch {
          return undefined;
        }
      }),
    );
    await expect(agent.run('hi')).resolves.toMatchObject({
      stop: { reason: 'stopped', message: 'enough', by: 'judge' },
    });
  });

  it.each([
    ['ask at a point where nobody can be asked', ['output'], { type: 'ask', request: {} }],
    ['ask without a request', ['tool-args'], { type: 'ask' }],
    ['rewrite without anything', ['output'], { type: 'rewrite' }],
    ['rewrite text with arguments', ['output'], { type: 'rewrite', args: {} }],
    ['rewrite arguments with text', ['tool-args'], { type: 'rewrite', text: 'x' }],
    ['a word', ['output'], 'deny'],
    ['nothing, as null', ['output'], null],
    ['a word in a list', ['output'], { type: ['deny'] }],
    ['what every object has', ['output'], { type: 'toString' }],
    ['a misspelt reason', ['output'], { type: 'deny', resaon: 'x' }],
    ['allow with a rewritten text', ['output'], { type: 'allow', text: 'x' }],
    ['rewrite with a misspelt field', ['tool-args'], { type: 'rewrite', args: {}, arg: {} }],
    ['ask with a misspelt request', ['tool-args'], { type: 'ask', request: { titel: 'x' } }],
    ['ask with a request that is no JSON', ['tool-args'], { type: 'ask', request: { details: 1n } }],
  ])('that returns %s has failed', async (_, on, verdict) => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 1 }, text: 'calling' }), 'end'],
      judging(on as GuardPoint[], () => verdict as never),
    );
    const done = await agent.run('hi').catch((error) => error);
    if (on[0] === 'output')
      expect(done).toMatchObject({ code: 'GUARD_FAILED', cause: { code: 'INVALID_HOOK_RESULT' } });
    else {
      expect(calls).toEqual([]);
      expect(done).not.toMatchObject({ status: 'suspended' });
    }
  });

  it('is not waited for when the run is aborted', async () => {
    const controller = new AbortController();
    const { agent } = agentOf(
      ['a'],
      judging(['output'], (_, { context }) => {
        expect(context.signal.aborted).toBe(false);
        controller.abort();
        return new Promise(() => {});
      }),
    );
    await expect(agent.run('hi', { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('rewrites text of several blocks into the first', async () => {
    const blocks = chunks({ type: 'text', text: 'a', block: 1 }, { type: 'text', text: 'b', block: 2 });
    const { agent } = agentOf(
      [blocks],
      judging(['output'], ({ text: given }) => ({ type: 'rewrite', text: given.toUpperCase() })),
    );
    const { result, shown } = await collect(agent.stream('hi'));
    expect([result!.text, [...shown.values()].at(-1)]).toEqual(['AB', 'AB']);
  });
});

describe('a call in a run that hangs', () => {
  it('is not shown before the guards have judged it', async () => {
    const controller = new AbortController();
    const { agent } = agentOf(
      [hang({ type: 'tool-call', id: 'a', name: 'act', arguments: '{"q":"SECRET"}' }, 'text')],
      redacting(['tool-args']),
    );
    const stream = agent.stream('hi', { signal: controller.signal });
    const events: unknown[] = [];
    await expect(
      (async () => {
        for await (const one of stream) {
          events.push(one);
          if (one.type === 'message_update') controller.abort();
        }
      })(),
    ).rejects.toMatchObject({ code: 'ABORTED' });
    expect(JSON.stringify(events)).not.toContain('SECRET');
  });
});

describe('an error that ends the run', () => {
  const parses = defineMiddleware({
    name: 'parses',
    afterModel(ctx) {
      JSON.parse(textOf(ctx.response!));
    },
  });
  const told = async (...middleware: Middleware[]) => {
    const { session, store } = agentOf(['SECRET is'], parses, ...middleware);
    const { events, error } = await collect(session.stream('hi'));
    const failure = error as RunError;
    return { failure, written: JSON.stringify([events, await store.read('s', 0)]) };
  };

  it('is told by its kind where a guard objects to its message; the caller gets it as it is', async () => {
    for (const guard of [redacting(['output']), judging(['output'], () => undefined)]) {
      const { failure, written } = await told(guard);
      expect(failure.result!.stop).toEqual({ reason: 'error', message: 'SyntaxError' });
      expect((failure.cause as Error).message).toContain('"SECRET is" is not valid JSON');
      expect(written).not.toContain('SECRET');
    }
  });

  it('is told by its message otherwise', async () => {
    for (const guards of [[], [guarding('other', { on: ['output'], find: find(/PIN/g) })]]) {
      const { failure } = await told(...guards);
      expect(failure.result!.stop.message).toContain('"SECRET is" is not valid JSON');
    }
  });

  it('stays out of events and journal too when it is a store that refused to write the end', async () => {
    const { agent, store } = agentOf(['hi'], redacting(['output']));
    const { append } = store;
    store.append = (id, seq, entries) => {
      if (entries.some(({ type }) => type === 'run_end')) throw new Error('no room for SECRET');
      return append.call(store, id, seq, entries);
    };
    const { events, error } = await collect(agent.session('s').stream('hi'));
    expect((error as RunError).result!.stop).toEqual({ reason: 'error', message: 'Error' });
    expect(JSON.stringify(events)).not.toContain('SECRET');
  });

  it('names the guard that broke', async () => {
    const broken = judging(['output'], () => {
      throw new Error('SECRET');
    });
    const failure: RunError = await agentOf(['hi'], broken)
      .agent.run('hi')
      .catch((error) => error);
    expect(failure.result!.stop.message).toBe('Guard "judge" failed, so nothing more was released.');
  });

  it('an abort is told in the words of the caller', async () => {
    const { agent } = agentOf(
      [hang('hi')],
      judging(['output'], () => undefined),
    );
    const stream = agent.stream('hi', { signal: AbortSignal.abort(new Error('Enough.')) });
    const failure: RunError = await stream.result.catch((error) => error);
    expect(failure.result!.stop).toEqual({ reason: 'aborted', message: 'Enough.' });
  });
});

describe('what a sink is given', () => {
  const seen: unknown[] = [];
  const sink = (more: Partial<Middleware>): Middleware => {
    seen.length = 0;
    return defineMiddleware({ name: 'sink', sink: true, ...more });
  };

  describe('of the input, once the run has taken it in', () => {
    const looks = () =>
      sink({
        async wrapRun(ctx, next) {
          try {
            return await next();
          } finally {
            seen.push(ctx.input.map(textOf));
          }
        },
        afterRun(ctx) {
          seen.push(ctx.input.map(textOf), ctx.messages.map(textOf));
        },
      });

    it('is what guards and hooks left of it; messages are the history then', async () => {
      const louder: Middleware = {
        name: 'louder',
        acceptMessage: (message) => ({
          ...message,
          content: [{ type: 'text', text: `${textOf(message)}!` }],
        }),
      };
      await agentOf(['hello'], looks(), louder, redacting(['input'])).agent.run('my SECRET');
      const accepted = 'my [redacted]!';
      expect(seen).toEqual([[accepted], [accepted], [accepted, 'hello']]);
    });

    it('is nothing where it was refused', async () => {
      for (const guard of [
        redacting(['input'], { action: 'block' }),
        judging(['input'], () => {
          throw new Error('SECRET');
        }),
      ]) {
        await agentOf(['hello'], looks(), guard)
          .agent.run('my SECRET')
          .catch(() => {});
        expect(seen).toEqual([[], [], []]);
      }
    });
  });

  const toolSinks: [string, () => Middleware][] = [
    ['beforeTool', () => sink({ beforeTool: (ctx) => void seen.push(ctx.args, ctx.rawArgs) })],
    [
      'wrapTool',
      () =>
        sink({
          wrapTool(ctx, next) {
            seen.push(ctx.args, ctx.rawArgs);
            return next();
          },
        }),
    ],
  ];

  it.each(toolSinks)('of arguments that a layer further out assigned, in %s', async (_, make) => {
    const assigning: Middleware[] = [
      {
        name: 'pair',
        beforeTool(ctx) {
          ctx.args = { a: 'SECRET' };
        },
      },
      {
        name: 'wrap',
        wrapTool(ctx, next) {
          ctx.args = { a: 'SECRET' };
          return next();
        },
      },
      { name: 'override', wrapTool: (_ctx, next) => next({ args: { a: 'SECRET' } }) },
    ];
    const between: Middleware = { name: 'between', beforeTool: () => {}, afterTool: () => {} };
    for (const outer of assigning)
      for (const middleware of [[outer], [outer, between], [between, outer]]) {
        const all = [...middleware, make(), redacting(['tool-args'])];
        const { agent } = agentOf([toolCalls({ name: 'act', args: {} }), 'ok'], ...all);
        await agent.run('hi');
        const clean = { a: '[redacted]' };
        expect(seen).toEqual([clean, clean]);
        expect(calls).toEqual([clean]);
      }
  });

  it('of assigned arguments in afterToolCall, and of a call that is refused for them', async () => {
    const assigning: Middleware = {
      name: 'a',
      beforeTool(ctx) {
        ctx.args = { a: 'SECRET' };
      },
    };
    for (const action of ['redact', 'block'] as const) {
      const logging = sink({ afterToolCall: (ctx) => void seen.push(ctx.rawArgs, ctx.isError) });
      const { agent } = agentOf(
        [toolCalls({ name: 'act', args: {} }), 'ok'],
        assigning,
        logging,
        redacting(['tool-args'], { action }),
        redacting(['tool-args']),
      );
      await agent.run('hi');
      expect(seen).toEqual([{ a: '[redacted]' }, action === 'block']);
    }
  });

  describe('of what a hook before it made', () => {
    const patches: Middleware = { name: 'patches', afterToolCall: () => ({ content: 'my SECRET' }) };
    const assigns: Middleware = {
      name: 'assigns',
      async afterToolCall(ctx) {
        ctx.result = toolResult({ content: 'x', details: { mine: 'SECRET' } });
      },
    };
    const looks = () =>
      sink({
        afterToolCall: (ctx) => void seen.push(textOf(ctx.result!), ctx.result!.details),
        afterModelResponse: (response) => void seen.push(textOf(response)),
      });
    const script = [toolCalls({ name: 'act', args: {} }), 'ok'];

    it.each<[string, Middleware, Partial<Guard>, unknown[]]>([
      ['a patch', patches, {}, ['my [redacted]', undefined]],
      ['details', assigns, {}, ['x', { mine: '[redacted]' }]],
      ['a patch that is withheld', patches, { action: 'block' }, ['Refused by guard "redact".', undefined]],
    ])('results: %s', async (_, hook, more, wanted) => {
      const { agent } = agentOf(script, hook, looks(), redacting(['tool-result'], more));
      const { messages } = await agent.run('hi');
      expect(seen).toEqual(['', ...wanted, 'ok']);
      expect(resultTexts(messages)).toEqual([wanted[0]]);
    });

    it('nothing, where it ends the run', async () => {
      const harmless: Middleware = { ...patches, wrapTool: async () => toolResult({ content: 'x' }) };
      const stopping = redacting(['tool-result'], { action: 'stop' });
      const { agent } = agentOf(script, harmless, looks(), stopping);
      const { stop, messages } = await agent.run('hi');
      expect(stop).toMatchObject({ reason: 'guardrail', by: 'redact' });
      expect(seen).toEqual(['']);
      expect(resultTexts(messages)).toEqual(['The result was withheld.']);
    });

    it.each<[string, (given: ModelResponse) => { response: ModelResponse } | undefined]>([
      ['a response', () => ({ response: assistantMessage('a SECRET') })],
      ['a response, by the last that made one', (given) => ({ response: { ...given } })],
    ])('%s', async (_, last) => {
      const first = () => ({ response: assistantMessage('a SECRET') });
      let judged = 0;
      const { agent } = agentOf(
        ['ok'],
        { name: 'first', afterModelResponse: async () => first() },
        { name: 'last', afterModelResponse: last },
        looks(),
        { ...looks(), name: 'sink2' },
        redacting(['output']),
        judging(['output'], () => void judged++),
      );
      const { text } = await agent.run('hi');
      expect(seen).toEqual(['a [redacted]', 'a [redacted]']);
      expect(text).toBe('a [redacted]');
      // What the model said, and what the hooks made of it.
      expect(judged).toBe(2);
    });

    it('a call that guards refuse for it stays refused', async () => {
      const wants: Middleware = {
        name: 'wants',
        afterModelResponse: (response) => ({
          response: {
            ...response,
            content: response.content.map((part) =>
              part.type === 'tool-call' ? { ...part, arguments: '{"a":"SECRET"}' } : part,
            ),
          },
        }),
      };
      const { agent } = agentOf(script, wants, looks(), redacting(['tool-args'], { action: 'block' }));
      const { messages } = await agent.run('hi');
      expect(calls).toEqual([]);
      expect(resultTexts(messages)).toEqual(['Refused by guard "redact".']);
    });
  });

  it('of a call that resolveToolCall brought, also after a resume', async () => {
    const bringing: Middleware = {
      name: 'bringing',
      resolveToolCall: (toolCall) => ({ toolCall: { ...toolCall, arguments: '{"a":"SECRET"}' } }),
      beforeToolCall: () => ({ ask: { title: '?' } }),
    };
    const logging = sink({ beforeTool: (ctx) => void seen.push(ctx.toolCall.arguments, ctx.args) });
    const { session } = agentOf(
      [toolCalls({ name: 'act', args: {} }), 'ok'],
      logging,
      bringing,
      redacting(['tool-args']),
    );
    const { pending } = await session.run('hi');
    expect(pending[0]!.arguments).toBe('{"a":"[redacted]"}');
    await session.answer(pending[0]!.id, { type: 'approve' });
    await session.resume();
    expect(seen).toEqual(['{"a":"[redacted]"}', { a: '[redacted]' }]);
    expect(calls).toEqual([{ a: '[redacted]' }]);
  });
});
