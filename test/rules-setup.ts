/** What the tests of rules begin with. */
import { type Message, type Middleware, textOf, tool } from 'allium';
import { toolCalls } from 'allium/testing';
import { z } from 'zod';

export const echo = tool({
  name: 'echo',
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  execute: ({ text: said }) => said,
});
export const call = (said: unknown = 'hi') => toolCalls({ name: 'echo', args: { text: said } });
export const named = (name: string, hooks: Middleware): Middleware => ({ name, ...hooks });
export const spansOf = (word: string) => (said: string) =>
  said.includes(word) ? [{ start: said.indexOf(word), end: said.indexOf(word) + word.length }] : [];
export const resultText = (messages: readonly Message[]) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);

export function echoOptions() {
  return { name: 'echo', description: '', input: z.object({ text: z.string() }) };
}
