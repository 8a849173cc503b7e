import { Agent, type SystemBlock } from 'allium';
import { systemBlocksOf } from 'allium/kit';
import { cacheMark, promptCaching } from 'allium/middleware/prompt-caching';
import { scriptedModel, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';

const mark = { provider: { anthropic: { cacheControl: { type: 'ephemeral' } } } };
const rules: SystemBlock = { text: 'The rules.', metadata: mark };

async function blocks(systemPrompt: readonly (string | SystemBlock)[], ...middleware: object[]) {
  const model = scriptedModel([text('ok')]);
  const agent = new Agent({ model, systemPrompt, middleware });
  await agent.run('go');
  const [request] = model.requests;
  return { prompt: request!.systemPrompt, blocks: systemBlocksOf(request!) };
}

describe('a system prompt of several blocks', () => {
  it('is one text for hooks and most models, and blocks for models that take blocks', async () => {
    expect(await blocks([rules, '', 'Today is Monday.'])).toEqual({
      prompt: 'The rules.\n\nToday is Monday.',
      blocks: [rules, { text: 'Today is Monday.' }],
    });
  });

  it('keeps its blocks when something is appended', async () => {
    const more = { name: 'more', transformSystemPrompt: (prompt: string) => `${prompt}\n\nBe kind.` };
    expect((await blocks([rules, 'Today.'], more)).blocks).toEqual([
      rules,
      { text: 'Today.' },
      { text: 'Be kind.' },
    ]);
  });

  it('never restores changed text, and cuts no block in two', async () => {
    const change = {
      name: 'change',
      transformSystemPrompt: (prompt: string) => prompt.replace('Today', 'Now'),
    };
    expect((await blocks([rules, 'Today.', 'End.'], change)).blocks).toEqual([
      rules,
      { text: 'Now.\n\nEnd.' },
    ]);
    const before = { name: 'before', transformSystemPrompt: (prompt: string) => `Hi. ${prompt}` };
    expect((await blocks([rules, 'Today.'], before)).blocks).toEqual([{ text: 'Hi. The rules.\n\nToday.' }]);
    const glued = { name: 'glued', transformSystemPrompt: (prompt: string) => `${prompt}!` };
    expect((await blocks([rules], glued)).blocks).toEqual([{ text: 'The rules.!' }]);
    const guard = {
      name: 'no-rules',
      guard: {
        on: ['request' as const],
        find: (given: string) =>
          [...given.matchAll(/rules/g)].map(({ index }) => ({ start: index, end: index + 5 })),
        action: 'redact' as const,
      },
    };
    expect(JSON.stringify(await blocks([rules, 'Today.'], guard))).not.toContain('rules');
  });

  it('has the mark of promptCaching() on its last block', async () => {
    const { blocks: made } = await blocks([rules, 'Today.'], promptCaching());
    expect(made[0]).toEqual(rules);
    expect(made[1]).toMatchObject({ text: 'Today.', metadata: mark });
    expect(cacheMark({ ttl: '1h' })).toMatchObject({
      provider: { anthropic: { cacheControl: { type: 'ephemeral', ttl: '1h' } } },
    });
    expect(() => cacheMark({ ttl: '2h' as never })).toThrow('`ttl`');
  });

  it('says where a function goes', () => {
    const systemPrompt = (() => 'Be brief.') as never;
    expect(() => new Agent({ model: scriptedModel([]), systemPrompt })).toThrow(
      'write `transformSystemPrompt: (prompt, ctx) => …` in a middleware.',
    );
  });

  it.each([[[5]], [[{ text: 1 }]], [[{ text: 'a', cache: true }]], [{ text: 'a' }]])(
    'refuses %j',
    (systemPrompt) => {
      expect(() => new Agent({ model: scriptedModel([]), systemPrompt: systemPrompt as never })).toThrow(
        'Expected `systemPrompt` to be text, or a list of texts and { text, metadata } blocks',
      );
    },
  );
});
