/** One composition rule per decision hook, each tried at its edges. */
import {
  Agent,
  assistantMessage,
  attribution,
  defineMiddleware,
  defineState,
  type Middleware,
  type ModelContext,
  RULES,
  type ToolContext,
  type TurnContext,
  textOf,
  tool,
  toolResult,
  userMessage,
} from 'allium';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { call, echo, named, resultText } from '../../../../../test/rules-setup.js';
import { transcript, watched } from '../../../../../test/run-checks.js';

describe('resolveToolCall: first answer wins', () => {
  const rename = (name: string, to: string): Middleware =>
    named(name, { resolveToolCall: (toolCall) => ({ toolCall: { ...toolCall, id: 'forged', name: to } }) });

  it('takes the first answer, before validation, and keeps the id of the call', async () => {
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ehco', args: { text: 'typo' }, id: 'c1' }), text('end')]),
      tools: [echo],
      middleware: [{ resolveToolCall: () => undefined }, rename('fixes', 'echo'), rename('never', 'nothing')],
    });
    const { result } = await watched(agent, 'go');
    expect(result.messages[2]).toMatchObject({ toolCallId: 'c1', toolName: 'ehco', isError: false });
    expect(resultText(result.messages)).toEqual(['typo']);
  });

  it('may bring a tool that is in no plan', async () => {
    const deferred = tool({
      name: 'deferred',
      description: '',
      input: z.object({ n: z.number() }),
      execute: ({ n }) => n + 1,
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'deferred', args: { n: 41 } }), text('end')]),
      middleware: [{ resolveToolCall: (toolCall) => ({ toolCall, tool: deferred }) }],
    });
    expect(resultText((await watched(agent, 'go')).result.messages)).toEqual(['42']);
  });

  it('cannot smuggle arguments past validation', async () => {
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [
        { resolveToolCall: (toolCall) => ({ toolCall: { ...toolCall, arguments: '{"text":1}' } }) },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result.messages[2]).toMatchObject({ isError: true });
    expect(resultText(result.messages)[0]).toContain('Invalid arguments for "echo"');
  });
});

describe('shouldStopAfterTurn: any true', () => {
  it('stops at the first true and asks nobody after it', async () => {
    const later: number[] = [];
    const agent = new Agent({
      model: scriptedModel([call()]),
      tools: [echo],
      middleware: [
        { shouldStopAfterTurn: () => false },
        { shouldStopAfterTurn: () => undefined },
        named('enough', { shouldStopAfterTurn: async () => true }),
        { shouldStopAfterTurn: () => later.push(1) > 0 },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result).toMatchObject({ status: 'stopped', turns: 1, stop: { reason: 'stopped', by: 'enough' } });
    expect(later).toEqual([]);
  });

  it('takes a reason and a message', async () => {
    const agent = new Agent({
      model: scriptedModel(['x']),
      middleware: [
        named('judge', { shouldStopAfterTurn: () => ({ reason: 'guardrail', message: 'Enough.' }) }),
      ],
    });
    expect((await watched(agent, 'go')).result.stop).toEqual({
      reason: 'guardrail',
      message: 'Enough.',
      by: 'judge',
    });
  });

  it("fires at every turn_end, loop turns included, and not after decision: 'stop'", async () => {
    const turns: number[] = [];
    const counted: Middleware = { shouldStopAfterTurn: (ctx) => void turns.push(ctx.turn) };
    const looping: Middleware = {
      afterModelResponse: (_, ctx) => (ctx.turn === 1 ? { decision: 'loop_to_model' } : undefined),
    };
    await watched(
      new Agent({ model: scriptedModel(['a', call(), 'c']), tools: [echo], middleware: [counted, looping] }),
      'go',
    );
    expect(turns).toEqual([1, 2, 3]);
    turns.length = 0;
    await watched(
      new Agent({
        model: scriptedModel(['a']),
        middleware: [counted, { afterModelResponse: () => ({ decision: 'stop' }) }],
      }),
      'go',
    );
    expect(turns).toEqual([]);
  });

  it('sees the message and the results of the turn', async () => {
    const seen: unknown[] = [];
    const agent = new Agent({
      model: scriptedModel([call()]),
      tools: [echo],
      middleware: [
        {
          shouldStopAfterTurn: (ctx) => {
            seen.push(transcript(ctx.newMessages), ctx.message?.id, ctx.toolResults.map(textOf));
            return true;
          },
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(seen).toEqual([['user: go', 'assistant: <echo>', 'tool: hi'], result.messages[1]!.id, ['hi']]);
  });
});

describe('onRunEnd: concatenate', () => {
  it('injects the messages of all hooks together and goes on in the same run', async () => {
    let rounds = 0;
    const agent = new Agent({
      model: scriptedModel(['first', 'second']),
      middleware: [
        named('goal', { onRunEnd: () => (rounds++ === 0 ? [userMessage('try again')] : undefined) }),
        named('memory', { onRunEnd: () => (rounds === 1 ? [userMessage('remember')] : []) }),
      ],
    });
    const { result, types } = await watched(agent, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: first',
      'user: try again',
      'user: remember',
      'assistant: second',
    ]);
    expect(result.messages[2]!.metadata).toEqual({ synthetic: true, source: 'goal' });
    expect(result).toMatchObject({ status: 'done', turns: 2 });
    expect(types.filter((type) => type === 'agent_end')).toHaveLength(1);
  });

  it("ends with 'loop' at the 101st cycle", async () => {
    let fired = 0;
    const agent = new Agent({
      model: scriptedModel(['again'], { repeat: true }),
      limits: { turns: 1000 },
      middleware: [
        {
          onRunEnd: () => {
            fired++;
            return [userMessage('more')];
          },
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(fired).toBe(101);
    expect(result).toMatchObject({ status: 'stopped', turns: 101, stop: { reason: 'loop', by: 'kernel' } });
  });

  it("fires after decision: 'stop' and after shouldStopAfterTurn", async () => {
    const fired: string[] = [];
    const end: Middleware = { onRunEnd: () => void fired.push('end') };
    await watched(
      new Agent({
        model: scriptedModel(['a']),
        middleware: [end, { afterModelResponse: () => ({ decision: 'stop' }) }],
      }),
      'go',
    );
    await watched(
      new Agent({ model: scriptedModel(['a']), middleware: [end, { shouldStopAfterTurn: () => true }] }),
      'go',
    );
    expect(fired).toEqual(['end', 'end']);
  });
});

describe('explicit callables on the agent replace the composed hook', () => {
  it('runs only the explicit one, and explain() names those that no longer run', async () => {
    const ran: string[] = [];
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [named('logger', { beforeToolCall: () => void ran.push('logger') })],
      beforeToolCall: () => void ran.push('explicit'),
    });
    await watched(agent, 'go');
    expect(ran).toEqual(['explicit']);
    expect(agent.explain().hazards).toMatchObject([{ id: 'hook-replaced', between: ['logger'] }]);
    expect(String(agent.explain())).toContain('never runs: logger');
  });

  it('replaces every rule of the table', async () => {
    const model = scriptedModel(['a', 'b']);
    const ran: string[] = [];
    let rounds = 0;
    const agent = new Agent({
      model,
      middleware: [
        {
          transformContext: () => [userMessage('never')],
          transformSystemPrompt: () => 'never',
          convertToLlm: () => [userMessage('never')],
          afterModelResponse: () => ({ decision: 'stop' as const }),
          shouldStopAfterTurn: () => true,
          onRunEnd: () => [userMessage('never')],
          acceptMessage: () => ({ block: true as const }),
        },
      ],
      acceptMessage: () => void ran.push('acceptMessage'),
      transformContext: (messages) => messages,
      transformSystemPrompt: () => 'explicit',
      convertToLlm: (messages) => messages,
      afterModelResponse: () => void ran.push('afterModelResponse'),
      shouldStopAfterTurn: () => false,
      onRunEnd: () => (rounds++ === 0 ? [userMessage('explicit')] : undefined),
    });
    const { result } = await watched(agent, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: a',
      'user: explicit',
      'assistant: b',
    ]);
    expect(result.messages[2]!.metadata).toEqual({ synthetic: true, source: 'agent' });
    expect(model.requests[0]!.systemPrompt).toBe('explicit');
    expect(ran).toEqual(['acceptMessage', 'afterModelResponse', 'afterModelResponse']);
  });

  it('refuses to replace the hook of a guard, unless `replaces` names it', () => {
    const guard = defineMiddleware({
      name: 'pii',
      guard: { on: ['output'], find: () => [] },
      beforeToolCall: () => undefined,
    });
    const options = { model: scriptedModel([]), middleware: [guard], beforeToolCall: () => undefined };
    expect(() => new Agent(options)).toThrow(
      expect.objectContaining({ code: 'GUARD_REPLACED', message: expect.stringContaining('"pii"') }),
    );
    expect(new Agent({ ...options, replaces: ['pii'] }).explain().hazards).toMatchObject([
      { id: 'hook-replaced' },
    ]);
  });

  it('accepts no layer hooks there', () => {
    expect(() => new Agent({ model: scriptedModel([]), beforeModel: () => undefined } as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('`beforeModel`') }),
    );
  });
});

describe('hooks of all kinds', () => {
  it('fail the run and name the middleware if a transform throws', async () => {
    const error = new Error('broken');
    const agent = new Agent({
      model: scriptedModel([]),
      middleware: [
        named('summary', {
          transformContext: () => {
            throw error;
          },
        }),
      ],
    });
    const { error: failure } = await watched(agent, 'go');
    expect(failure).toMatchObject({ code: 'MIDDLEWARE_ERROR', cause: error });
    expect(attribution(error)).toEqual({ middleware: 'summary', hook: 'transformContext' });
  });

  it("are skipped with onFail: 'open'", async () => {
    const fail = (): never => {
      throw new Error('down');
    };
    const open: Middleware = {
      name: 'open',
      onFail: 'open',
      acceptMessage: fail,
      transformContext: fail,
      transformSystemPrompt: fail,
      convertToLlm: fail,
      resolveToolCall: fail,
      beforeToolCall: fail,
      afterToolCall: fail,
      afterModelResponse: fail,
      shouldStopAfterTurn: fail,
      onRunEnd: fail,
      compact: fail,
    };
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [open],
    });
    const session = agent.session('s');
    const { result } = await watched(session, 'go');
    const compacted = await session.compact();
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'assistant: end',
    ]);
    const changes = [...result.changes, ...compacted.changes];
    expect(new Set(changes.map(({ what }) => what.split(' ')[0]))).toEqual(new Set(Object.keys(RULES)));
  });

  it.each([false, true])("undo what they assigned with onFail: 'open' (async: %s)", async (wait) => {
    const cell = defineState({ name: 'seen', scope: 'session', initial: 'nothing' });
    const after =
      <C extends { state: ToolContext['state']; metadata: Record<string, unknown> }>(
        assign?: (ctx: C) => void,
      ) =>
      (...given: unknown[]): never => {
        const ctx = given.at(-1) as C;
        ctx.state.set(cell, 'mine');
        ctx.metadata.mine = true;
        assign?.(ctx);
        const error = new Error('down');
        if (wait) return Promise.reject(error) as never;
        throw error;
      };
    const prompt = (ctx: ModelContext): void => {
      ctx.systemPrompt = 'mine';
    };
    const output = (ctx: TurnContext): void => ctx.setOutput('mine');
    const open: Middleware = {
      name: 'open',
      onFail: 'open',
      state: [cell],
      acceptMessage: after(),
      transformContext: after(prompt),
      transformSystemPrompt: after(prompt),
      convertToLlm: after(prompt),
      resolveToolCall: after(),
      beforeToolCall: after((ctx: ToolContext) => {
        ctx.args = { text: 'mine' };
        ctx.timeoutMs = 1;
      }),
      afterToolCall: after((ctx: ToolContext) => {
        ctx.result = toolResult({ content: 'mine' });
      }),
      afterModelResponse: after(output),
      shouldStopAfterTurn: after(output),
      onRunEnd: after(output),
    };
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({ model, systemPrompt: 'Be kind.', tools: [echo], middleware: [open] });
    const { result, events } = await watched(agent, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'assistant: end',
    ]);
    expect(model.requests.map(({ systemPrompt }) => systemPrompt)).toEqual(['Be kind.', 'Be kind.']);
    expect(events.filter(({ type }) => type === 'state_change')).toEqual([]);
    expect(result.output).toBeUndefined();
  });

  it.each<[string, keyof Middleware, (ctx: any) => unknown]>([
    [
      'a prompt that is none',
      'transformContext',
      (ctx: ModelContext) => {
        ctx.systemPrompt = 5 as never;
        return [userMessage('mine')];
      },
    ],
    [
      'a result before the call',
      'resolveToolCall',
      (ctx: ToolContext) => {
        ctx.result = toolResult({ content: 'mine' });
        return { toolCall: { ...ctx.toolCall, arguments: '{"text":"mine"}' } };
      },
    ],
    [
      'that the call is skipped',
      'beforeToolCall',
      (ctx: ToolContext) => {
        ctx.skip = true;
        return { args: { text: 'mine' } };
      },
    ],
    [
      'a result that is no JSON',
      'afterToolCall',
      (ctx: ToolContext) => {
        ctx.result = 1n as never;
        return { content: 'mine' };
      },
    ],
  ])("are skipped completely with onFail: 'open' if they assign %s", async (_, hook, assign) => {
    const cell = defineState({ name: 'seen', scope: 'session', initial: 'nothing' });
    for (const wait of [false, true]) {
      const open: Middleware = {
        name: 'open',
        onFail: 'open',
        state: [cell],
        [hook]: (...given: unknown[]) => {
          const ctx = given.at(-1) as ToolContext;
          ctx.state.set(cell, 'mine');
          const answer = assign(ctx);
          return wait ? Promise.resolve(answer) : answer;
        },
      };
      const model = scriptedModel([call(), text('end')]);
      const agent = new Agent({ model, systemPrompt: 'Be kind.', tools: [echo], middleware: [open] });
      const { result, events } = await watched(agent, 'go');
      expect(resultText(result.messages)).toEqual(['hi']);
      expect(model.requests.map(({ systemPrompt }) => systemPrompt)).toEqual(['Be kind.', 'Be kind.']);
      expect(JSON.stringify(model.requests)).not.toContain('mine');
      expect(events.filter(({ type }) => type === 'state_change')).toEqual([]);
      expect(result.changes).toContainEqual(
        expect.objectContaining({
          by: 'open',
          what: expect.stringContaining(`${hook} failed and was skipped`),
        }),
      );
    }
  });

  it('each have a rule, which explain() prints', () => {
    const hooks = Object.fromEntries(Object.keys(RULES).map((hook) => [hook, () => undefined]));
    const text = String(
      new Agent({ model: scriptedModel([]), middleware: [{ name: 'all', ...hooks }] }).explain(),
    );
    for (const [hook, { rule }] of Object.entries(RULES)) expect(text).toContain(`${hook} (${rule}): all`);
  });

  it('may be sync or async, and per-run middleware come after those of the agent', async () => {
    const order: string[] = [];
    const note = (name: string): Middleware =>
      named(name, {
        transformSystemPrompt: async (prompt) => {
          order.push(name);
          return prompt;
        },
      });
    const agent = new Agent({ model: scriptedModel(['ok']), middleware: [note('agent')] });
    await collect(agent.stream('go', { middleware: [note('run')] }));
    expect(order).toEqual(['agent', 'run']);
  });

  it('keep a replaced response in the history and the tokens of the original in the usage', async () => {
    const agent = new Agent({
      model: scriptedModel(['raw']),
      middleware: [{ afterModelResponse: () => ({ response: assistantMessage('other') }) }],
    });
    const { result } = await watched(agent, 'go');
    expect(result.text).toBe('other');
    expect(result.usage.totalTokens).toBe(15);
  });
});
