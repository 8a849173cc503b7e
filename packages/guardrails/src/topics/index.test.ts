import { Agent, tool, toolResult } from 'allium';
import { scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type TopicsOptions, topics } from './index.js';

testMiddleware(() => topics({ deny: { politics: ['senator'] } }), { name: 'topics', describe, it });

async function asked(input: string, options: TopicsOptions) {
  return new Agent({ model: scriptedModel(['Fine.']), middleware: [topics(options)] }).run(input);
}

describe('topics', () => {
  it('takes the name of a topic without words as its only word', async () => {
    const run = (said: string, options: TopicsOptions) =>
      new Agent({ model: scriptedModel(['Yes.']), middleware: [topics(options)] }).run(said);
    const deny = ['politics', 'climate change'];
    expect((await run('Is Climate Change real?', { deny })).stop).toMatchObject({
      reason: 'guardrail',
      message: 'The topic climate change is not allowed.',
    });
    expect((await run('A recipe, please.', { deny })).text).toBe('Yes.');
    expect((await run('Cooking tips?', { allow: ['cooking'] })).text).toBe('Yes.');
    expect((await run('My horoscope?', { allow: ['cooking'] })).stop.reason).toBe('guardrail');
  });

  it('refuses by words', async () => {
    const deny = { politics: ['election', 'senator'], health: ['pills'] };
    expect((await asked('Who won the ELECTION?', { deny })).stop?.message).toBe(
      'The topic politics is not allowed.',
    );
    expect((await asked('Where is my parcel?', { deny })).text).toBe('Fine.');
    for (const disguised of ['el\u200bection', 'ｅｌｅｃｔｉｏｎ', '%65lection'])
      expect((await asked(`The ${disguised}?`, { deny })).stop?.reason, disguised).toBe('guardrail');
  });

  it('allows by words', async () => {
    const allow = { orders: ['parcel', 'order'] };
    expect((await asked('Where is my parcel?', { allow })).text).toBe('Fine.');
    expect((await asked('Sing a song.', { allow })).stop?.message).toBe(
      'Only these topics are allowed: orders.',
    );
  });

  it('looks at the details of results, keys included', async () => {
    const details = [{ deep: ['A senator'] }, { senator: 1 }];
    for (const detail of details) {
      const look = tool({
        name: 'look',
        description: 'L.',
        input: z.object({}),
        execute: () => toolResult({ content: 'fine', details: detail }),
      });
      const model = scriptedModel([toolCalls({ name: 'look' }), 'Done.']);
      const middleware = [topics({ deny: { politics: ['senator'] }, on: ['tool-result'] })];
      const { messages } = await new Agent({ model, tools: [look], middleware }).run('Look.');
      expect(JSON.stringify(messages)).not.toContain('enator');
    }
  });

  it('asks a model, with the topics as the policy', async () => {
    const model = scriptedModel([
      ({ systemPrompt }) =>
        text(
          JSON.stringify({ mark: /mark: (\S+)/.exec(systemPrompt)![1], allowed: false, reason: 'Politics.' }),
        ),
    ]);
    expect((await asked('Who should I vote for?', { deny: ['politics'], model })).stop?.message).toBe(
      'Politics.',
    );
    expect(model.requests[0]!.systemPrompt).toContain('may not be about any of these topics: politics.');
  });

  it.each([[{}, 'Expected `deny` to be topics, unless `allow` has some']])(
    'refuses %j',
    (options, message) => {
      expect(() => topics(options as never)).toThrow(message);
    },
  );
});
