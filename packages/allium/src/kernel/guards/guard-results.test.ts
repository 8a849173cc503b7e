// Guards of tool results, and of the final answer.

import { Agent, defineMiddleware, type Middleware, textOf, tool, toolResult, window } from 'allium';
import { collect, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { agentOf, guarding, judging, redacting, resultTexts } from '../../../../../test/guards-setup.js';

describe('tool-result', () => {
  it('is cleaned before it is shown, stored or sent, and judged only once with sinks around', async () => {
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

  it('updates are cleaned; with a judge none is shown, because they cannot wait for it', async () => {
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

  it('details are dropped if a judge rewrote the text', async () => {
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

  const quoting = (content: string) => [
    { type: 'text' as const, text: content, metadata: { quote: 'SECRET', provider: { p: { q: 'SECRET' } } } },
    { type: 'image' as const, data: 'AA==', mimeType: 'image/png', metadata: { alt: 'SECRET' } },
    { type: 'text' as const, text: 'more', metadata: { seal: 'kept' } },
  ];
  const tellsBeside = tool({
    name: 'tells_beside',
    description: 'T.',
    input: z.any(),
    execute(_, ctx) {
      ctx.update(quoting('half'));
      return quoting('done');
    },
  });
  it.each<[string, Partial<Middleware>]>([
    ['a tool', {}],
    ['a layer', { wrapTool: async () => ({ content: quoting('done'), isError: false }) }],
    [
      'a hook before the call',
      { beforeToolCall: () => ({ result: { content: quoting('done'), isError: false } }) },
    ],
    ['a hook after the call', { afterToolCall: () => ({ content: quoting('done') }) }],
  ])('metadata of its parts is dropped if a guard finds something in it: of %s', async (_, hooks) => {
    const model = scriptedModel([toolCalls({ name: 'tells_beside' }), 'end']);
    const middleware = [redacting(['tool-result']), { name: 'other', ...hooks } as Middleware];
    const { events, result } = await collect(
      new Agent({ model, tools: [tellsBeside], middleware }).stream('hi'),
    );
    expect(JSON.stringify([events, result, model.requests])).not.toContain('SECRET');
    expect(result!.messages[2]!.content).toEqual([
      { type: 'text', text: 'done' },
      { type: 'image', data: 'AA==', mimeType: 'image/png' },
      { type: 'text', text: 'more', metadata: { seal: 'kept' } },
    ]);
  });

  it('metadata of its parts is dropped if a judge rewrote the text', async () => {
    const model = scriptedModel([toolCalls({ name: 'tells_beside' }), 'end']);
    const middleware = [judging(['tool-result'], () => ({ type: 'rewrite', text: 'nothing' }))];
    const { messages } = await new Agent({ model, tools: [tellsBeside], middleware }).run('hi');
    expect(messages[2]!.content.flatMap((part) => part.metadata ?? [])).toEqual([]);
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
    'details that are %s are shown as the JSON they are stored as, or not at all',
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

    it('is cleaned even if the batch breaks off', async () => {
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

  it('is replaced by a fixed text if the run stops before a judge has seen it', async () => {
    const stops: Middleware = { name: 'stops', beforeToolCall: (ctx) => ctx.stop('stopped', 'SECRET') };
    const judge = judging(['tool-result'], () => undefined);
    expect((await batch([stops, judge], 'SECRET')).texts).toEqual([plain, plain]);
  });

  it('is cleaned when the run stops before anything has seen the call', async () => {
    const early: Middleware = { name: 'early', resolveToolCall: (_, ctx) => ctx.stop('stopped', 'SECRET') };
    const cleaned = 'Not run: the run was stopped: [redacted]';
    expect((await batch([early, redacting(['tool-result'])])).texts).toEqual([cleaned, cleaned]);
  });

  it('is replaced by a fixed text if the run stops and the guard fails', async () => {
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

  it('written because afterToolCall failed is judged like any other', async () => {
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
