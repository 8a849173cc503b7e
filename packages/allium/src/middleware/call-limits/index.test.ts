import { Agent, defineMiddleware, isSyntheticMessage, memoryStore, textOf, tool } from 'allium';
import { type CallLimitsOptions, callLimits } from 'allium/middleware/call-limits';
import { structuredOutput } from 'allium/middleware/structured-output';
import { toolSelector } from 'allium/middleware/tool-selector';
import { collect, type Script, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
const dig = tool({
  name: 'dig',
  description: 'Digs.',
  input: z.object({ depth: z.number().optional() }),
  execute: () => 'dug',
});

function setup(script: readonly Script[], options: CallLimitsOptions, repeat = false) {
  const model = scriptedModel(script, { repeat });
  return { model, agent: new Agent({ model, tools: [look, dig], middleware: [callLimits(options)] }) };
}

/** What the model read of each call. */
const resultsOf = (messages: readonly { role: string }[]) =>
  messages.filter(({ role }) => role === 'tool').map((message) => textOf(message as never));

testMiddleware(() => callLimits({ modelCalls: 50, toolCalls: 50, perTool: { kit_add: 50 } }), {
  name: 'call-limits',
  changes: ['state'],
  describe,
  it,
});
for (const onExceed of ['stop', 'tell-model'] as const) {
  testMiddleware(() => callLimits({ modelCalls: 2, toolCalls: 1, onExceed }), {
    name: `call-limits with something to do (${onExceed})`,
    neutral: () => callLimits({ toolCalls: 50 }),
    changes: ['state'],
    describe,
    it,
  });
}

describe('call-limits', () => {
  it('runs the calls that fit, answers the others, and ends the run after the batch', async () => {
    const { agent, model } = setup(
      [toolCalls({ name: 'look', id: 'a' }, { name: 'look', id: 'b' }, { name: 'dig', id: 'c' })],
      { toolCalls: 2 },
    );
    const result = await agent.run('go');
    expect(result.stop).toEqual({
      reason: 'max_tool_calls',
      message: 'the run has made its 2 tool calls.',
      by: 'call-limits',
    });
    expect(resultsOf(result.messages)).toEqual([
      'seen',
      'seen',
      'Not run: the run has made its 2 tool calls. Answer with what you have.',
    ]);
    expect(model.requests).toHaveLength(1);
  });

  it('does not let onRunEnd continue a stopped run', async () => {
    const again = defineMiddleware({ name: 'again', onRunEnd: () => [{ role: 'user' } as never] });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'look' })]),
      tools: [look],
      middleware: [callLimits({ toolCalls: 0 }), again],
    });
    expect((await agent.run('go')).status).toBe('stopped');
  });

  it('ends nothing when the run needs exactly as many calls as it may make', async () => {
    const { agent } = setup([toolCalls({ name: 'look' }), text('done')], { modelCalls: 2, toolCalls: 1 });
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'done' });
  });

  it('tells the model and lets it go on without the call, if configured so', async () => {
    const { agent } = setup(
      [toolCalls({ name: 'look' }), toolCalls({ name: 'look' }, { name: 'dig', id: 'd' }), text('enough')],
      { perTool: { look: 1 }, onExceed: 'tell-model' },
    );
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'done', text: 'enough' });
    expect(resultsOf(result.messages)).toEqual([
      'seen',
      'Not run: the run has made its 1 calls of "look". Answer with what you have.',
      'dug',
    ]);
  });

  it('counts tools named like a property of every object correctly', async () => {
    const odd = tool({ name: 'constructor', description: 'Odd.', input: z.object({}), execute: () => 'ok' });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'constructor' }, { name: 'constructor', id: 'b' }), text('x')]),
      tools: [odd],
      middleware: [callLimits({ perTool: { constructor: 1 }, onExceed: 'tell-model' })],
    });
    expect(resultsOf((await agent.run('go')).messages)).toEqual(['ok', expect.stringContaining('Not run')]);
  });

  it('stops before the model is called once too often', async () => {
    const { agent, model } = setup([toolCalls({ name: 'look' })], { modelCalls: 3 }, true);
    const result = await agent.run('go');
    expect(result.stop).toEqual({
      reason: 'max_turns',
      message: 'The run has made its 3 model calls.',
      by: 'call-limits',
    });
    expect(model.requests).toHaveLength(3);
  });

  it('tells the model that its last allowed answer is the last', async () => {
    const { agent, model } = setup([toolCalls({ name: 'look' }), text('done')], {
      modelCalls: 2,
      onExceed: 'tell-model',
    });
    const result = await agent.run('go');
    const last = model.requests[1]!;
    expect(textOf(last.messages.at(-1)!)).toContain('the last answer');
    expect(last.settings).toEqual({ toolChoice: 'none' });
    expect(last.tools).toHaveLength(2);
    expect(result.messages.some(isSyntheticMessage)).toBe(false);
  });

  it('lets the last answer be a call, if the model answers with one, in either order', async () => {
    const schema = z.object({ found: z.number() });
    for (const first of [true, false]) {
      const limits = callLimits({ modelCalls: 2, onExceed: 'tell-model' });
      const output = structuredOutput({ schema, mode: 'tool' });
      const model = scriptedModel([
        toolCalls({ name: 'look' }),
        ({ settings }) =>
          settings.toolChoice === 'none'
            ? text('I found one.')
            : toolCalls({ name: 'final_answer', args: { found: 1 } }),
      ]);
      const middleware = first ? [limits, output] : [output, limits];
      const agent = new Agent({ model, tools: [look, dig], middleware });
      expect(await agent.run('go')).toMatchObject({ status: 'done', output: { found: 1 } });
      const last = model.requests[1]!;
      expect(last.settings).toEqual({ toolChoice: { tool: 'final_answer' } });
      expect(textOf(last.messages.at(-1)!)).toContain('Call "final_answer" with what you have');
    }
  });

  it('leaves calls of other middleware alone, and the run its answer, in either order', async () => {
    for (const onExceed of ['stop', 'tell-model'] as const)
      for (const first of [true, false]) {
        const cheap = scriptedModel(['["look"]'], { id: 'cheap' });
        const model = scriptedModel(['answer']);
        const selector = toolSelector({ model: cheap, maxTools: 1 });
        const limits = callLimits({ modelCalls: 1, onExceed });
        const middleware = first ? [limits, selector] : [selector, limits];
        const result = await new Agent({ model, tools: [look, dig], middleware }).run('go');
        expect(result).toMatchObject({ status: 'done', text: 'answer' });
        expect(cheap.requests[0]!.messages).toHaveLength(1);
        const told = textOf(model.requests[0]!.messages.at(-1)!).includes('the last answer');
        expect(told).toBe(onExceed === 'tell-model');
      }
  });

  it('counts a call once although its arguments are rewritten', async () => {
    const rewrite = defineMiddleware({
      name: 'rewrite',
      beforeToolCall: (ctx) => (ctx.args.depth === undefined ? { args: { depth: 1 } } : undefined),
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'dig' }), text('done')]),
      tools: [dig],
      middleware: [callLimits({ toolCalls: 1 }), rewrite],
    });
    expect((await agent.run('go')).status).toBe('done');
  });

  it('goes on counting after a resume', async () => {
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({ title: 'Well?' })).type,
    });
    const model = scriptedModel([toolCalls({ name: 'ask' }), toolCalls({ name: 'ask' }), text('done')]);
    const make = () => callLimits({ toolCalls: 1 });
    const store = memoryStore();
    const first = new Agent({ model, tools: [ask], middleware: [make()], store });
    const { pending } = await first.session('s').run('go');
    const second = new Agent({ model, tools: [ask], middleware: [make()], store });
    const result = await second.session('s').resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(result.stop.reason).toBe('max_tool_calls');
    expect(resultsOf(result.messages)[0]).toBe('approve');
  });

  it('keeps 100 concurrent runs, runs of one session and two instances apart', async () => {
    const model = scriptedModel([toolCalls({ name: 'look' }, { name: 'dig', id: 'd' })], { repeat: true });
    const agent = new Agent({
      model,
      tools: [look, dig],
      middleware: [callLimits({ perTool: { look: 2 } }), callLimits({ modelCalls: 5 })],
    });
    const results = await Promise.all(Array.from({ length: 100 }, () => agent.run('go')));
    expect(new Set(results.map(({ turns }) => turns))).toEqual(new Set([3]));
    const session = agent.session('s');
    expect([(await session.run('go')).turns, (await session.run('go')).turns]).toEqual([3, 3]);
  });

  it('does the same when the run is streamed', async () => {
    const script = [toolCalls({ name: 'look' }, { name: 'dig', id: 'd' })];
    const plain = await setup(script, { toolCalls: 1 }).agent.run('go');
    const { result } = await collect(setup(script, { toolCalls: 1 }).agent.stream('go'));
    expect(result?.stop).toEqual(plain.stop);
    expect(resultsOf(result!.messages)).toEqual(resultsOf(plain.messages));
  });

  it.each([
    [{}, 'callLimits() got nothing to limit. Give `modelCalls`, `toolCalls` or `perTool`.'],
    [{ modelCalls: 0 }, 'Expected `modelCalls` to be an integer ≥ 1, got 0.'],
    [{ toolCalls: -1 }, 'Expected `toolCalls` to be an integer ≥ 0, got -1.'],
    [{ perTool: { look: 1.5 } }, 'Expected `perTool.look` to be an integer ≥ 0, got 1.5.'],
    [{ perTool: ['look'] }, 'Expected `perTool` to be an object of tool names and numbers, got ["look"].'],
    [{ toolCalls: 1, onExceed: 'tell' }, "Expected `onExceed` to be 'stop' or 'tell-model', got \"tell\"."],
    [{ toolCall: 1 }, 'Unknown option `toolCall` of callLimits(). Did you mean `toolCalls`?'],
    [undefined, 'Expected `options` to be an object'],
  ])('refuses %j', (options, message) => {
    expect(() => callLimits(options as never)).toThrow(message);
  });
});
