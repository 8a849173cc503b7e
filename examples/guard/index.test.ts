import { Agent, tool } from 'allium';
import { chunks, collect, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { hideNumbers } from './index.js';

// The laws every middleware keeps, one test each.
testMiddleware(() => hideNumbers(), { name: 'hide-numbers', describe, it });

describe('hideNumbers', () => {
  it('hides a number however the stream is cut into pieces, and notes it in the result', async () => {
    const model = scriptedModel([chunks('Card 4111 11', '11-1111 1', '111, room 12.')]);
    const agent = new Agent({ model, middleware: [hideNumbers()] });
    const { events, result } = await collect(agent.stream('Which?'));
    expect(result?.text).toBe('Card [number], room 12.');
    expect(JSON.stringify(events)).not.toContain('4111');
    expect(result?.changes).toContainEqual(
      expect.objectContaining({ by: 'hide-numbers', what: 'hid numbers of up to 16 digits from an answer' }),
    );
  });

  it('hides what a tool returns from the model', async () => {
    const look = tool({
      name: 'look',
      description: 'Looks.',
      input: z.object({}),
      execute: () => 'It is 123456789012.',
    });
    const model = scriptedModel([toolCalls({ name: 'look' }), text('Seen.')]);
    const result = await new Agent({ model, tools: [look], middleware: [hideNumbers()] }).run('Look');
    expect(result.text).toBe('Seen.');
    expect(JSON.stringify(model.requests)).not.toContain('123456789012');
  });

  it('ends the run if the action says so', async () => {
    const model = scriptedModel(['It is 123456789012.']);
    const agent = new Agent({ model, middleware: [hideNumbers({ action: 'stop' })] });
    expect(await agent.run('Which?')).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail' } });
  });

  it('shares no state between runs', async () => {
    const model = scriptedModel(['It is 123456789012.', 'Nothing.']);
    const session = new Agent({ model, middleware: [hideNumbers()] }).session('s');
    expect((await session.run('Which?')).changes).not.toEqual([]);
    expect((await session.run('And now?')).changes.filter(({ what }) => /hid/.test(what))).toEqual([]);
  });

  it.each([
    [{ digits: 1 }, 'Expected `digits` to be an integer from 2 to 24, got 1.'],
    [{ digit: 12 }, 'Unknown option `digit` of hideNumbers(). Did you mean `digits`?'],
    [{ action: 'warn' }, "Expected `action` to be 'redact' or 'stop', got \"warn\"."],
  ])('refuses %j', (options, message) => {
    expect(() => hideNumbers(options as never)).toThrow(message);
  });
});
