/** What guards are asked, and what comes of it: each call is judged for itself, and nothing depends on who watches. */
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type Guard,
  type Message,
  type Middleware,
  type Model,
  type ModelResponse,
  type Tool,
  textOf,
  tool,
  toolCallsOf,
  toolResult,
  window,
} from 'allium';
import { chunks, failWith, hang, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { find, MODES, make, outcome, toolTexts } from '../../../../../test/guard-calls-setup.js';

describe('the same object, as the answer to several calls', () => {
  it.each(['a tool', 'a layer', 'a preset'])('is judged for each call: a result of %s', async (kind) => {
    const shared = toolResult({ content: 'row 1' });
    const asked: (string | undefined)[] = [];
    const payroll: Middleware = {
      name: 'payroll-only',
      guard: {
        on: ['tool-result'],
        judge({ toolCall }) {
          asked.push(toolCall?.name);
          return toolCall?.name === 'payroll' ? { type: 'deny', reason: 'Not for you.' } : undefined;
        },
      },
    };
    const layers: Middleware[] =
      kind === 'a layer'
        ? [{ name: 'answers', wrapTool: async () => shared }]
        : kind === 'a preset'
          ? [
              {
                name: 'answers',
                beforeTool(ctx) {
                  ctx.skip = true;
                  ctx.result = shared;
                },
              },
            ]
          : [];
    const result = await new Agent({
      model: scriptedModel([toolCalls({ name: 'weather' }, { name: 'payroll' }), 'done']),
      tools: [make('weather', () => shared), make('payroll', () => shared)],
      middleware: [...layers, payroll],
    }).run('go');
    expect(asked.sort()).toEqual(['payroll', 'weather']);
    expect(toolTexts(result)).toEqual(['row 1', 'Not for you.']);
  });

  it('is judged in each turn: a response of a layer', async () => {
    const call = { type: 'tool-call', id: 'a', name: 'transfer', arguments: '{}' } as const;
    const again: ModelResponse = { role: 'assistant', content: [call], stopReason: 'tool-calls' };
    let sent = 0;
    let asked = 0;
    const result = await new Agent({
      model: scriptedModel(['done']),
      tools: [make('transfer', () => `sent ${++sent}`)],
      middleware: [
        {
          name: 'answers',
          beforeModel(ctx) {
            if (ctx.turn < 3) ctx.response = again;
          },
        },
        {
          name: 'once',
          guard: {
            on: ['tool-args'],
            judge: () => (asked++ > 0 ? { type: 'deny', reason: 'Once only.' } : undefined),
          },
        },
      ],
    }).run('go');
    expect(sent).toBe(1);
    expect(toolTexts(result)).toEqual(['sent 1', 'Once only.']);
  });
});

describe('what an abort or a failure leaves is the same for all, watched or not', () => {
  /** What the last message says, in each mode. */
  async function left(options: (abort: () => void) => Partial<AgentOptions>): Promise<unknown[]> {
    const all: unknown[] = [];
    for (const mode of MODES) {
      const controller = new AbortController();
      const given = options(() => controller.abort());
      const result = await outcome(
        mode,
        (observers) => new Agent({ model: scriptedModel([]), ...given, observers }),
        [],
        controller.signal,
      );
      const last = result.messages.at(-1)!;
      all.push([
        result.status,
        last.role === 'assistant' ? last.content.map((part) => textOf({ content: [part] })) : undefined,
      ]);
    }
    return all;
  }
  const held = (guard: Partial<Guard>): Middleware => ({
    name: 'g',
    guard: { on: ['output'], hold: window(10), find: () => [], ...guard },
  });

  it('in a layer around a model that has answered', async () => {
    const aborts = (abort: () => void): Middleware => ({
      name: 'aborts',
      async wrapModel(ctx, next) {
        await next();
        abort();
        throw ctx.signal.reason;
      },
    });
    const kept = await left((abort) => ({
      model: scriptedModel([chunks('Hello there, this is ', 'all of the text that was made.')]),
      middleware: [aborts(abort), held({})],
    }));
    expect(kept).toEqual(MODES.map(() => ['aborted', ['Hello there, this is all of the text that']]));
  });

  it('in a guard that judges after the others', async () => {
    const kept = await left((abort) => ({
      model: scriptedModel([
        chunks('I look it up.', { type: 'tool-call', id: 'a', name: 'f', arguments: '{}' }),
      ]),
      middleware: [
        {
          name: 'j',
          guard: {
            on: ['output', 'tool-args'],
            async judge({ point }) {
              if (point !== 'tool-args') return;
              abort();
              await new Promise((resolve) => setTimeout(resolve, 1));
            },
          },
        },
      ],
    }));
    expect(kept).toEqual(MODES.map(() => ['aborted', ['I look it up.']]));
  });

  it.each([
    [0, 'stopped'],
    [1, 'error'],
  ])('in a model that fails after a guard has objected, with %i layers', async (layers, status) => {
    const kept = await left(() => ({
      model: scriptedModel([
        failWith(new Error('lost'), 'The SECRET is ', 'out, and much more follows here'),
      ]),
      middleware: [
        held({ action: 'block', find }),
        ...(layers
          ? [{ name: 'l', wrapModel: (_: unknown, next: () => Promise<ModelResponse>) => next() }]
          : []),
      ],
    }));
    expect(kept).toEqual(MODES.map(() => [status, undefined]));
  });

  it('in a block that had ended: nothing of it waits any more', async () => {
    const said = [
      { type: 'text', text: 'I will look that up in the register.' },
      { type: 'tool-call', id: 'a', name: 'f', arguments: '{}' },
      { type: 'text', text: 'And a second block of text.' },
    ] as const;
    const kept = await left((abort) => ({
      model: {
        ...scriptedModel([]),
        async *stream(request, options) {
          yield* said;
          // All of it has been taken in.
          setImmediate(abort);
          yield* scriptedModel([hang()]).stream(request, options);
        },
      },
      middleware: [held({})],
    }));
    expect(kept).toEqual(
      MODES.map(() => ['aborted', ['I will look that up in the register.', 'And a second bloc']]),
    );
  });
});

describe('events of a child', () => {
  const kid = (guard: Guard, observers: ((event: AgentEvent) => void)[]): Agent => {
    const child = new Agent({
      name: 'kid',
      tools: [make('peek', () => 'SECRET')],
      model: scriptedModel([toolCalls({ name: 'peek' }), 'All is well.']),
    });
    return new Agent({
      model: scriptedModel([toolCalls({ name: 'kid', args: { prompt: 'go' } }), 'ok']),
      middleware: [{ name: 'g', guard }],
      tools: [child.asTool({ name: 'kid', description: 'A child.', inheritGuards: false })],
      observers,
    });
  };
  const throws: Guard['find'] = (text) => {
    if (text.includes('SECRET')) throw new Error('cannot');
    return [];
  };

  it.each([
    ['stops', { on: ['tool-result'], action: 'stop', find }],
    ['blocks', { on: ['tool-result'], action: 'block', find }],
    ['fails', { on: ['tool-result'], find: throws }],
    ['redacts', { on: ['tool-result'], find }],
    ['warns', { on: ['tool-result'], action: 'warn', find }],
  ] satisfies [string, Guard][])('decide nothing if a guard %s', async (how, guard) => {
    for (const mode of MODES) {
      const seen: AgentEvent[] = [];
      const result = await outcome(mode, (observers) => kid(guard, observers), seen);
      expect([mode, result.status]).toEqual([mode, 'done']);
      expect(toolTexts(result)).toEqual(['All is well.']);
      expect(result.changes).toEqual([]);
      if (how !== 'warns') expect(JSON.stringify(seen)).not.toContain('SECRET');
      if (mode !== 'run') expect(seen.some(({ type }) => type === 'tool_execution_update')).toBe(true);
    }
  });

  it.each([
    ['JSON', '{"text":"a \\u0053ECRET, \\"quoted\\""}', '{"text":"a [redacted], \\"quoted\\""}'],
    ['no JSON', '{"text":"a \\u0053ECRET', '{"text":"a [redacted]'],
  ])(
    'show the arguments of calls without the removed text, however it is escaped: %s',
    async (_, given, left) => {
      const child = new Agent({
        name: 'kid',
        tools: [make('peek', () => 'ok')],
        model: scriptedModel([toolCalls({ name: 'peek', args: given }), 'All is well.']),
      });
      const seen: AgentEvent[] = [];
      await new Agent({
        model: scriptedModel([toolCalls({ name: 'kid', args: { prompt: 'go' } }), 'ok']),
        middleware: [{ name: 'g', guard: { on: ['tool-result'], find } }],
        tools: [child.asTool({ name: 'kid', description: 'A child.' })],
        observers: [(event) => void seen.push(event)],
      }).run('go');
      expect(JSON.stringify(seen)).not.toContain('u0053');
      expect(JSON.stringify(seen)).toContain(JSON.stringify(left));
    },
  );
});

describe('a call that a guard refused', () => {
  const number = tool({
    name: 'x',
    description: 'x',
    input: z.object({ n: z.number() }),
    execute: () => 'ran',
  }) as Tool;
  const broken: Guard = {
    on: ['tool-args'],
    judge() {
      throw new Error('down');
    },
  };
  const denies: Guard = { on: ['tool-args'], judge: () => ({ type: 'deny', reason: 'Not allowed here.' }) };
  const digits: Guard['find'] = (text) =>
    [...text.matchAll(/\d+/g)].map(({ index, 0: found }) => ({ start: index, end: index + found.length }));

  it.each([
    ['A guard failed while judging this call, so it was not run.', [broken]],
    ['Not allowed here.', [denies, { on: ['tool-args'], find: digits }]],
  ] satisfies [string, Guard[]][])(
    'is reported as refused, not as wrong arguments: %s',
    async (said, guards) => {
      const result = await new Agent({
        model: scriptedModel([toolCalls({ name: 'x', args: { n: 5 } }), 'ok']),
        tools: [number],
        middleware: guards.map((guard, i) => ({ name: `g${i}`, guard })),
      }).run('go');
      expect(toolTexts(result)).toEqual([said]);
      expect(result.changes).toContainEqual({ turn: 1, by: 'g0', what: 'blocked x' });
    },
  );
});

it('arguments that are not JSON are judged as text, and stay unchanged if nothing is found', async () => {
  const model = scriptedModel([
    chunks(
      { type: 'tool-call', id: 'a', name: 'x', arguments: '{"text":"a \\u0053ECRET' },
      { type: 'tool-call', id: 'b', name: 'x', arguments: '{"text":"a \\u0053afe' },
    ),
    'ok',
  ]);
  const middleware: Middleware[] = [{ name: 'g', guard: { on: ['tool-args'], find } }];
  const result = await new Agent({ model, tools: [make('x', () => 'r')], middleware }).run('go');
  expect(toolCallsOf(result.messages[1]!).map(({ arguments: given }) => given)).toEqual([
    '{"text":"a [redacted]',
    '{"text":"a \\u0053afe',
  ]);
});

it('token probabilities are removed together with the text they belong to, in details too', async () => {
  const details = { says: 'a SECRET', logprobs: [{ token: 'SEC' }, { token: 'RET' }], kept: 1 };
  const result = await new Agent({
    model: scriptedModel([toolCalls({ name: 'x' }), 'ok']),
    tools: [make('x', () => toolResult({ content: 'r', details }))],
    middleware: [{ name: 'g', guard: { on: ['tool-result'], find } }],
  }).run('go');
  const message = result.messages.find(({ role }) => role === 'tool') as { details?: unknown };
  expect(message.details).toEqual({ says: 'a [redacted]', kept: 1 });
});

describe('what a hook returns', () => {
  /** Judges what it was given when somebody has tried to edit it meanwhile. */
  const slow = (tried: Promise<void>): Middleware => ({
    name: 'slow',
    guard: {
      on: ['input', 'output', 'tool-result'],
      async judge({ text }) {
        if (text === 'fine') await tried;
        return text.includes('SECRET') ? { type: 'deny', reason: 'No.' } : undefined;
      },
    },
  });

  it.each(['acceptMessage', 'afterModelResponse', 'afterToolCall'] as const)(
    'cannot be edited while guards judge it: %s',
    async (hook) => {
      const part = { type: 'text' as const, text: 'fine' };
      let done = (): void => {};
      const tried = new Promise<void>((resolve) => {
        done = resolve;
      });
      const edited = (): unknown => {
        setImmediate(() => {
          try {
            part.text = 'SECRET';
          } catch {
            // It is frozen.
          }
          done();
        });
        if (hook === 'acceptMessage') return { role: 'user', content: [part] };
        if (hook === 'afterToolCall') return { content: [part] };
        return { response: { role: 'assistant', content: [part], stopReason: 'stop' } };
      };
      const result = await new Agent({
        model: scriptedModel(hook === 'afterToolCall' ? [toolCalls({ name: 'x' }), 'ok'] : ['ok']),
        tools: [make('x', () => 'r')],
        middleware: [{ name: 'edits', [hook]: edited }, slow(tried)],
      }).run('go');
      expect(result.status).toBe('done');
      expect(JSON.stringify(result.messages)).not.toContain('SECRET');
      expect(result.messages.map(textOf)).toContain('fine');
    },
  );
});

describe('a message that its middleware changes between turns', () => {
  it.each(['transformContext', 'convertToLlm', 'beforeModel'] as const)(
    'is judged again: %s',
    async (hook) => {
      const part = { type: 'text' as const, text: 'nothing yet' };
      const note = { role: 'user', content: [part] } as unknown as Message;
      const withNote = (messages: readonly Message[], turn: number): readonly Message[] => {
        if (turn === 2) part.text = 'a SECRET';
        return [...messages, note];
      };
      const changing: Middleware =
        hook === 'beforeModel'
          ? {
              name: 'changing',
              beforeModel(ctx) {
                ctx.messages = withNote(ctx.messages, ctx.turn);
              },
            }
          : {
              name: 'changing',
              [hook]: (messages: readonly Message[], ctx: { turn: number }) => withNote(messages, ctx.turn),
            };
      const sent: string[] = [];
      const scripted = scriptedModel([toolCalls({ name: 'x' }), 'ok']);
      const model: Model = {
        provider: 'p',
        id: 'i',
        stream(request, options) {
          sent.push(textOf(request.messages.at(-1)!));
          return scripted.stream(request, options);
        },
      };
      await new Agent({
        model,
        tools: [make('x', () => 'r')],
        middleware: [changing, { name: 'g', guard: { on: ['request'], find } }],
      }).run('go');
      expect(sent).toEqual(['nothing yet', 'a [redacted]']);
    },
  );
});
