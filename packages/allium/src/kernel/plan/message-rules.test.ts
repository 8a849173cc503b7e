// The rules about what the model is sent: acceptMessage, transformContext, transformSystemPrompt, convertToLlm.

import {
  Agent,
  type Message,
  type Middleware,
  type ModelContext,
  memoryStore,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { call, echo, named, resultText } from '../../../../../test/rules-setup.js';
import { transcript, watched } from '../../../../../test/run-checks.js';

describe('acceptMessage: chain, first block stops', () => {
  const append = (suffix: string): Middleware =>
    named(suffix, { acceptMessage: (message) => userMessage(`${textOf(message)}${suffix}`) });

  it('gives each hook the message as the one before left it', async () => {
    const model = scriptedModel(['ok']);
    await new Agent({ model, middleware: [append('a'), append('b')] }).run('>');
    expect(transcript(model.requests[0]!.messages)).toEqual(['user: >ab']);
  });

  it('keeps the message if a hook returns nothing', async () => {
    const model = scriptedModel(['ok']);
    await new Agent({ model, middleware: [{ acceptMessage: () => undefined }, append('b')] }).run('>');
    expect(transcript(model.requests[0]!.messages)).toEqual(['user: >b']);
  });

  it('stops the run at the first block, asks nobody after it, and appends nothing of the input', async () => {
    const later: string[] = [];
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([]),
      store,
      middleware: [
        named('gate', {
          acceptMessage: (message) =>
            textOf(message) === 'bad' ? { block: true, reason: 'No.' } : undefined,
        }),
        named('later', { acceptMessage: (message) => void later.push(textOf(message)) }),
      ],
    });
    const { result } = await watched(agent.session('s'), ['good', 'bad']);
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', message: 'No.', by: 'gate' },
    });
    expect(later).toEqual(['good']);
    expect(await agent.session('s').messages()).toEqual([]);
  });

  it('sees steering and follow-ups; a refused one is left out and reported', async () => {
    const agent = new Agent({
      model: scriptedModel([text('1'), text('2')]),
      store: memoryStore(),
      middleware: [
        named('gate', {
          acceptMessage: (message) =>
            textOf(message).startsWith('bad') ? { block: true } : userMessage(`${textOf(message)}!`),
        }),
      ],
    });
    const session = agent.session('s');
    await session.steer('bad steering');
    await session.followUp('good follow-up');
    const { result, events } = await watched(session, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go!',
      'assistant: 1',
      'user: good follow-up!',
      'assistant: 2',
    ]);
    expect(events.filter(({ type }) => type === 'custom')).toMatchObject([
      { name: 'message_refused', by: 'gate' },
    ]);
  });

  it('sees the prompt of a sub-agent', async () => {
    const seen: string[] = [];
    const child = new Agent({
      model: scriptedModel(['done']),
      middleware: [{ acceptMessage: (message) => void seen.push(textOf(message)) }],
    });
    const ask = tool({
      name: 'ask',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => (await child.run('sub prompt', { parent: ctx })).text,
    });
    await new Agent({ model: scriptedModel([toolCalls({ name: 'ask' }), text('end')]), tools: [ask] }).run(
      'go',
    );
    expect(seen).toEqual(['sub prompt']);
  });

  it('sees what a human answers', async () => {
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({
      model,
      tools: [echo],
      middleware: [
        {
          acceptMessage: (message) => (textOf(message) === 'secret answer' ? userMessage('***') : undefined),
        },
        { beforeToolCall: () => ({ ask: { title: '?' } }) },
      ],
      onRequest: () => ({ type: 'respond', text: 'secret answer' }),
    });
    const { result } = await watched(agent, 'go');
    expect(resultText(result.messages)).toEqual(['***']);
  });
});

describe('transformContext: chain', () => {
  it('treats a hook that returns nothing as one without an opinion, sync or async, run or streamed', async () => {
    const nothing: Middleware = {
      transformContext() {},
      async transformSystemPrompt() {},
      convertToLlm() {},
    };
    const something: Middleware = {
      transformContext: (messages) => [...messages, userMessage('more')],
      transformSystemPrompt: (prompt) => `${prompt} now`,
      convertToLlm: (messages) => [...messages, userMessage('converted')],
    };
    for (const middleware of [[nothing], [something, nothing], [nothing, something]]) {
      const model = scriptedModel(['ok', 'ok']);
      const agent = new Agent({ model, systemPrompt: 'Be brief', middleware });
      await agent.run('go');
      await agent.stream('go').result;
      const changed = middleware.length > 1;
      for (const request of model.requests) {
        expect(request.systemPrompt).toBe(changed ? 'Be brief now' : 'Be brief');
        expect(request.messages.map(textOf)).toEqual(changed ? ['go', 'more', 'converted'] : ['go']);
      }
    }
  });

  it('keeps what a hook that returns nothing assigned to its context', async () => {
    const model = scriptedModel(['ok']);
    const assigning: Middleware = {
      transformContext(_, ctx) {
        ctx.settings = { temperature: 0 };
      },
    };
    await new Agent({ model, middleware: [assigning] }).run('go');
    expect(model.requests[0]?.settings).toMatchObject({ temperature: 0 });
  });

  it('gives each hook the output of the one before and never touches the history', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({
      model,
      middleware: [
        named('one', { transformContext: (messages) => [...messages, userMessage('one')] }),
        named('two', {
          transformContext: (messages) => [...messages, userMessage(`two after ${messages.length}`)],
        }),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(transcript(model.requests[0]!.messages)).toEqual(['user: go', 'user: one', 'user: two after 2']);
    expect(transcript(result.messages)).toEqual(['user: go', 'assistant: ok']);
  });

  it('works without any hook, with one, and with one that returns what it was given', async () => {
    for (const middleware of [[], [{ transformContext: (messages: readonly Message[]) => messages }]]) {
      const model = scriptedModel(['ok']);
      await new Agent({ model, middleware }).run('go');
      expect(transcript(model.requests[0]!.messages)).toEqual(['user: go']);
    }
  });

  it('drops orphaned calls and results from the request only, and reports who caused it', async () => {
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({
      model,
      tools: [echo],
      middleware: [
        named('innocent', { transformContext: (messages) => [userMessage('note'), ...messages] }),
        named('cutter', {
          transformContext: (messages) => messages.filter(({ role }) => role !== 'assistant'),
        }),
        named('late', { transformContext: (messages) => [...messages, userMessage('end')] }),
      ],
    });
    const { result, events } = await watched(agent, 'go');
    expect(transcript(model.requests[1]!.messages)).toEqual(['user: note', 'user: go', 'user: end']);
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'assistant: end',
    ]);
    expect(result.changes.filter(({ what }) => what.includes('without'))).toMatchObject([
      { by: 'cutter', turn: 2 },
    ]);
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({
      name: 'orphans_dropped',
      data: { by: ['cutter'], calls: ['call_1'] },
    });
  });

  it('does so after convertToLlm too, and names the middleware whose convertToLlm ran', async () => {
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({
      model,
      tools: [echo],
      middleware: [
        named('cutter', { convertToLlm: (messages) => messages.slice(-1) }),
        named('silent', { convertToLlm: () => undefined }),
      ],
    });
    const { result, events } = await watched(agent, 'go');
    expect(transcript(model.requests[1]!.messages)).toEqual(['user: go']);
    expect(result.changes.map(({ by, turn }) => `${by} ${turn}`)).toEqual([
      'cutter 1',
      'cutter 2',
      'cutter 2',
      'cutter 2',
    ]);
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({ data: { by: ['cutter'] } });
  });

  it('drops a call whose result was cut, and keeps the text beside it', async () => {
    const model = scriptedModel([
      toolCalls({ name: 'echo', args: { text: 'x' }, text: 'Let me see.' }),
      text('end'),
    ]);
    const agent = new Agent({
      model,
      tools: [echo],
      middleware: [
        named('cutter', { transformContext: (messages) => messages.filter(({ role }) => role !== 'tool') }),
      ],
    });
    await watched(agent, 'go');
    expect(transcript(model.requests[1]!.messages)).toEqual(['user: go', 'assistant: Let me see.']);
  });
});

describe('transformSystemPrompt: chain', () => {
  it('gives each hook the prompt of the one before', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({
      model,
      systemPrompt: 'a',
      middleware: [
        { transformSystemPrompt: (prompt) => `${prompt}b` },
        { transformSystemPrompt: async (prompt) => `${prompt}c` },
      ],
    });
    await agent.run('go');
    expect(model.requests[0]!.systemPrompt).toBe('abc');
  });
});

describe('convertToLlm: last wins', () => {
  it('runs only the last one', async () => {
    const model = scriptedModel(['ok']);
    const first: number[] = [];
    const agent = new Agent({
      model,
      middleware: [
        named('first', {
          convertToLlm: (messages) => {
            first.push(1);
            return messages;
          },
        }),
        named('last', { convertToLlm: () => [userMessage('converted')] }),
      ],
    });
    await agent.run('go');
    expect(first).toEqual([]);
    expect(transcript(model.requests[0]!.messages)).toEqual(['user: converted']);
  });

  it('runs innermost, once per attempt, after every layer, with the model really called', async () => {
    const second = scriptedModel(['ok'], { id: 'second' });
    const seen: string[] = [];
    const agent = new Agent({
      model: scriptedModel([failWith(new Error('down'))], { id: 'first' }),
      middleware: [
        named('convert', {
          convertToLlm: (messages, ctx) => {
            seen.push(`${ctx.model.id}: ${transcript(messages).join()}`);
            return messages;
          },
        }),
        named('fallback', {
          onError: (ctx) => {
            (ctx as ModelContext).model = second;
            return 'fallback';
          },
        }),
        named('inner', {
          beforeModel: (ctx) => {
            ctx.messages = [...ctx.messages, userMessage('by a layer')];
          },
        }),
      ],
    });
    await agent.run('go');
    expect(seen).toEqual(['first: user: go,user: by a layer', 'second: user: go,user: by a layer']);
  });
});
