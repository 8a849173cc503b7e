import { describe, expect, it } from 'vitest';
import { finishOf, usageOf } from './usage.js';

describe('usage of v3 and v4', () => {
  it('takes reported counts and works out the others', () => {
    const usage = {
      inputTokens: { total: 100, cacheRead: 60, cacheWrite: 10 },
      outputTokens: { text: 5, reasoning: 7 },
    };
    expect(usageOf(usage, undefined)).toEqual({
      usage: { inputTokens: 30, outputTokens: 12, cacheRead: 60, cacheWrite: 10 },
      reasoningTokens: 7,
    });
  });

  it('leaves out counts that nobody reported', () => {
    const usage = { inputTokens: { total: undefined }, outputTokens: { total: Number.NaN } };
    expect(usageOf(usage, undefined).usage).toEqual({
      inputTokens: undefined,
      outputTokens: undefined,
      cacheRead: 0,
      cacheWrite: 0,
    });
    expect(usageOf(undefined, undefined)).toEqual({ usage: {}, reasoningTokens: undefined });
  });
});

describe('usage of v2', () => {
  it('subtracts cached tokens from the input if it includes them', () => {
    const usage = {
      inputTokens: 100,
      outputTokens: 5,
      cachedInputTokens: 60,
      totalTokens: 105,
      reasoningTokens: 2,
    };
    expect(usageOf(usage, { openai: {} }).usage).toEqual({
      inputTokens: 40,
      outputTokens: 5,
      cacheRead: 60,
      cacheWrite: 0,
    });
  });

  it('leaves the input alone if it does not include them, judging by the provider or the numbers', () => {
    const usage = { inputTokens: 100, outputTokens: 5, cachedInputTokens: 60 };
    const anthropic = { anthropic: { cacheCreationInputTokens: 20 } };
    const bedrock = { bedrock: { usage: { cacheWriteInputTokens: 20 } } };
    for (const metadata of [anthropic, bedrock])
      expect(usageOf(usage, metadata).usage).toMatchObject({
        inputTokens: 100,
        cacheRead: 60,
        cacheWrite: 20,
      });
    expect(usageOf(usage, { bedrock: {} }).usage).toMatchObject({ inputTokens: 100, cacheWrite: 0 });
    expect(usageOf({ ...usage, inputTokens: 10 }, undefined).usage).toMatchObject({
      inputTokens: 10,
      cacheRead: 60,
    });
  });

  it('adds thinking to the output if the total shows that it is not included', () => {
    const usage = { inputTokens: 10, outputTokens: 5, reasoningTokens: 7 };
    expect(usageOf({ ...usage, totalTokens: 22 }, undefined).usage.outputTokens).toBe(12);
    expect(usageOf({ ...usage, totalTokens: 15 }, undefined).usage.outputTokens).toBe(5);
  });
});

describe('finishOf', () => {
  it.each([
    ['stop', 'stop', false],
    ['tool-calls', 'tool-calls', false],
    ['other', 'other', false],
    ['unknown', 'other', true],
    [undefined, 'other', true],
    [{ unified: 'length', raw: 'max_tokens' }, 'length', false],
    [{ unified: 'stop', raw: undefined }, 'stop', false],
    [{ unified: 'other', raw: 'pause' }, 'other', false],
    [{ unified: 'other', raw: undefined }, 'other', true],
    [{ unified: 'interrupted', raw: undefined }, 'other', true],
    [{ unified: 'novel', raw: 'novel' }, 'other', false],
  ] as const)('%j is %s, cut off: %s', (given, reason, cut) => {
    expect(finishOf(given, undefined)).toMatchObject({ reason, cut });
  });

  it("takes an unknown finish reason as a real one if the answer's tokens were counted", () => {
    expect(finishOf('unknown', 5)).toMatchObject({ reason: 'other', cut: false });
    expect(finishOf('unknown', 0)).toMatchObject({ cut: true });
    expect(finishOf({ unified: 'other', raw: undefined }, 5)).toMatchObject({ cut: true });
  });
});
