// The hand-off of docs/recipes/hand-off.md: another agent goes on with the session, under its own guards and limits.

import { Agent, memoryStore, textOf, tool, toolResult } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const handOver = tool({
  name: 'hand_over',
  description: '',
  input: z.object({}),
  execute: () => toolResult({ content: 'Billing goes on.', details: { to: 'billing' }, terminate: true }),
});
const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });
const hides = (word: string) => ({
  name: `no-${word}`,
  guard: {
    on: ['request' as const, 'output' as const],
    find: (given: string) =>
      [...given.matchAll(new RegExp(word, 'g'))].map(({ index }) => ({
        start: index,
        end: index + word.length,
      })),
    action: 'redact' as const,
  },
});

function team() {
  const store = memoryStore();
  const frontModel = scriptedModel([toolCalls({ name: 'hand_over', id: 'h' })]);
  const front = new Agent({ model: frontModel, tools: [handOver], middleware: [hides('apple')], store });
  const billingModel = scriptedModel([
    text('An apple and a pear.'),
    toolCalls({ name: 'look', id: 'l' }),
    toolCalls({ name: 'look', id: 'm' }),
  ]);
  const billing = new Agent({
    model: billingModel,
    systemPrompt: 'You settle bills.',
    tools: [look],
    middleware: [hides('pear')],
    limits: { turns: 2 },
    store,
  });
  return { front, billing, frontModel, billingModel };
}

describe('a hand-off', () => {
  it('goes on with the same history, under the guards, prompt and tools of the other agent', async () => {
    const { front, billing, frontModel, billingModel } = team();
    const first = await front.session('s').run('An apple and a pear, please.');
    expect(first).toMatchObject({ status: 'done', turns: 1 });
    expect(first.messages.at(-1)).toMatchObject({ role: 'tool', details: { to: 'billing' } });
    const asked = frontModel.requests[0]!.messages.map(textOf).join();
    expect(asked).toContain('pear');
    expect(asked).not.toContain('apple');

    const { text: said } = await billing.session('s').continue();
    expect(said).toContain('apple');
    expect(said).not.toContain('pear');
    const [request] = billingModel.requests;
    expect(request!.systemPrompt).toBe('You settle bills.');
    expect(request!.tools.map(({ name }) => name)).toEqual(['look']);
    const heard = request!.messages.map(textOf).join();
    expect(heard).toContain('apple');
    expect(heard).not.toContain('pear');
  });

  it('counts the limits of the other agent from there', async () => {
    const { front, billing } = team();
    await front.session('s').run('Hello.');
    await billing.session('s').continue();
    expect(await billing.session('s').run('And now?')).toMatchObject({
      stop: { reason: 'max_turns' },
      turns: 2,
    });
  });
});
