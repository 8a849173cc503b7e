import { Agent, type AgentEvent, tool } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const agentWith = (more: object = {}) =>
  new Agent({ model: scriptedModel([text('hi')], { repeat: true }), ...more });

describe('agent.observe()', () => {
  it('sends every run to an observer that was added later, until it is removed', async () => {
    const agent = agentWith();
    const seen: string[] = [];
    await agent.run('one');
    const remove = agent.observe((event) => void seen.push(event.type));
    await agent.run('two');
    await agent.observersIdle();
    expect(seen[0]).toBe('agent_start');
    expect(seen.at(-1)).toBe('agent_end');
    const count = seen.length;
    remove();
    remove();
    await agent.run('three');
    await agent.observersIdle();
    expect(seen).toHaveLength(count);
  });

  it('leaves the others alone, and numbers those that fail', async () => {
    const problems: string[] = [];
    const seen: AgentEvent[] = [];
    const agent = agentWith({
      observers: [(event: AgentEvent) => void seen.push(event)],
      onObserverError: ({ observer }: { observer: string }) => problems.push(observer),
    });
    const remove = agent.observe(() => {
      throw new Error('broken');
    });
    agent.observe({ name: 'mine', onEvent: () => Promise.reject(new Error('broken')) });
    await agent.run('one');
    await agent.observersIdle();
    expect(new Set(problems)).toEqual(new Set(['observer 2', 'mine']));
    remove();
    problems.length = 0;
    await agent.run('two');
    await agent.observersIdle();
    expect(new Set(problems)).toEqual(new Set(['mine']));
    expect(seen.filter(({ type }) => type === 'agent_end')).toHaveLength(2);
  });

  it('joins a run under way that somebody reads, and leaves it again', async () => {
    const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'look', id: 'a' }),
        toolCalls({ name: 'look', id: 'b' }),
        text('done'),
      ]),
      tools: [look],
    });
    const seen: string[] = [];
    let remove: (() => void) | undefined;
    for await (const event of agent.stream('go')) {
      if (event.type === 'turn_start' && event.turn === 2)
        remove = agent.observe(({ type }) => void seen.push(type));
      if (event.type === 'turn_end' && event.turn === 2) {
        await agent.observersIdle();
        remove!();
      }
    }
    expect(seen).toContain('tool_execution_end');
    expect(seen).not.toContain('agent_start');
    expect(seen).not.toContain('agent_end');
  });

  it('refuses anything but an observer', () => {
    expect(() => agentWith().observe({} as never)).toThrow('Expected `observer` to be');
  });
});
