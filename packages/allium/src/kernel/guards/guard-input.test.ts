// Guards of what goes to the model: the input, the request, and the thinking that is sent back.

import { inspect } from 'node:util';
import { Agent, defineMiddleware, type Message, type Middleware, textOf, userMessage } from 'allium';
import { chunks, collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { act, agentOf, find, judging, redacting } from '../../../../../test/guards-setup.js';

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
  it('an imported history is judged completely', async () => {
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

  it.each(['input', 'request'] as const)(
    'metadata beside clean text is searched too, at %s',
    async (point) => {
      const quote = { metadata: { quote: 'SECRET' } };
      const beside: readonly Message[] = [
        { ...userMessage('q'), metadata: { note: 'of the application' } },
        {
          id: '',
          role: 'assistant',
          stopReason: 'tool-calls',
          metadata: { note: 'SECRET', n: 1 },
          content: [
            { type: 'text', text: 'hm', ...quote },
            { type: 'tool-call', id: 'c1', name: 'act', arguments: '{}', metadata: { seal: 'kept' } },
          ],
        },
        {
          id: '',
          role: 'tool',
          toolCallId: 'c1',
          toolName: 'act',
          isError: false,
          content: [{ type: 'text', text: 'k', ...quote }],
        },
        userMessage('go'),
      ];
      const { model, session } = agentOf(['ok'], redacting([point]));
      await session.run(beside);
      const [first, assistant, result] = model.requests[0]!.messages;
      expect(first).toMatchObject({ metadata: { note: 'of the application' } });
      expect(assistant).toMatchObject({ metadata: { note: '[redacted]', n: 1 } });
      expect(assistant!.content).toEqual([
        { type: 'text', text: 'hm' },
        { type: 'tool-call', id: 'c1', name: 'act', arguments: '{}', metadata: { seal: 'kept' } },
      ]);
      expect(result!.content).toEqual([{ type: 'text', text: 'k' }]);
    },
  );

  it('a judge sees all of it, and its rewrite replaces all of it', async () => {
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
