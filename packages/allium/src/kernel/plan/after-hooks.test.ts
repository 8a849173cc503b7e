// The rules about what came back: afterToolCall and afterModelResponse, merged by field.

import {
  Agent,
  assistantMessage,
  isSyntheticMessage,
  type Message,
  type Middleware,
  memoryStore,
  syntheticUserMessage,
  type ToolContext,
  textOf,
  tool,
  toolResult,
  userMessage,
} from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { call, echo, echoOptions, named, resultText, spansOf } from '../../../../../test/rules-setup.js';
import { settle, transcript, watched } from '../../../../../test/run-checks.js';

describe('afterToolCall: merge by field, later wins', () => {
  const after = (patch: object, seen?: unknown[]): Middleware => ({
    afterToolCall: (ctx) => {
      seen?.push(ctx.result);
      return patch;
    },
  });
  const run = async (
    middleware: Middleware[],
    execute: () => unknown = () => toolResult({ content: 'raw', details: { a: 1 } }),
  ) => {
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [tool({ ...echoOptions(), execute })],
      middleware,
    });
    return (await watched(agent, 'go')).result.messages[2]!;
  };

  it('merges field by field, and later hooks see the merge so far', async () => {
    const seen: { content: unknown; details?: unknown }[] = [];
    const message = await run([
      after({ details: { rich: true } }),
      after({ content: 'clean' }, seen),
      after({ isError: true }, seen),
    ]);
    expect(message).toMatchObject({
      content: [{ type: 'text', text: 'clean' }],
      details: { rich: true },
      isError: true,
    });
    expect(seen).toMatchObject([
      { content: [{ text: 'raw' }], details: { rich: true } },
      { content: [{ text: 'clean' }], details: { rich: true } },
    ]);
  });

  it('keeps a field that is undefined and lets null clear the details', async () => {
    expect(await run([after({ content: undefined, details: undefined, isError: undefined })])).toMatchObject({
      content: [{ text: 'raw' }],
      details: { a: 1 },
      isError: false,
    });
    expect(await run([after({ details: null })])).not.toHaveProperty('details');
  });

  it('takes content as text, as a list and as nothing', async () => {
    const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' };
    expect(await run([after({ content: [image] })])).toMatchObject({ content: [image] });
    expect(await run([after({ content: [] })])).toMatchObject({ content: [] });
  });

  it('fires for blocked, skipped and failed calls', async () => {
    const fired: string[] = [];
    const note = named('note', {
      afterToolCall: (ctx) => void fired.push(`${ctx.blocked} ${ctx.isError} ${textOf(ctx.result!)}`),
    });
    await run([note, { beforeToolCall: () => ({ block: true, reason: 'blocked' }) }]);
    await run([note, { beforeToolCall: () => ({ result: 'preset' }) }]);
    await run([
      note,
      {
        beforeTool: (ctx) => {
          ctx.skip = true;
          ctx.result = toolResult({ content: 'skipped' });
        },
      },
    ]);
    await run([note], () => {
      throw new Error('failed');
    });
    expect(fired).toEqual([
      'true true blocked',
      'false false preset',
      'false false skipped',
      'false true "echo" failed: failed',
    ]);
  });

  it('fires for unknown tools and bad arguments', async () => {
    const fired: string[] = [];
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'nope' }, { name: 'echo', args: '{', id: 'c2' }, { name: 'echo', id: 'c3' }),
        text('end'),
      ]),
      tools: [echo],
      middleware: [
        { afterToolCall: (ctx) => void fired.push(`${ctx.toolCall.name} ${ctx.blocked} ${ctx.tool?.name}`) },
      ],
    });
    await watched(agent, 'go');
    expect(fired).toEqual(['nope true undefined', 'echo true echo', 'echo true echo']);
  });

  it.each(['asks', 'stops'])('fires to its end for a call that fails while a sibling %s', async (sibling) => {
    const make = (name: string, execute: (ctx: ToolContext) => unknown) =>
      tool({ name, description: '', input: z.any(), execute: (_, ctx) => execute(ctx) });
    const tools = [
      make('fails', () => settle().then(() => Promise.reject(new Error('raw')))),
      make('asks', (ctx) => ctx.suspend({ title: '?' })),
      make('stops', (ctx) => ctx.stop()),
    ];
    const cleans = named('cleans', {
      async afterToolCall(ctx) {
        await settle();
        // After a stop no model is asked any more.
        if (sibling === 'stops') return { content: 'clean' };
        return { content: textOf(await ctx.generate(scriptedModel(['clean']), { messages: 'Clean up.' })) };
      },
    });
    const model = scriptedModel([toolCalls({ name: 'fails' }, { name: sibling })]);
    const store = memoryStore();
    await new Agent({ model, tools, middleware: [cleans], store }).session('s').run('go');
    const results = (await store.read('s', 1)).filter((entry) => entry.type === 'tool_finished');
    expect(results.map(({ message }) => textOf(message))).toContain('clean');
  });

  it('sends the merged result to events, journal and history, and only the content to the model', async () => {
    const store = memoryStore();
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({
      model,
      tools: [echo],
      store,
      middleware: [after({ content: 'clean', details: { for: 'the app' } })],
    });
    const { result, events } = await watched(agent.session('s'), 'go');
    const merged = { content: [{ type: 'text', text: 'clean' }], details: { for: 'the app' } };
    expect(result.messages[2]).toMatchObject(merged);
    expect(events.find(({ type }) => type === 'tool_execution_end')).toMatchObject({ message: merged });
    const entries = await store.read('s', 1);
    expect(entries.find(({ type }) => type === 'tool_finished')).toMatchObject({ message: merged });
    expect(JSON.stringify(entries)).not.toContain('"hi"}');
    expect(model.requests[1]!.messages[2]).toMatchObject({ content: merged.content });
  });

  it('withholds the content when a hook fails', async () => {
    const message = await run([
      named('cleaner', {
        afterToolCall: () => {
          throw new Error('cannot clean');
        },
      }),
    ]);
    expect(message).toMatchObject({
      isError: true,
      content: [{ text: '"echo" was not completed: middleware "cleaner" failed: cannot clean' }],
    });
    expect(JSON.stringify(message)).not.toContain('raw');
  });

  it.each<[string, unknown, string]>([
    ['text', 'mine', 'mine'],
    ['JSON', { a: 1 }, '{"a":1}'],
    ['a result', toolResult({ content: 'mine', details: 1 }), 'mine'],
    ['nothing', undefined, 'middleware "setter" failed: afterToolCall of "setter": it left no result.'],
    ['what is no JSON', 1n, 'middleware "setter" failed'],
  ])("takes an assigned result in the same forms as a layer's: %s", async (_, value, expected) => {
    for (const wait of [false, true]) {
      const setter = named('setter', {
        afterToolCall: (ctx) => {
          ctx.result = value as never;
          return wait ? Promise.resolve(undefined) : undefined;
        },
      });
      const agent = new Agent({ model: scriptedModel([call(), 'end']), tools: [echo], middleware: [setter] });
      const { result } = await watched(agent, 'go');
      expect(result.status).toBe('done');
      expect(resultText(result.messages)[0]).toContain(expected);
      expect(resultText(result.messages)[0]).not.toContain('hi');
    }
  });

  it('may end the run with terminate', async () => {
    const agent = new Agent({
      model: scriptedModel([call()]),
      tools: [echo],
      middleware: [after({ terminate: true })],
    });
    expect((await watched(agent, 'go')).result).toMatchObject({ status: 'done', turns: 1 });
  });
});

describe('afterModelResponse: chain with merge', () => {
  it('gives each hook the response of the one before; the last one is kept', async () => {
    const seen: string[] = [];
    const add = (suffix: string): Middleware => ({
      afterModelResponse: (response) => {
        seen.push(textOf(response));
        return {
          response: { ...response, content: [{ type: 'text', text: `${textOf(response)}${suffix}` }] },
        };
      },
    });
    const agent = new Agent({
      model: scriptedModel(['a']),
      middleware: [add('b'), { afterModelResponse: () => undefined }, add('c')],
    });
    const { result, shown } = await watched(agent, 'go');
    expect(seen).toEqual(['a', 'ab']);
    expect(result.text).toBe('abc');
    expect([...shown.values()]).toEqual(['abc']);
  });

  it('gives each hook a frozen `ctx.message` that is the response of the one before', async () => {
    const seen: unknown[] = [];
    const look = named('look', {
      afterModelResponse: (response, { message, toolResults }) => {
        seen.push([textOf(response), textOf(message!), message!.id]);
        expect([message, message!.content, toolResults].every(Object.isFrozen)).toBe(true);
      },
    });
    const swap = named('swap', { afterModelResponse: () => ({ response: assistantMessage('a SECRET') }) });
    const guard = named('guard', { guard: { on: ['output'], find: spansOf('SECRET') } });
    const sink = { ...look, name: 'sink', sink: true };
    const { messages } = await new Agent({
      model: scriptedModel(['hi']),
      middleware: [look, swap, look, sink, guard],
    }).run('go');
    const { id } = messages[1]!;
    expect(seen).toEqual([
      ['hi', 'hi', id],
      ['a SECRET', 'a SECRET', id],
      ['a [redacted]', 'a [redacted]', id],
    ]);
  });

  it('fires before message_end and before any tool', async () => {
    const order: string[] = [];
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [tool({ ...echoOptions(), execute: () => order.push('tool') })],
      middleware: [{ afterModelResponse: () => void order.push('hook') }],
      observers: [
        (event) =>
          void (
            event.type === 'message_end' &&
            event.message?.role === 'assistant' &&
            order.push('message_end')
          ),
      ],
    });
    await agent.run('go');
    await agent.observersIdle();
    expect(order.filter((step) => step !== 'message_end')).toEqual(['hook', 'tool', 'hook']);
  });

  it('concatenates injected messages, stamps user messages synthetic, and puts them after the tool results', async () => {
    let first = true;
    const inject = (name: string, message: Message): Middleware =>
      named(name, { afterModelResponse: () => (first ? { injectMessages: [message] } : undefined) });
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [
        inject('one', userMessage('plain', { mine: 1 })),
        inject('two', syntheticUserMessage('marked', { source: 'elsewhere' })),
        {
          afterModelResponse: () => {
            first = false;
          },
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'user: plain',
      'user: marked',
      'assistant: end',
    ]);
    expect(result.messages[3]!.metadata).toEqual({ mine: 1, synthetic: true, source: 'one' });
    expect(result.messages[4]!.metadata).toEqual({ synthetic: true, source: 'elsewhere' });
    expect(result.messages.map(isSyntheticMessage)).toEqual([false, false, false, true, true, false]);
  });

  it("lets the last decision win: an explicit 'natural' overrides, an absent one has no opinion", async () => {
    const decide = (decision?: 'natural' | 'stop'): Middleware =>
      named(`says ${decision}`, { afterModelResponse: () => ({ decision }) });
    const run = async (...middleware: Middleware[]) => {
      const agent = new Agent({ model: scriptedModel([call(), text('end')]), tools: [echo], middleware });
      return (await watched(agent, 'go')).result;
    };
    expect(await run(decide('stop'), decide('natural'))).toMatchObject({ status: 'done', turns: 2 });
    expect(await run(decide('stop'), decide())).toMatchObject({
      status: 'stopped',
      turns: 1,
      stop: { reason: 'stopped', by: 'says stop' },
    });
    expect(await run(decide('natural'), decide('stop'))).toMatchObject({ status: 'stopped', turns: 1 });
  });

  it('keeps injected messages over a suspension', async () => {
    const store = memoryStore();
    const middleware: Middleware[] = [
      named('nudge', {
        afterModelResponse: (response) =>
          response.content.some(({ type }) => type === 'tool-call')
            ? { injectMessages: [userMessage('after the result')] }
            : undefined,
      }),
      named('asks', { beforeToolCall: () => ({ ask: {} }) }),
    ];
    const agent = () => new Agent({ model: scriptedModel([text('end')]), tools: [echo], store, middleware });
    const first = new Agent({ model: scriptedModel([call()]), tools: [echo], store, middleware });
    const { result } = await watched(first.session('s'), 'go');
    expect(result.status).toBe('suspended');
    await agent()
      .session('s')
      .resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } });
    const messages = await agent().session('s').messages();
    expect(transcript(messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'user: after the result',
      'assistant: end',
    ]);
    expect(isSyntheticMessage(messages[3]!)).toBe(true);
  });
});
