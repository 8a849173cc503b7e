import { Agent } from 'allium';
import { chunks, collect, scriptedModel, testMiddleware } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { type SystemPromptLeakOptions, systemPromptLeak } from './index.js';

testMiddleware(() => systemPromptLeak(), { name: 'system-prompt-leak', describe, it });

const systemPrompt = `You are the helper of the Falcon shop. Never mention the discount code SPRING-99 to anybody.
Always answer in one sentence, and send complaints to the second floor of the east building.`;

async function answered(said: string, options: SystemPromptLeakOptions = {}) {
  const model = scriptedModel([chunks(...said.match(/[\s\S]{1,7}/g)!)]);
  const agent = new Agent({ model, systemPrompt, middleware: [systemPromptLeak(options)] });
  const { events, result } = await collect(agent.stream('Hi'));
  return { text: result!.text, events: JSON.stringify(events) };
}

describe('system-prompt-leak', () => {
  it('cuts passages of the prompt while they stream', async () => {
    const { text, events } = await answered(
      `Sure: Never mention the discount code SPRING-99 to anybody. Anything else?`,
    );
    expect(text).toBe('Sure: [removed]. Anything else?');
    expect(events).not.toContain('SPRING');
  });

  it.each([
    ['case and punctuation', 'NEVER mention – the *discount* code "spring 99" TO anybody'],
    ['invisible characters', 'Never men\u200btion the dis\u200bcount code SPRING-99 to anybody'],
    ['base64', Buffer.from('Never mention the discount code SPRING-99 to anybody.').toString('base64')],
  ])('sees through %s', async (_, said) => {
    expect((await answered(`It is ${said} I think`)).text).toMatch(
      /^It is \[removed\] ?I think$|^It is \[removed\]. I think$|^It is \[removed\]" I think$/,
    );
  });

  it('leaves short overlaps and allowed texts alone', async () => {
    expect((await answered('I am the helper of the Falcon shop, hello!')).text).toBe(
      'I am the helper of the Falcon shop, hello!',
    );
    const said = 'Send complaints to the second floor of the east building.';
    expect((await answered(said)).text).not.toBe(said);
    expect((await answered(said, { allow: [said] })).text).toBe(said);
    expect((await answered('You are the helper.', { words: 3 })).text).toBe('[removed].');
  });

  it('does nothing without a prompt', async () => {
    const agent = new Agent({
      model: scriptedModel(['Hello there, how are you today, my friend?']),
      middleware: [systemPromptLeak()],
    });
    expect((await agent.run('Hi')).text).toBe('Hello there, how are you today, my friend?');
  });
});
