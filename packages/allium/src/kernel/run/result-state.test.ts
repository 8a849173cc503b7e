/** State read from outside a run, what a failed run leaves with its error, and results of layers that answer themselves. */
import { Agent, defineMiddleware, defineState, memoryStore, type RunResult, runResult, tool } from 'allium';
import { failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const turns = defineState({ name: 'turns', scope: 'run', initial: 0 });
const total = defineState({ name: 'total', scope: 'session', initial: 0 });
const counting = defineMiddleware({
  name: 'counting',
  state: [turns, total],
  beforeModel(ctx) {
    ctx.state.update(turns, (n) => n + 1);
    ctx.state.update(total, (n) => n + 1);
  },
});
const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });
const script = () => scriptedModel([toolCalls({ name: 'look' }), text('done')], { repeat: true });

describe('result.state', () => {
  it('reads cells as they were when the run ended, also after the next one', async () => {
    const session = new Agent({ model: script(), tools: [look], middleware: [counting] }).session('s');
    const first = await session.run('go');
    const second = await session.stream('go').result;
    expect([first.state.get(turns), first.state.get(total), first.state(total)]).toEqual([2, 2, 2]);
    expect([second.state.get(turns), second.state.get(total)]).toEqual([2, 4]);
  });

  it('is there whatever a layer did with the result, but not in its JSON', async () => {
    const copies = defineMiddleware({
      name: 'copies',
      wrapRun: async (_, next) => ({ ...(await next()), text: 'mine' }),
    });
    const agent = new Agent({ model: script(), tools: [look], middleware: [copies, counting] });
    const result = await agent.run('go');
    expect([result.text, result.state.get(turns)]).toEqual(['mine', 2]);
    expect(Object.keys(result)).not.toContain('state');
    expect(structuredClone(result).text).toBe('mine');
  });

  it('is in the result of a run that fails, is stopped or waits', async () => {
    const broken = new Agent({ model: scriptedModel([failWith(new Error('no'))]), middleware: [counting] });
    const stopping = defineMiddleware({ name: 'stopping', afterModel: (ctx) => ctx.stop() });
    const stopped = new Agent({ model: scriptedModel(['x']), middleware: [counting, stopping] });
    const error = await broken.run('go').catch((error) => error);
    expect(error.result.state.get(total)).toBe(0);
    expect((await stopped.run('go')).state.get(turns)).toBe(0);
  });

  it.each([undefined, null, {}, 'turns'])('refuses what is no cell: %s', async (cell) => {
    const session = new Agent({ model: scriptedModel(['x']) }).session('s');
    const result = await session.run('go');
    const refused = { code: 'INVALID_STATE' };
    expect(() => result.state.get(cell as never)).toThrow(expect.objectContaining(refused));
    await expect(session.state(cell as never)).rejects.toMatchObject(refused);
  });

  it('refuses a cell that nobody declared', async () => {
    const result = await new Agent({ model: scriptedModel(['x']) }).run('go');
    expect(() => result.state.get(turns)).toThrow('State cell "turns" is not declared');
  });

  it('has the cells of sub-agents that ended before the run was resumed, in another process too', async () => {
    const store = memoryStore();
    const stop = tool({
      name: 'stop',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({ title: 'Go on?' })).type,
    });
    const call = toolCalls({ name: 'ask', args: { prompt: 'go' } });
    const model = scriptedModel([call, toolCalls({ name: 'stop' }), text('end')]);
    const process = () => {
      const inner = new Agent({ model: script(), tools: [look], middleware: [counting] });
      const middle = new Agent({
        model: scriptedModel([call, text('fine')]),
        tools: [inner.asTool({ name: 'ask', description: '' })],
      });
      const tools = [middle.asTool({ name: 'ask', description: '' }), stop];
      return new Agent({ model, tools, store }).session('s');
    };
    const { pending, messages } = await process().run('go');
    const [question] = pending;
    const resumed = await process().resume({ answers: { [question!.id]: { type: 'approve' } } });
    const { agentId } = (messages[2] as { details: { agentId: string } }).details;
    const { sessions } = await store.list();
    const below = sessions.map(({ sessionId }) => sessionId).find((id) => id.startsWith(`${agentId}/`));
    expect(resumed.status).toBe('done');
    expect(resumed.state.of(agentId)).toBeDefined();
    expect([resumed.state.of(below!)?.get(turns), resumed.state.of(below!)?.get(total)]).toEqual([2, 2]);
    expect(resumed.state.of(`${agentId}/nobody`)).toBeUndefined();
  });

  it('has the cells of sub-agents at any depth, by the id of their session', async () => {
    const store = memoryStore();
    const call = toolCalls({ name: 'ask', args: { prompt: 'go' } });
    const inner = new Agent({ model: script(), tools: [look], middleware: [counting] });
    const middle = new Agent({
      model: scriptedModel([call, text('fine')]),
      tools: [inner.asTool({ name: 'ask', description: '' })],
      middleware: [counting],
    });
    const agent = new Agent({
      model: scriptedModel([call, text('fine')]),
      tools: [middle.asTool({ name: 'ask', description: '' })],
      store,
    });
    const session = agent.session('s');
    const result = await session.run('go');
    const idOf = (messages: RunResult['messages']) =>
      messages.flatMap((message) =>
        message.role === 'tool' ? [(message.details as { agentId: string }).agentId] : [],
      )[0]!;
    const middleId = idOf(result.messages);
    const innerId = idOf(await agent.session(middleId).messages());
    expect(result.state.of(middleId)?.get(turns)).toBe(2);
    expect(result.state.of(innerId)?.get(total)).toBe(2);
    expect(result.state.of('nobody')).toBeUndefined();
    expect(await session.state(total, middleId)).toBe(2);
    expect(await session.state(turns, innerId)).toBe(2);
  });
});

describe('session.state()', () => {
  it('reads cells from the journal, in another process too', async () => {
    const store = memoryStore();
    const make = () => new Agent({ model: script(), tools: [look], middleware: [counting], store });
    expect(await make().session('s').state(total)).toBe(0);
    await make().session('s').run('go');
    expect(await make().session('s').state(total)).toBe(2);
    expect(await make().session('s').state(turns)).toBe(2);
  });

  it('reads the cells of a suspended run', async () => {
    const store = memoryStore();
    const asks = tool({
      name: 'look',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({ title: '?' })).type,
    });
    const session = new Agent({ model: script(), tools: [asks], middleware: [counting], store }).session('s');
    await session.run('go');
    expect(await session.state(turns)).toBe(1);
  });

  it('shows another tenant nothing', async () => {
    const store = memoryStore();
    const agent = new Agent({ model: script(), tools: [look], middleware: [counting], store });
    await agent.session('s', { tenant: 'a' }).run('go');
    await expect(agent.session('s', { tenant: 'b' }).state(total)).rejects.toMatchObject({
      code: 'TENANT_MISMATCH',
    });
  });
});

describe('the error of a failed run', () => {
  it('carries its partial result to the layers that catch it, and stays the same error', async () => {
    const error = new Error('no');
    const seen: unknown[] = [];
    const outer = defineMiddleware({
      name: 'outer',
      async wrapRun(ctx, next) {
        try {
          return await next();
        } catch (caught) {
          const { result } = caught as { result: RunResult };
          seen.push(
            caught === error,
            result.status,
            result.turns,
            result.messages.length,
            result.state(total),
          );
          return runResult(ctx, { text: `Got as far as turn ${result.turns}.` });
        }
      },
    });
    const watching = defineMiddleware({
      name: 'watching',
      afterRun: (ctx) => void seen.push((ctx.error as { result: RunResult }).result.turns),
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'look' }), failWith(error)]),
      tools: [look],
      middleware: [outer, watching, counting],
    });
    expect((await agent.run('go')).text).toBe('Got as far as turn 1.');
    expect(seen).toEqual([1, true, 'error', 1, 3, 1]);
    expect(Object.keys(error)).toEqual([]);
  });

  it('is left alone if it has its own result or is not an object', async () => {
    for (const thrown of [
      Object.assign(new Error('no'), { result: 'its own' }),
      'text',
      Object.freeze(new Error('no')),
    ]) {
      let caught: unknown;
      const outer = defineMiddleware({
        name: 'outer',
        wrapRun: (_, next) =>
          next().catch((error) => {
            caught = error;
            throw error;
          }),
      });
      const agent = new Agent({ model: scriptedModel([failWith(thrown)]), middleware: [outer] });
      await expect(agent.run('go')).rejects.toMatchObject({ cause: thrown });
      expect(caught).toBe(thrown);
      if (typeof thrown === 'object' && 'result' in thrown) expect(thrown.result).toBe('its own');
    }
  });
});

describe('runResult()', () => {
  it('makes a whole result for a layer that answers itself', async () => {
    const closed = defineMiddleware({ name: 'closed', wrapRun: (ctx) => runResult(ctx, 'We are closed.') });
    const agent = new Agent({ model: scriptedModel(['never']), middleware: [closed, counting] });
    const result = await agent.run('go');
    expect(result).toMatchObject({
      status: 'done',
      stop: { reason: 'final' },
      text: 'We are closed.',
      turns: 0,
    });
    expect(result.state.get(turns)).toBe(0);
  });

  it('takes other fields', async () => {
    const closed = defineMiddleware({
      name: 'closed',
      wrapRun: (ctx) =>
        runResult(ctx, { status: 'stopped', stop: { reason: 'guardrail', message: 'No.' }, output: 5 }),
    });
    const result = await new Agent({ model: scriptedModel(['never']), middleware: [closed] }).run('go');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail' }, output: 5 });
  });

  it('refuses anything but a context and a result', () => {
    expect(() => runResult(undefined as never, 'x')).toThrow('Expected `ctx` to be the context of a run');
  });
});
