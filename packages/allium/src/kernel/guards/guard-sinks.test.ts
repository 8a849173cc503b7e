// Sinks see what the guards left.

import {
  assistantMessage,
  defineMiddleware,
  type Guard,
  type Middleware,
  type ModelResponse,
  textOf,
  toolResult,
} from 'allium';
import { chunks, collect, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { agentOf, calls, judging, redacting, resultTexts } from '../../../../../test/guards-setup.js';

describe('sinks', () => {
  it('see the guarded text, judged once, even if the response streams live', async () => {
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

  it('layers that are not sinks see what came from further in', async () => {
    const seen: string[] = [];
    const plain = defineMiddleware({
      name: 'plain',
      afterModel: (ctx) => void seen.push(textOf(ctx.response!)),
    });
    await agentOf(['SECRET'], plain, redacting(['output'])).agent.run('hi');
    expect(seen).toEqual(['SECRET']);
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

    it('is what guards and hooks left of it, and `messages` is then the history', async () => {
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

    it('is nothing if it was refused', async () => {
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

    it('a call that guards refused because of it stays refused', async () => {
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

it('the journal does not hold what a guard finds in the reason of afterModelResponse', async () => {
  const again: Middleware = {
    name: 'again',
    afterModelResponse: (_, { turn }) =>
      turn === 1 ? { decision: 'loop_to_model', why: 'they said SECRET' } : undefined,
  };
  const { agent, session } = agentOf(['one', 'two'], again, redacting(['output']));
  await session.run('hi');
  const entries = JSON.stringify(await agent.store.read(session.id, 1));
  expect(entries).toContain('they said [redacted]');
  expect(entries).not.toContain('SECRET');
});
