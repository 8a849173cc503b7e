import { Agent, defineMiddleware, textOf, tool } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const hides = (name: string, secret: RegExp) =>
  defineMiddleware({
    name,
    guard: {
      on: ['tool-args'],
      find: (said) => [...said.matchAll(secret)].map((m) => ({ start: m.index, end: m.index + m[0].length })),
    },
  });
const mail = tool({
  name: 'mail',
  description: 'Mails.',
  input: z.object({ to: z.email(), n: z.number().optional() }),
  execute: ({ to }) => `to ${to}`,
});

describe('arguments in which a guard replaced something', () => {
  it('that do not fit any more are refused with the name of the guard, so that the model does not repeat them', async () => {
    const call = (to: string, n?: unknown) => ({ name: 'mail', args: { to, ...(n !== undefined && { n }) } });
    const model = scriptedModel([
      toolCalls(call('ann@example.org'), call('bob@example.com')),
      toolCalls(call('bob@example.com', 'x')),
      text('Sorry.'),
    ]);
    const middleware = [hides('private', /ann\S+/g), hides('idle', /never/g)];
    const { messages } = await new Agent({ model, tools: [mail], middleware }).run('go');
    const [refused, sent, wrong] = messages.filter(({ role }) => role === 'tool').map(textOf);
    expect(refused).toMatch(
      /^Invalid arguments for "mail":\nto: .+\nParts of the arguments of this turn were replaced by "private"\. If that is why, do not send them again\.$/,
    );
    expect(sent).toBe('to bob@example.com');
    expect(wrong).toMatch(/^Invalid arguments for "mail":\nn: .+$/);
  });
});
