import {
  Agent,
  assistantMessage,
  defineMiddleware,
  type Message,
  requestKey,
  tool,
  toolSpec,
  userMessage,
} from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { History } from '../kernel/journal/history.js';
import { deepFreeze } from '../kernel/messages/messages.js';

describe('requestKey', () => {
  const model = scriptedModel([]);
  const base = {
    model,
    messages: [userMessage('hi')],
    systemPrompt: 'p',
    tools: [],
    settings: { temperature: 0 },
  };

  it('is the same for the same question: ids, usage and metadata do not count', () => {
    const answer = assistantMessage('x', {
      usage: { inputTokens: 1, outputTokens: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 },
    });
    const one = {
      ...base,
      messages: [
        { ...userMessage('hi'), id: 'r1.1' },
        { ...answer, id: 'r1.2' },
      ],
    };
    const two = {
      ...base,
      messages: [
        { ...userMessage('hi', { synthetic: true }), id: 'r2.1' },
        { ...assistantMessage('x'), id: 'r2.2' },
      ],
    };
    expect(requestKey(one)).toBe(requestKey(two));
  });

  it('includes metadata for the provider on messages, parts and calls, because it is sent', () => {
    const note = (effort: string) => ({ provider: { openai: { effort } }, other: effort });
    const requests = {
      message: (effort: string) => [userMessage('hi', note(effort))],
      part: (effort: string) => [userMessage([{ type: 'text', text: 'hi', metadata: note(effort) }])],
      answer: (effort: string) => [{ ...assistantMessage('x', { metadata: note(effort) }), id: 'a' }],
      call: (effort: string) => [
        {
          ...assistantMessage([
            { type: 'tool-call', id: 'c', name: 'a', arguments: '{}', metadata: note(effort) },
          ]),
          id: 'a',
        },
      ],
    };
    const keys = Object.values(requests).flatMap((made) =>
      [made('low'), made('high')].map((messages) => requestKey({ ...base, messages })),
    );
    expect(new Set(keys).size).toBe(8);
    const again = requestKey({ ...base, messages: requests.message('low') });
    expect(again).toBe(keys[0]);
  });

  it('ignores call ids, which differ each time', () => {
    const calling = (id: string) => ({
      ...base,
      messages: [
        { ...assistantMessage([{ type: 'tool-call' as const, id, name: 'a', arguments: '{}' }]), id: 'x' },
      ],
    });
    expect(requestKey(calling('1'))).toBe(requestKey(calling('2')));
  });

  it.each([
    ['messages', { ...base, messages: [userMessage('ho')] }],
    ['prompt', { ...base, systemPrompt: 'q' }],
    ['settings', { ...base, settings: { temperature: 1 } }],
    ['model', { ...base, model: scriptedModel([], { id: 'other' }) }],
    ['tools', { ...base, tools: [{ name: 'a', description: 'a', inputSchema: {} }] }],
  ])('differs by %s', (_, other) => {
    expect(requestKey(other)).not.toBe(requestKey(base));
  });

  it('differs by scope', () => {
    expect(requestKey(base, 'tenant a')).not.toBe(requestKey(base, 'tenant b'));
  });

  it.each([
    ['the text of a part', [{ type: 'text', text: 'b' }]],
    ['where a part ends', [{ type: 'text', text: 'a\ntext 1 a' }]],
    [
      'the number of parts',
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'a' },
      ],
    ],
    ['metadata of a part', [{ type: 'text', text: 'a', metadata: { lang: 'en' } }]],
    ['the type of a part', [{ type: 'thinking', text: 'a' }]],
    ['a call', [{ type: 'tool-call', id: '1', name: 'a', arguments: '' }]],
    ['where a name ends', [{ type: 'tool-call', id: '1', name: '', arguments: 'a' }]],
  ] as const)('differs by %s', (_, content) => {
    const asked = (parts: unknown) =>
      requestKey({ ...base, messages: [{ ...assistantMessage(parts as never), id: '' }] });
    expect(asked(content)).not.toBe(asked([{ type: 'text', text: 'a' }]));
  });

  it('ignores undefined values', () => {
    const messages = [{ ...userMessage([{ type: 'text', text: 'hi', metadata: undefined as never }]) }];
    expect(requestKey({ ...base, messages })).toBe(requestKey(base));
  });

  it('differs by who said it, by tool and by failure', () => {
    const result: Message = {
      id: '',
      role: 'tool',
      toolCallId: '1',
      toolName: 'a',
      isError: false,
      content: [{ type: 'text', text: 'hi' }],
    };
    const said = [
      userMessage('hi'),
      { ...assistantMessage('hi'), id: '' },
      result,
      { ...result, isError: true },
      { ...result, toolName: 'b' },
    ];
    expect(new Set(said.map((message) => requestKey({ ...base, messages: [message] }))).size).toBe(5);
    expect(requestKey({ ...base, messages: [{ ...result, toolCallId: '2', details: 1 }] })).toBe(
      requestKey({ ...base, messages: [result] }),
    );
  });

  it('sees changes of what is not frozen', () => {
    const content = [{ type: 'text' as const, text: 'hi' }];
    const messages: Message[] = [Object.freeze({ id: '', role: 'user' as const, content })];
    const tools = [{ name: 'a', description: 'a', inputSchema: {} }];
    const before = requestKey({ ...base, messages, tools });
    content[0] = { type: 'text', text: 'ho' };
    const after = requestKey({ ...base, messages, tools });
    expect(after).not.toBe(before);
    tools.push({ name: 'b', description: 'b', inputSchema: {} });
    expect(requestKey({ ...base, messages, tools })).not.toBe(after);
    messages[0] = userMessage('ha');
    expect(requestKey({ ...base, messages })).toBe(requestKey({ ...base, messages: [userMessage('ha')] }));
  });

  it('sees another prompt with the same tools', () => {
    const tools = Object.freeze([]);
    const key = (systemPrompt: string) => requestKey({ ...base, tools, systemPrompt });
    expect([key('a'), key('b'), key('a')]).toEqual(
      ['a', 'b', 'a'].map((p) => requestKey({ ...base, systemPrompt: p })),
    );
  });

  it('is the same for a history that grew, a copy of it, and the same said again', () => {
    const texts = fc.array(fc.string(), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(texts, fc.array(fc.nat(3), { maxLength: 8 }), (said, steps) => {
        const history = new History();
        const left = said.map((one, i) => ({ ...userMessage(one), id: `r.${i}` }));
        const all = [...left];
        for (const count of [...steps, left.length]) {
          for (const message of left.splice(0, count)) history.append(message);
          const grown = requestKey({ ...base, messages: history.view() });
          const seen = all.slice(0, history.length);
          expect(requestKey({ ...base, messages: history.all() })).toBe(grown);
          expect(requestKey({ ...base, messages: seen.map((one) => deepFreeze({ ...one, id: '' })) })).toBe(
            grown,
          );
        }
      }),
    );
  });

  it('is the same in a layer, for a copy and after a way through JSON, turn after turn', async () => {
    const keys: string[][] = [];
    const watch = defineMiddleware({
      name: 'watch',
      wrapModel(ctx, next) {
        const { model: asked, systemPrompt, settings } = ctx;
        const copied = {
          model: asked,
          systemPrompt,
          settings,
          tools: [...ctx.tools],
          messages: [...ctx.messages],
        };
        const { messages, tools } = JSON.parse(
          JSON.stringify({ messages: ctx.messages, tools: ctx.tools.map(toolSpec) }),
        );
        keys.push([requestKey(ctx), requestKey(copied), requestKey({ ...copied, messages, tools })]);
        return next();
      },
    });
    const add = tool({ name: 'add', description: 'Adds.', input: z.object({}), execute: () => 1 });
    const script = scriptedModel([toolCalls({ name: 'add' }), toolCalls({ name: 'add' }), text('done')]);
    await new Agent({ model: script, tools: [add], middleware: [watch], systemPrompt: 'p' }).run('go');
    expect(keys).toHaveLength(3);
    for (const same of keys) expect(new Set(same).size).toBe(1);
    expect(new Set(keys.flat()).size).toBe(3);
  });

  it('is a value that other processes agree on', () => {
    expect(
      requestKey({ model: { provider: 'p', id: 'm' }, messages: [userMessage('hi')] }),
    ).toMatchInlineSnapshot(`"1ce8o9ggyyd06qinoeeb01"`);
  });
});
