import { Agent, tool, userMessage } from 'allium';
import { maxTurns } from 'allium/middleware/max-turns';
import { scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'nothing yet' });
const again = toolCalls({ name: 'look' });

testMiddleware(() => maxTurns(), { name: 'max-turns', describe, it });
testMiddleware(() => maxTurns({ turns: 1 }), {
  name: 'max-turns with something to do',
  neutral: () => maxTurns(),
  describe,
  it,
});

describe('max-turns', () => {
  it('stops after the given number of turns, with every tool call answered', async () => {
    const model = scriptedModel([again], { repeat: true });
    const agent = new Agent({ model, tools: [look], middleware: [maxTurns({ turns: 3 })] });
    const result = await agent.run('look');
    expect(result).toMatchObject({ status: 'stopped', turns: 3 });
    expect(result.stop).toEqual({
      reason: 'max_turns',
      message: 'The run has taken its 3 turns.',
      by: 'max-turns',
    });
    expect(model.requests).toHaveLength(3);
    expect(result.messages.filter(({ role }) => role === 'tool')).toHaveLength(3);
  });

  it('leaves a run alone that ends before', async () => {
    const agent = new Agent({
      model: scriptedModel([again, text('done')]),
      tools: [look],
      middleware: [maxTurns({ turns: 3 })],
    });
    expect(await agent.run('look')).toMatchObject({ status: 'done', text: 'done', turns: 2 });
  });

  it('calls a run done that answers in its last allowed turn', async () => {
    const agent = new Agent({
      model: scriptedModel([again, text('done')]),
      tools: [look],
      middleware: [maxTurns({ turns: 2 })],
    });
    expect(await agent.run('look')).toMatchObject({ status: 'done', text: 'done', turns: 2 });
  });

  it('allows ten turns unless told otherwise', async () => {
    const agent = new Agent({
      model: scriptedModel([again], { repeat: true }),
      tools: [look],
      middleware: [maxTurns()],
    });
    expect((await agent.run('look')).turns).toBe(10);
  });

  it('counts each of many concurrent runs by itself', async () => {
    const agent = new Agent({
      model: scriptedModel([again], { repeat: true }),
      tools: [look],
      middleware: [maxTurns({ turns: 2 })],
    });
    const results = await Promise.all(Array.from({ length: 20 }, () => agent.run('look')));
    expect(new Set(results.map(({ turns }) => turns))).toEqual(new Set([2]));
  });

  it('counts each run of a session by itself', async () => {
    const agent = new Agent({
      model: scriptedModel([again], { repeat: true }),
      tools: [look],
      middleware: [maxTurns({ turns: 2 })],
    });
    const session = agent.session('s');
    expect((await session.run('look')).turns).toBe(2);
    expect((await session.run('look')).turns).toBe(2);
  });

  it('leaves messages that wait in the session where they are', async () => {
    const agent = new Agent({
      model: scriptedModel([again], { repeat: true }),
      tools: [look],
      middleware: [maxTurns({ turns: 1 })],
    });
    const session = agent.session('s');
    await session.followUp('and then?');
    const { queued } = await session.run('look');
    expect(queued.map(({ content }) => content)).toEqual([userMessage('and then?').content]);
  });

  it.each([
    [{ turns: 0 }, 'Expected `turns` to be an integer ≥ 1, got 0.'],
    [{ turns: 2.5 }, 'Expected `turns` to be an integer ≥ 1, got 2.5.'],
    [{ turns: '3' }, 'Expected `turns` to be an integer ≥ 1, got "3".'],
    [{ turn: 3 }, 'Unknown option `turn` of maxTurns(). Did you mean `turns`?'],
    [5, 'Expected `options` to be an object with turns, name for maxTurns(), got 5.'],
  ])('refuses %j', (options, message) => {
    expect(() => maxTurns(options as never)).toThrow(message);
  });
});
