import { Agent, textOf, tool } from 'allium';
import { idempotency } from 'allium/middleware/idempotency';
import { retry } from 'allium/middleware/retry';
import { subagents } from 'allium/middleware/subagents';
import { timeout } from 'allium/middleware/timeout';
import { failWith, hang, type Script, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const down = () => failWith(Object.assign(new Error('overloaded'), { status: 503 }));
const again = (options: object = {}) => retry({ on: 'tool', minDelayMs: 0, ...options });

function boss(clerk: readonly Script[], options: object = {}) {
  const model = scriptedModel(clerk);
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'clerk', args: { prompt: 'go' }, id: 'c' }), text('done')]),
    tools: [new Agent({ name: 'clerk', model }).asTool({ name: 'clerk', description: '' })],
    middleware: [again(options)],
  });
  return { agent, model };
}

describe('retry({ on: "tool" }) of a sub-agent', () => {
  it('runs it again in a new session after a temporary error', async () => {
    const { agent, model } = boss([down(), down(), text('filed')]);
    const { messages } = await agent.run('go');
    expect(messages[2]).toMatchObject({ isError: false, details: { text: 'filed' } });
    expect(model.requests).toHaveLength(3);
    expect(model.requests[2]!.messages).toHaveLength(1);
  });

  it('gives up after its attempts, and tells the model of the last failure', async () => {
    const { agent, model } = boss([down(), down()], { attempts: 2 });
    const { messages, status } = await agent.run('go');
    expect(status).toBe('done');
    expect(messages[2]).toMatchObject({ isError: true });
    expect(textOf(messages[2]!)).toContain('Sub-agent "clerk" failed');
    expect(model.requests).toHaveLength(2);
  });

  it('asks retryOn about the error the sub-agent failed with', async () => {
    const seen: unknown[] = [];
    const { agent, model } = boss([failWith(new Error('broken'))], {
      retryOn: (error: unknown) => {
        seen.push(error);
        return false;
      },
    });
    await agent.run('go');
    expect(model.requests).toHaveLength(1);
    expect(seen).toEqual([expect.objectContaining({ message: 'broken' })]);
  });

  it('leaves other error results alone, and sub-agents that were stopped', async () => {
    let calls = 0;
    const broken = tool({
      name: 'clerk',
      description: '',
      input: z.object({ prompt: z.string() }),
      execute: () => {
        calls++;
        return { isError: true, content: 'no' };
      },
    });
    const script = [toolCalls({ name: 'clerk', args: { prompt: 'go' }, id: 'c' }), text('done')];
    await new Agent({ model: scriptedModel(script), tools: [broken], middleware: [again()] }).run('go');
    expect(calls).toBe(1);
    const stopped = new Agent({
      model: scriptedModel([text('x')], { repeat: true }),
      middleware: [{ name: 'stops', beforeModel: (ctx) => ctx.stop('stopped', 'Enough.') }],
    });
    const { messages } = await new Agent({
      model: scriptedModel(script),
      tools: [stopped.asTool({ name: 'clerk', description: '' })],
      middleware: [again()],
    }).run('go');
    expect(textOf(messages[2]!)).toContain('did not finish');
  });

  it('works for the tasks of subagents(), too, in either order', async () => {
    for (const before of [true, false]) {
      const model = scriptedModel([down(), text('filed')]);
      const helpers = subagents({
        agents: { clerk: { description: 'Files.', systemPrompt: 'File.', model } },
      });
      const args = { name: 'Ann', task: 'File.', prompt: 'File it.', subagent_type: 'clerk' };
      const call = toolCalls({ name: 'subagent', args, id: 't' });
      const agent = new Agent({
        model: scriptedModel([call, text('done')]),
        middleware: before ? [again(), helpers] : [helpers, again()],
      });
      const { messages } = await agent.run('go');
      expect(textOf(messages[2]!)).toContain('filed');
    }
  });

  it('runs it again behind `idempotency`, which keeps only its answer', async () => {
    const model = scriptedModel([down(), text('filed')]);
    const store = new Map();
    const boss = new Agent({
      model: scriptedModel([toolCalls({ name: 'clerk', args: { prompt: 'go' }, id: 'c' }), text('done')]),
      tools: [new Agent({ name: 'clerk', model }).asTool({ name: 'clerk', description: '' })],
      middleware: [again(), idempotency({ store })],
    });
    const { messages } = await boss.run('go');
    expect(messages[2]).toMatchObject({ isError: false, details: { text: 'filed' } });
    expect(JSON.stringify([...store.values()])).not.toContain('overloaded');
  });

  it('runs it again if `timeout` cut it off', async () => {
    const model = scriptedModel([hang(), text('filed')]);
    const boss = new Agent({
      model: scriptedModel([toolCalls({ name: 'clerk', args: { prompt: 'go' }, id: 'c' }), text('done')]),
      tools: [new Agent({ name: 'clerk', model }).asTool({ name: 'clerk', description: '' })],
      middleware: [again(), timeout({ toolMs: 20 }), idempotency({ store: new Map() })],
    });
    expect((await boss.run('go')).messages[2]).toMatchObject({ isError: false, details: { text: 'filed' } });
  });
});
