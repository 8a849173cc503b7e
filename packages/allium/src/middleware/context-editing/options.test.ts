import { Agent, type Message, textOf, tool, toolCallsOf } from 'allium';
import { type ContextEditingOptions, contextEditing } from 'allium/middleware/context-editing';
import { scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(() => contextEditing({ clearToolResultsAfterTokens: 0, keep: 0, clearInputs: true }), {
  name: 'contextEditing that clears inputs',
  neutral: () => contextEditing({ clearInputs: true }),
  describe,
  it,
});

const args = { path: 'x'.repeat(50) };
const call = (id: string, name = 'read') => toolCalls({ name, args, id });
const tools = ['read', 'plan'].map((name) =>
  tool({ name, description: '', input: z.object({ path: z.string() }), execute: () => 'y'.repeat(500) }),
);

async function lastRequest(
  options: ContextEditingOptions,
  script = [call('a'), call('p', 'plan'), call('b')],
) {
  const model = scriptedModel([...script, text('done')]);
  const middleware = [contextEditing({ clearToolResultsAfterTokens: 1, keep: 1, ...options })];
  const result = await new Agent({ model, tools, middleware }).run('go');
  expect(result.messages.filter((one) => textOf(one).length === 500)).toHaveLength(3);
  return model.requests.at(-1)!.messages;
}

const hasInputs = (messages: readonly Message[]) =>
  messages
    .flatMap((message) => (message.role === 'assistant' ? toolCallsOf(message) : []))
    .map((one) => one.arguments !== '{}');

describe('contextEditing', () => {
  it('clears arguments too where asked, with a text of your own, and leaves some tools alone', async () => {
    expect(hasInputs(await lastRequest({}))).toEqual([true, true, true]);
    const edited = await lastRequest({ clearInputs: true, placeholder: '[gone]', keepTools: ['plan'] });
    expect(hasInputs(edited)).toEqual([false, true, true]);
    const results = edited.filter(({ role }) => role === 'tool').map((one) => textOf(one).slice(0, 6));
    expect(results).toEqual(['[gone]', 'yyyyyy', 'yyyyyy']);
  });

  it('clears one call of a message and not its neighbour that stays', async () => {
    const both = toolCalls({ name: 'read', args, id: 'a' }, { name: 'plan', args, id: 'p' });
    const messages = await lastRequest({ clearInputs: true, keepTools: ['plan'] }, [both, call('b')]);
    expect(hasInputs(messages)).toEqual([false, true, true]);
  });

  it.each([
    [{ clearInputs: 1 }, 'Expected `clearInputs` to be true or false'],
    [{ placeholder: '' }, 'Expected `placeholder` to be non-empty text'],
    [{ keepTools: 'read' }, 'Expected `keepTools` to be a list of names'],
  ])('refuses %j', (options, message) => {
    expect(() => contextEditing(options as never)).toThrow(message);
  });
});
