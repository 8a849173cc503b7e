import { Agent } from 'allium';
import { collect, scriptedModel, testMiddleware } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { maxInputTokens } from './index.js';

testMiddleware(() => maxInputTokens({ limit: 1_000_000 }), { name: 'max-input-tokens', describe, it });

describe('max-input-tokens', () => {
  it('ends the run before a request that is too long is sent', async () => {
    const model = scriptedModel(['Fine.']);
    const agent = new Agent({ model, middleware: [maxInputTokens({ limit: 50 })] });
    const result = await agent.run('word '.repeat(500));
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', by: 'max-input-tokens' },
    });
    expect(result.stop?.message).toMatch(/^The request has about \d+ tokens; at most 50 are allowed\.$/);
    expect(model.requests).toEqual([]);
  });

  it('counts with what it is given, and reports only if told to', async () => {
    const middleware = [
      maxInputTokens({ limit: 5, count: (ctx) => ctx.messages.length + 5, action: 'warn' }),
    ];
    const { events, result } = await collect(
      new Agent({ model: scriptedModel(['Fine.']), middleware }).stream('Hi'),
    );
    expect(result?.text).toBe('Fine.');
    expect(events).toContainEqual(expect.objectContaining({ type: 'custom', name: 'guard_warning' }));
  });

  it.each([
    ['a promise', async () => 9],
    ['not a number', () => Number.NaN],
    ['nothing', () => undefined],
  ])('sends nothing if `count` returns %s', async (_, count) => {
    const model = scriptedModel(['Fine.']);
    const middleware = [maxInputTokens({ limit: 5, count: count as never })];
    await expect(new Agent({ model, middleware }).run('Hi')).rejects.toThrow(
      'Expected `count` of maxInputTokens() to return a number at once',
    );
    expect(model.requests).toEqual([]);
  });

  it('refuses to go without a limit', () => {
    expect(() => maxInputTokens({} as never)).toThrow('Expected `limit` to be an integer ≥ 1');
  });
});
