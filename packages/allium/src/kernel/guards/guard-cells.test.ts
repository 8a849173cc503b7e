/** What guards write to cells is journaled together with the text they judged. */
import {
  Agent,
  type Context,
  defineMiddleware,
  defineState,
  type Guard,
  type Middleware,
  memoryStore,
  type NewEntry,
  window,
} from 'allium';
import { chunks, scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { storeWith } from '../../../../../test/run-checks.js';

const layers: Readonly<Record<string, readonly Middleware[]>> = {
  'no layer': [],
  'a pair of hooks': [defineMiddleware({ name: 'pair', beforeModel() {}, afterModel() {} })],
  'a wrapper': [defineMiddleware({ name: 'wrapper', wrapModel: (_, next) => next() })],
  'two layers': [
    defineMiddleware({ name: 'wrapper', wrapModel: (_, next) => next() }),
    defineMiddleware({ name: 'pair', beforeModel() {}, afterModel() {} }),
  ],
  'a sink': [defineMiddleware({ name: 'sink', sink: true, afterModel() {} })],
  'a sink that wraps': [defineMiddleware({ name: 'sink', sink: true, wrapModel: (_, next) => next() })],
};

const found = defineState({ name: 'found', scope: 'session', initial: 0 });
const count = (context: Context): void => context.state.update(found, (n) => n + 1);

const guards: Readonly<Record<string, Guard>> = {
  'a guard with a window': {
    on: ['output'],
    hold: window(8),
    find: (text, { context }) => search(text, context),
  },
  'a guard of the whole text': { on: ['output'], find: (text, { context }) => search(text, context) },
  'a judge': { on: ['output'], judge: (_, { context }) => count(context) },
};

function search(text: string, context: Context) {
  const start = text.indexOf('SECRET');
  if (start < 0) return [];
  count(context);
  return [{ start, end: start + 6 }];
}

describe.each(Object.keys(layers))('with %s', (around) => {
  it.each(Object.keys(guards))('%s counts in the append of the answer', async (kind) => {
    const appends: (readonly NewEntry[])[] = [];
    const inner = memoryStore();
    const store = storeWith(inner, {
      append(id, seq, entries) {
        appends.push(entries);
        return inner.append(id, seq, entries);
      },
    });
    const guarding = defineMiddleware({ name: 'guarding', state: [found], guard: guards[kind]! });
    for (const pieces of [['It is SECRET'], ['It is SEC', 'RET, or so they say.']]) {
      appends.length = 0;
      const model = scriptedModel([chunks(...pieces)]);
      const agent = new Agent({ model, store, middleware: [...layers[around]!, guarding] });
      await agent.session(pieces.join('|')).run('Well?');
      const answer = appends.find((entries) =>
        entries.some((one) => one.type === 'message' && one.message.role === 'assistant'),
      )!;
      expect(answer.map(({ type }) => type)).toEqual(['message', 'state']);
    }
  });
});
