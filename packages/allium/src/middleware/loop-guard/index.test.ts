import { Agent, defineMiddleware, isSyntheticMessage, memoryStore, textOf, tool } from 'allium';
import { callLimits } from 'allium/middleware/call-limits';
import { deferredTools } from 'allium/middleware/deferred-tools';
import { type LoopGuardOptions, loopGuard } from 'allium/middleware/loop-guard';
import { maxTurns } from 'allium/middleware/max-turns';
import { collect, type Script, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const look = tool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ at: z.string().optional(), from: z.string().optional() }),
  execute: ({ at }) => `nothing at ${at}`,
});
const same = toolCalls({ name: 'look', args: { at: 'a' } });
const other = toolCalls({ name: 'look', args: { at: 'b' } });

function setup(script: readonly Script[], options?: LoopGuardOptions, repeat = false) {
  const model = scriptedModel(script, { repeat });
  return { model, agent: new Agent({ model, tools: [look], middleware: [loopGuard(options)] }) };
}

const again = {
  name: 'the same call again and again',
  answers: Array.from({ length: 10 }, () => toolCalls({ name: 'kit_add', args: { a: 1, b: 2 } })),
};

testMiddleware(() => loopGuard(), {
  name: 'loop-guard',
  changes: ['state'],
  scenarios: [again],
  describe,
  it,
});
testMiddleware(() => loopGuard({ repeats: 2, action: 'stop' }), {
  name: 'loop-guard that stops at once',
  changes: ['state'],
  scenarios: [again],
  describe,
  it,
});

describe('loop-guard', () => {
  it('tells the model once, then stops the run', async () => {
    const { agent, model } = setup([same], {}, true);
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'stopped', turns: 4 });
    expect(result.stop).toEqual({
      reason: 'loop',
      message: 'The same tool calls had the same results 4 times in 4 turns.',
      by: 'loop-guard',
    });
    const nudges = result.messages.filter(isSyntheticMessage);
    expect(nudges).toHaveLength(1);
    expect(nudges[0]?.metadata).toEqual({ synthetic: true, source: 'loop-guard' });
    expect(model.requests[2]!.messages.some(isSyntheticMessage)).toBe(false);
    expect(textOf(model.requests[3]!.messages.at(-1)!)).toContain('Do something else');
  });

  it('lets a run go on that takes the hint', async () => {
    const { agent } = setup([same, same, same, other, text('found')]);
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'found', turns: 5 });
  });

  it('stops at once when told to', async () => {
    const { agent } = setup([same], { action: 'stop' }, true);
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'stopped', turns: 3, stop: { reason: 'loop' } });
    expect(result.messages.some(isSyntheticMessage)).toBe(false);
  });

  it('sees a circle of several turns', async () => {
    const { agent } = setup([same, other], { action: 'stop' }, true);
    expect((await agent.run('go')).turns).toBe(5);
  });

  it('forgets turns that have left the window', async () => {
    const place = (at: string) => toolCalls({ name: 'look', args: { at } });
    const script = [same, place('b'), place('c'), same, place('d'), place('e'), same, text('done')];
    expect((await setup(script, { window: 6 }).agent.run('go')).status).toBe('done');
    expect((await setup(script, { window: 7, action: 'stop' }).agent.run('go')).status).toBe('stopped');
  });

  it('lets the same calls repeat as long as their results differ', async () => {
    let n = 0;
    const poll = tool({ name: 'poll', description: 'Polls.', input: z.object({}), execute: () => ++n });
    const steps = Array.from({ length: 8 }, () => toolCalls({ name: 'poll' }));
    const agent = new Agent({
      model: scriptedModel([...steps, text('done')]),
      tools: [poll],
      middleware: [loopGuard()],
    });
    expect((await agent.run('go')).status).toBe('done');
  });

  describe.each(['dispatch', 'inject'] as const)('with deferredTools that %s', (strategy) => {
    const poll = tool({ name: 'poll', description: '', input: z.object({}), execute: () => 'pending' });
    const groups = [{ id: 'g', title: 'G', description: 'd', toolNames: ['poll'], load: () => [poll] }];
    const call =
      strategy === 'dispatch'
        ? toolCalls({ name: 'deferred_tool_call', args: { tool_name: 'poll' } })
        : toolCalls({ name: 'poll' });
    const script = (turn: Script) => [
      toolCalls({ name: 'load_tools', args: { groups: ['g'] } }),
      ...Array<Script>(8).fill(turn),
      text('done'),
    ];
    const run = (turn: Script, options: LoopGuardOptions) =>
      new Agent({
        model: scriptedModel(script(turn)),
        tools: [look],
        middleware: [deferredTools({ groups, strategy }), loopGuard({ action: 'stop', ...options })],
      }).run('go');

    it('ignores the tool that is really called', async () => {
      expect((await run(call, { ignore: ['poll'] })).stop.reason).toBe('final');
      expect((await run(call, { ignore: ({ name }) => name === 'poll' })).stop.reason).toBe('final');
    });

    it('fails if the `ignore` function is async, instead of guarding nothing', async () => {
      const fails = async () => Promise.reject(new Error('no idea'));
      for (const ignore of [async () => false, fails])
        await expect(run(call, { ignore: ignore as never })).rejects.toThrow(
          'Expected `ignore()` to be a function that answers at once',
        );
    });

    it('still sees it when it is not ignored, and what else repeats', async () => {
      expect((await run(call, { ignore: ['other'] })).stop.reason).toBe('loop');
      expect((await run(same, { ignore: ['poll'] })).stop.reason).toBe('loop');
    });
  });

  it('respects middleware outside it that end the run, and adds a turn if they stand inside', async () => {
    const poll = tool({ name: 'poll', description: '', input: z.object({}), execute: () => 'pending' });
    for (const [ending, reason] of [
      [maxTurns({ turns: 2 }), 'max_turns'],
      [callLimits({ perTool: { poll: 1 } }), 'max_tool_calls'],
    ] as const)
      for (const first of [true, false]) {
        // The hint is due in the second turn, which is to be the last.
        const guard = loopGuard({ repeats: 2, ignore: ['poll'] });
        const both = toolCalls({ name: 'look' }, { name: 'poll' });
        const { stop, turns } = await new Agent({
          model: scriptedModel([both, both, text('done')]),
          tools: [look, poll],
          middleware: first ? [ending, guard] : [guard, ending],
        }).run('go');
        expect(turns).toBe(first ? 2 : 3);
        if (first) expect(stop.reason).toBe(reason);
      }
  });

  it('ignores a resolved call over a resume', async () => {
    const store = memoryStore();
    const poll = tool({ name: 'poll', description: '', input: z.object({}), execute: () => 'pending' });
    const ask = tool({
      name: 'ask',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => JSON.stringify(await ctx.suspend({ title: 'Go on?' })),
    });
    const alias = defineMiddleware({
      name: 'alias',
      resolveToolCall: (toolCall) =>
        toolCall.name === 'look' ? { toolCall: { ...toolCall, name: 'poll' }, tool: poll } : undefined,
    });
    const both = toolCalls({ name: 'look' }, { name: 'ask' });
    const model = scriptedModel([both, both, both, text('done')]);
    const middleware = [alias, loopGuard({ ignore: ['poll', 'ask'], action: 'stop' })];
    const session = () => new Agent({ model, store, tools: [look, ask], middleware }).session('s');
    let result = await session().run('go');
    while (result.status === 'suspended')
      result = await session().resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } });
    expect(result).toMatchObject({ status: 'done', turns: 4 });
  });

  it('ignores the tools it is told to ignore, alone and beside others', async () => {
    const mixed = toolCalls({ name: 'look', args: { at: 'a' } }, { name: 'wait', id: 'w' });
    let n = 0;
    const wait = tool({ name: 'wait', description: 'Waits.', input: z.object({}), execute: () => ++n });
    const make = (script: readonly Script[], ignore: LoopGuardOptions['ignore'], repeat: boolean) =>
      new Agent({
        model: scriptedModel(script, { repeat }),
        tools: [look, wait],
        middleware: [loopGuard({ ignore, action: 'stop' })],
      });
    const polls = Array.from({ length: 5 }, () => same);
    expect((await make([...polls, text('done')], ['look'], false).run('go')).status).toBe('done');
    expect((await make([mixed], ({ name }) => name === 'wait', true).run('go')).turns).toBe(3);
  });

  it('takes no notice of the order of calls and keys, nor of spaces', async () => {
    const one = toolCalls({ name: 'look', args: '{"at":"a","from":"b"}' }, { name: 'look', id: 'x' });
    const two = toolCalls({ name: 'look' }, { name: 'look', args: '{ "from": "b", "at": "a" }', id: 'y' });
    const { agent } = setup([one, two], { action: 'stop' }, true);
    expect((await agent.run('go')).turns).toBe(3);
  });

  it('counts calls that fail or are refused, too', async () => {
    const bad = toolCalls({ name: 'nowhere', args: '{"a":' });
    expect((await setup([bad], { action: 'stop' }, true).agent.run('go')).turns).toBe(3);
  });

  it('leaves the end of the run to others if it has no objection', async () => {
    const model = scriptedModel(['one', 'two']);
    let asked = 0;
    const more = defineMiddleware({
      name: 'more',
      onRunEnd: () => (asked++ === 0 ? [{ id: '', role: 'user', content: [] }] : undefined),
    });
    const result = await new Agent({ model, middleware: [loopGuard(), more] }).run('go');
    expect(result).toMatchObject({ status: 'done', text: 'two' });
  });

  it('remembers across a resume', async () => {
    let calls = 0;
    const ask = tool({
      name: 'ask',
      description: 'Asks, the third time.',
      input: z.object({}),
      async execute(_, ctx) {
        if (++calls >= 3) await ctx.suspend({ title: 'Well?' });
        return 'the same';
      },
    });
    const store = memoryStore();
    const model = scriptedModel([toolCalls({ name: 'ask' })], { repeat: true });
    const make = () => new Agent({ model, tools: [ask], store, middleware: [loopGuard({ action: 'stop' })] });
    const { pending } = await make().session('s').run('go');
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    const result = await make().session('s').resume({ answers });
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'loop' }, turns: 3 });
  });

  it('keeps 100 concurrent runs and two instances apart', async () => {
    const agent = new Agent({
      model: scriptedModel([same], { repeat: true }),
      tools: [look],
      middleware: [loopGuard({ repeats: 4 }), loopGuard({ repeats: 2, action: 'stop' })],
    });
    const results = await Promise.all(Array.from({ length: 100 }, () => agent.run('go')));
    expect(new Set(results.map(({ turns }) => turns))).toEqual(new Set([2]));
  });

  it('does the same when the run is streamed', async () => {
    const plain = await setup([same], {}, true).agent.run('go');
    const { result } = await collect(setup([same], {}, true).agent.stream('go'));
    expect(result?.stop).toEqual(plain.stop);
    expect(result?.messages.map(textOf)).toEqual(plain.messages.map(textOf));
  });

  it.each([
    [{ window: 1 }, 'Expected `window` to be an integer from 2 to 1000, got 1.'],
    [{ repeats: 7 }, 'Expected `repeats` to be an integer from 2 to 6, got 7.'],
    [{ repeats: 1 }, 'Expected `repeats` to be an integer ≥ 2, got 1.'],
    [{ ignore: 'poll' }, 'Expected `ignore` to be a list of tool names or a function, got "poll".'],
    [{ action: 'warn' }, "Expected `action` to be 'nudge' or 'stop', got \"warn\"."],
    [{ repeat: 3 }, 'Unknown option `repeat` of loopGuard(). Did you mean `repeats`?'],
  ])('refuses %j', (options, message) => {
    expect(() => loopGuard(options as never)).toThrow(message);
  });

  it('goes on from what an earlier version stored', async () => {
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({})).type,
    });
    const model = scriptedModel([same, same, toolCalls({ name: 'ask' }), same]);
    const middleware = [loopGuard({ action: 'stop' })];
    const [store, older] = [memoryStore(), memoryStore()];
    const { pending } = await new Agent({ model, tools: [look, ask], middleware, store })
      .session('s')
      .run('go');
    const entries = store.read('s', 1).map(({ seq: _, ...entry }) => {
      if (entry.type !== 'state' || entry.cell !== 'loop-guard:seen') return entry;
      const value = entry.value as { turns: string };
      return { ...entry, version: 1, value: { ...value, turns: value.turns.match(/.{22}/g) } };
    });
    expect(entries.filter(({ type }) => type === 'state')).toHaveLength(2);
    older.append('s', 0, entries);
    const result = await new Agent({ model, tools: [look, ask], middleware, store: older })
      .session('s')
      .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(result.stop.message).toBe('The same tool calls had the same results 3 times in 4 turns.');
  });
});
