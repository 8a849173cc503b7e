import { Agent, type Middleware, type Model, textOf, tool, type UserMessage, userMessage } from 'allium';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { History } from './history.js';

it('a history returns frozen prefixes that later messages do not change', () => {
  const history = new History();
  const [one, two, three] = ['1', '2', '3'].map((text) => userMessage(text));
  history.append(one!);
  history.append(two!);
  const before = history.all();
  history.append(three!);
  expect(before).toEqual([one, two]);
  expect(Object.isFrozen(before)).toBe(true);
  expect(history.all()).toEqual([one, two, three]);
  expect(history.first(1)).toEqual([one]);
  expect(history.from(1)).toEqual([two, three]);
  expect([history.length, history.last]).toEqual([3, three]);
});

it('a history shares one growing view without copies', () => {
  const history = new History();
  history.append(userMessage('1'));
  const view = history.view();
  expect(history.first(1)).toBe(view);
  history.append(userMessage('2'));
  expect(history.view()).toBe(view);
  expect(view.map((message) => message.content[0])).toEqual([
    { type: 'text', text: '1' },
    { type: 'text', text: '2' },
  ]);
  expect(history.first(1)).toEqual([view[0]]);
  expect(Array.isArray(view)).toBe(true);
  expect(view.filter(Boolean).concat(view)).toHaveLength(4);
});

it('a history refuses edits of its view, and nothing done to a view reaches it', () => {
  const history = new History();
  history.append(userMessage('1'));
  const view = history.view() as UserMessage[];
  for (const edit of [
    () => view.push(userMessage('x')),
    () => view.pop(),
    () => view.splice(0),
    () => view.sort(),
    () => view.reverse(),
  ]) {
    expect(edit).toThrow(/read-only/);
  }
  expect(() => Object.assign(view[0]!, { role: 'tool' })).toThrow(TypeError);
  expect(() => Object.assign(view[0]!.content[0]!, { text: 'forged' })).toThrow(TypeError);
  view.length = 0;
  expect(history.view()).toHaveLength(1);
  Object.freeze(history.view());
  history.append(userMessage('2'));
  expect(history.view()).toHaveLength(2);
});

it('a history freezes all messages', () => {
  const history = new History();
  const messages = [0, 1, 2].map((i): UserMessage => {
    const content = [{ type: 'text' as const, text: String(i) }];
    return { id: `m.${i}`, role: 'user', content };
  });
  for (const message of messages) history.append(message);
  expect(history.all()).toEqual(messages);
  expect(messages.every((one) => Object.isFrozen(one) && one.content.every(Object.isFrozen))).toBe(true);
});

it.each([2, 40])(
  'a request has the real history, whatever middleware do to their view, after %i turns',
  async (turns) => {
    const sent: string[] = [];
    const model: Model = {
      provider: 'test',
      id: 'calls',
      async *stream({ messages }) {
        sent.push(textOf(messages[0]!));
        if (messages.length < 2 * turns) yield { type: 'tool-call', id: '', name: 'look', arguments: '{}' };
        else yield { type: 'text', text: 'end' };
        yield { type: 'finish', reason: messages.length < 2 * turns ? 'tool-calls' : 'stop' };
      },
    };
    const forged = userMessage('forged');
    const look = tool({
      name: 'look',
      description: '',
      input: z.any(),
      execute(_, ctx) {
        (ctx.history as UserMessage[])[0] = forged;
        return 'seen';
      },
    });
    const edits: Middleware = {
      name: 'edits',
      beforeModel(ctx) {
        (ctx.messages as UserMessage[])[0] = forged;
      },
    };
    const agent = new Agent({ model, tools: [look], middleware: [edits], limits: { turns: 100 } });
    const session = agent.session('s');
    await session.run('hello');
    await session.run('again');
    expect(new Set(sent)).toEqual(new Set(['hello']));
    expect(textOf((await session.messages())[0]!)).toBe('hello');
  },
);
