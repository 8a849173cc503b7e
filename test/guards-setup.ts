/** What the tests of guards begin with. */
import {
  Agent,
  defineMiddleware,
  type Guard,
  type GuardPoint,
  type Middleware,
  memoryStore,
  textOf,
  tool,
} from 'allium';
import { type Script, scriptedModel } from 'allium/testing';
import { z } from 'zod';

export const find = (pattern: RegExp) => (given: string) =>
  [...given.matchAll(pattern)].map((m) => ({ start: m.index, end: m.index + m[0].length }));
export const guarding = (name: string, guard: Guard, more: Partial<Middleware> = {}): Middleware =>
  defineMiddleware({ name, guard, ...more });
export const redacting = (on: GuardPoint[], more: Partial<Guard> = {}): Middleware =>
  guarding('redact', { on, find: find(/SECRET/g), ...more });
export const judging = (
  on: GuardPoint[],
  judge: Guard['judge'],
  more: Partial<Middleware> = {},
): Middleware => guarding('judge', { on, judge }, more);

export const calls: unknown[] = [];
export const act = tool({
  name: 'act',
  description: 'Acts.',
  input: z.any(),
  execute(args) {
    calls.push(args);
    return 'did SECRET';
  },
});

export function agentOf(script: readonly Script[], ...middleware: Middleware[]) {
  calls.length = 0;
  const model = scriptedModel(script);
  const store = memoryStore();
  const agent = new Agent({ model, store, middleware, tools: [act] });
  return { model, store, agent, session: agent.session('s') };
}

export const resultTexts = (
  messages: readonly { role: string; content: readonly { type: string }[] }[],
): string[] => messages.filter(({ role }) => role === 'tool').map(textOf);
