// Guards of the arguments of tool calls, and of what is told beside a text.

import {
  Agent,
  type AssistantMessage,
  defineMiddleware,
  type Middleware,
  type Model,
  type ModelPart,
  memoryStore,
  NO_USAGE,
  window,
} from 'allium';
import { chunks, collect, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { agentOf, calls, find, guarding, judging, redacting } from '../../../../../test/guards-setup.js';

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

  it('in which nothing was found stay exactly as the model wrote them', async () => {
    const written = '{ "q" : "caf\\u00e9",\n "n": 1.0 }';
    const { agent } = agentOf([toolCalls({ name: 'act', args: written }), 'end'], redacting(['tool-args']));
    const { messages } = await agent.run('hi');
    expect(messages[1]!.content[0]).toMatchObject({ arguments: written });
  });

  it('are searched even behind a repeated key', async () => {
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

  it('that are not JSON may be rewritten into JSON', async () => {
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

describe('what a guard removed does not come through beside the text either', () => {
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

  it('metadata stays as it is if nothing is found in it', async () => {
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

  it('stay as written if no guard objects', async () => {
    const args = `{"id": ${card}, "n": 1.0}`;
    const { agent } = agentOf([toolCalls({ name: 'act', args }), 'end'], redacting(['tool-args']));
    const { messages } = await agent.run('hi');
    expect(messages[1]!.content[0]).toMatchObject({ arguments: args });
    expect(calls).toEqual([{ id: Number(card), n: 1 }]);
  });
});
