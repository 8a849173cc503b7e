import { approval } from 'allium/middleware/approval';
import { budget } from 'allium/middleware/budget';
import { cache } from 'allium/middleware/cache';
import { callLimits } from 'allium/middleware/call-limits';
import { compaction } from 'allium/middleware/compaction';
import { concurrency } from 'allium/middleware/concurrency';
import { contextEditing } from 'allium/middleware/context-editing';
import { fallback } from 'allium/middleware/fallback';
import { retry } from 'allium/middleware/retry';
import { smoothStream } from 'allium/middleware/smooth-stream';
import { structuredOutput } from 'allium/middleware/structured-output';
import { timeout } from 'allium/middleware/timeout';
import { toolSelector } from 'allium/middleware/tool-selector';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';

const model = scriptedModel([]);

// What LangChain, the AI SDK, Mastra and others call an option, and what it is called by the middleware that has it.
describe('options by the names of other libraries', () => {
  it.each<[string, () => unknown, string]>([
    ['retry maxRetries', () => retry({ maxRetries: 2 } as never), '`attempts`'],
    ['retry backoffFactor', () => retry({ backoffFactor: 2 } as never), '`factor`'],
    ['retry initialDelayMs', () => retry({ initialDelayMs: 2 } as never), '`minDelayMs`'],
    ['retry initial_delay', () => retry({ initial_delay: 2 } as never), '`minDelayMs`'],
    ['retry tools', () => retry({ tools: ['a'] } as never), '`on`'],
    ['fallback firstModel', () => fallback({ firstModel: model } as never), '`models`'],
    ['callLimits maxToolCalls', () => callLimits({ maxToolCalls: 1 } as never), '`toolCalls`'],
    ['cache ttl', () => cache({ ttl: 5 } as never), '`ttlMs`'],
    ['timeout timeout', () => timeout({ timeout: 5 } as never), '`modelMs`'],
    ['callLimits runLimit', () => callLimits({ runLimit: 5 } as never), '`modelCalls`'],
    [
      'callLimits exitBehavior',
      () => callLimits({ modelCalls: 1, exitBehavior: 'end' } as never),
      '`onExceed`',
    ],
    ['compaction trigger', () => compaction({ summaryModel: model, trigger: 5 } as never), '`maxTokens`'],
    ['compaction model', () => compaction({ model, maxTokens: 5 } as never), '`summaryModel`'],
    [
      'contextEditing triggerTokens',
      () => contextEditing({ triggerTokens: 5 } as never),
      '`clearToolResultsAfterTokens`',
    ],
    [
      'contextEditing clearToolInputs',
      () => contextEditing({ clearToolInputs: true } as never),
      '`clearInputs`',
    ],
    ['contextEditing excludeTools', () => contextEditing({ excludeTools: [] } as never), '`keepTools`'],
    ['toolSelector systemPrompt', () => toolSelector({ model, systemPrompt: 'x' } as never), '`prompt`'],
    ['timeout ms', () => timeout({ ms: 5 } as never), '`modelMs`'],
    ['retry baseMs', () => retry({ baseMs: 5 } as never), '`minDelayMs`'],
    ['budget maxTokens', () => budget({ maxTokens: 5 } as never), '`tokens`'],
    ['budget maxCostUsd', () => budget({ maxCostUsd: 5 } as never), '`usd`'],
    ['concurrency limit', () => concurrency({ limit: 5 } as never), '`max`'],
    ['toolSelector max', () => toolSelector({ model, max: 5 } as never), '`maxTools`'],
    ['smoothStream chunking', () => smoothStream({ chunking: 'word' } as never), '`by`'],
    ['compaction keep', () => compaction({ summaryModel: model, keep: 5 } as never), '`keepTailTokens`'],
    ['contextEditing edits', () => contextEditing({ edits: [] } as never), '`clearToolResultsAfterTokens`'],
    ['approval interruptOn', () => approval({ interruptOn: {} } as never), '`policy`'],
    ['structuredOutput strategy', () => structuredOutput({ strategy: 'tool' } as never), '`mode`'],
    ['smoothStream delayInMs', () => smoothStream({ delayInMs: 5 } as never), '`delayMs`'],
  ])('%s', (_, make, here) => {
    expect(make).toThrow(`Here that is ${here}.`);
  });

  it('says nothing of options that the middleware does not have', () => {
    expect(() => smoothStream({ maxRetries: 2 } as never)).toThrow(
      /Unknown option `maxRetries` of smoothStream\(\)\. It takes/,
    );
  });
});
