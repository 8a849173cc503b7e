import { Agent, type Model, textOf, tool } from 'allium';
import { type CompactionOptions, compaction } from 'allium/middleware/compaction';
import { scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BASE, long, setup, silent, summariser } from '../../../../../test/compaction-setup.js';

const { maxTokens: _, ...WITHOUT } = BASE;

describe('compaction', () => {
  it('goes by a part of the window of the model that is asked, or of the one it is told', async () => {
    for (const [window, options] of [
      [1000, {}],
      [undefined, { windowTokens: 1000 }],
      [5, { windowTokens: 1000 }],
    ] as const) {
      const model = Object.assign(scriptedModel([silent], { repeat: true }), {
        contextWindow: window,
      }) as Model;
      const summaryModel = summariser('SUMMARY');
      const made = compaction({ ...WITHOUT, summaryModel, fraction: 0.5, ...options });
      const session = new Agent({ model, middleware: [made] }).session('s');
      for (let n = 0; n < 4; n++) await session.run(long(n));
      expect(summaryModel.requests).toHaveLength(0);
      await session.run(long(5));
      await session.run(long(6));
      expect(summaryModel.requests.length).toBeGreaterThan(0);
    }
  });

  it('says what to pass if nobody knows the window', async () => {
    const made = compaction({ ...WITHOUT, summaryModel: summariser('S'), fraction: 0.5 });
    const agent = new Agent({ model: scriptedModel(['x']), middleware: [made] });
    await expect(agent.run('go')).rejects.toThrow(/needs the context window of .* Pass `windowTokens`/);
  });

  it('puts your words before the summary', async () => {
    const { session, sent } = setup(['SUMMARY'], { summaryPrefix: 'Earlier:' });
    for (let n = 0; n < 7; n++) await session.run(long(n));
    expect(sent()[0]).toBe('Earlier:\n\nSUMMARY');
  });

  it('gives the summariser no more than it may read, the latest first', async () => {
    const { session, summaryModel } = setup(['SUMMARY'], { maxSummaryInputTokens: 150 });
    for (let n = 0; n < 7; n++) await session.run(long(n));
    const question = textOf(summaryModel.requests[0]!.messages[0]!);
    expect(question).toMatch(/^Transcript:\n\n\[\d+ older messages left out\]\n/);
    expect(question).not.toContain('0:xxx');
    expect(question.length).toBeLessThan(300);
  });

  it('keeps the calls and results of some tools as they are', async () => {
    const plan = tool({ name: 'plan', description: '', input: z.object({}), execute: () => 'THE PLAN' });
    const summaryModel = summariser('SUMMARY');
    const model = scriptedModel([toolCalls({ name: 'plan', id: 'p' }), silent], {});
    const rest = scriptedModel([silent], { repeat: true });
    const made = compaction({ ...BASE, summaryModel, keepTools: ['plan'] });
    const first = new Agent({ model, tools: [plan], middleware: [made] });
    await first.session('s').run('Make a plan.');
    const agent = new Agent({ model: rest, tools: [plan], middleware: [made], store: first.store });
    for (let n = 0; n < 7; n++) await agent.session('s').run(long(n));
    expect(summaryModel.requests.length).toBeGreaterThan(0);
    const sent = rest.requests.at(-1)!.messages;
    expect(sent.map(textOf)).toContain('THE PLAN');
    expect(textOf(summaryModel.requests[0]!.messages[0]!)).not.toContain('THE PLAN');
  });

  it.each<[Partial<CompactionOptions>, string]>([
    [{}, 'Expected `maxTokens` to be an integer ≥ 1, unless there is a `fraction`'],
    [{ maxTokens: 5, fraction: 0.5 }, 'Expected `fraction` to be left out where there is `maxTokens`'],
    [
      { maxTokens: 5, windowTokens: 9 },
      'Expected `windowTokens` to be left out where there is no `fraction`',
    ],
    [{ fraction: 1.5 }, 'Expected `fraction` to be a number above 0, up to 1, got 1.5.'],
    [{ maxTokens: 5, keepTools: 'x' as never }, 'Expected `keepTools` to be a list of names'],
  ])('refuses %j', (options, message) => {
    expect(() => compaction({ summaryModel: summariser('S'), ...options })).toThrow(message);
  });
});
