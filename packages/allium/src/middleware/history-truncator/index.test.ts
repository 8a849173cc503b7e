import {
  Agent,
  type Message,
  type Middleware,
  type Session,
  syntheticUserMessage,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { historyTruncator } from 'allium/middleware/history-truncator';
import { todoList } from 'allium/middleware/todo-list';
import { collect, failWith, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { randomHistory, unpaired } from '../../../../../test/random-history.js';

const tokenCounter = (said: string) => said.length;

for (const options of [{ maxMessages: 2 }, { maxTokens: 20, tokenCounter }]) {
  testMiddleware(() => historyTruncator(options), {
    name: `historyTruncator ${JSON.stringify(options)}`,
    neutral: () => historyTruncator({ maxMessages: 1000, maxTokens: 1e6, tokenCounter }),
    describe,
    it,
  });
}

/** What is sent of a conversation. */
async function sent(options: Parameters<typeof historyTruncator>[0], history: readonly (Message | string)[]) {
  const model = scriptedModel(['ok']);
  const agent = new Agent({ model, middleware: [historyTruncator({ tokenCounter, ...options })] });
  const { events, result } = await collect(agent.stream(history as Message[]));
  const dropped = events.filter((event) => event.type === 'custom');
  return { messages: model.requests[0]!.messages, dropped, result };
}
const texts = async (...args: Parameters<typeof sent>) => (await sent(...args)).messages.map(textOf);

const pinned = (said: string) => userMessage(said, { pinned: true });
const said = (content: string): Message => ({
  id: '',
  role: 'assistant',
  content: [{ type: 'text', text: content }],
  stopReason: 'stop',
});
const calls = (...ids: string[]): Message => ({
  id: '',
  role: 'assistant',
  stopReason: 'tool-calls',
  content: ids.map((id) => ({ type: 'tool-call', id, name: 'look', arguments: '{}' })),
});
const result = (toolCallId: string): Message => ({
  id: '',
  role: 'tool',
  toolCallId,
  toolName: 'look',
  content: [{ type: 'text', text: toolCallId }],
  isError: false,
});

describe('historyTruncator', () => {
  it('sends the latest messages, and keeps the history', async () => {
    const { messages, result: run } = await sent({ maxMessages: 3 }, ['a', 'b', 'c', 'd', 'e']);
    expect(messages.map(textOf)).toEqual(['c', 'd', 'e']);
    expect(run!.messages).toHaveLength(6);
  });

  it('sends the last results, whatever a middleware puts behind them', async () => {
    const model = scriptedModel([toolCalls({ name: 'look' }, { name: 'look' }), text('Rain.')]);
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'rain' });
    const note = syntheticUserMessage('A note.', { source: 'notes' });
    const notes: Middleware = { name: 'notes', transformContext: (messages) => [...messages, note] };
    const middleware = [notes, historyTruncator({ maxMessages: 2 })];
    await new Agent({ model, tools: [look], middleware }).run('Look twice.');
    const { messages } = model.requests[1]!;
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user']);
    expect(messages.filter(({ role }) => role === 'user').map(textOf)).toEqual(['Look twice.', 'A note.']);
  });

  it('sends a result that is too long also when the list of todos stands behind it', async () => {
    const todos = [{ content: 'Look', status: 'in_progress' }];
    const model = scriptedModel([
      toolCalls({ name: 'write_todos', args: { todos } }),
      toolCalls({ name: 'look', args: {} }),
      toolCalls({ name: 'write_todos', args: { todos: [{ content: 'Look', status: 'completed' }] } }),
      text('Rain.'),
    ]);
    const execute = () => 'rain '.repeat(500);
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute });
    const middleware = [todoList(), historyTruncator({ maxTokens: 500, tokenCounter })];
    await new Agent({ model, tools: [look], middleware }).run('Look.');
    const { messages } = model.requests[2]!;
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
    expect(textOf(messages[2]!)).toBe(execute());
  });

  it('sends the results that the model waits for, also if somebody steers while tools run', async () => {
    for (const limits of [{ maxMessages: 2 }, { maxTokens: 30 }]) {
      const look = tool({
        name: 'look',
        description: 'Looks.',
        input: z.object({ n: z.number() }),
        async execute({ n }) {
          if (n === 2) await session.steer('Shorter.');
          return `found ${n}`;
        },
      });
      const batch = toolCalls({ name: 'look', args: { n: 1 } }, { name: 'look', args: { n: 2 } });
      const model = scriptedModel([batch, text('ok'), text('ok')]);
      const middleware = [historyTruncator({ tokenCounter, ...limits })];
      const session = new Agent({ model, tools: [look], middleware }).session('s');
      await session.run('question');
      await session.run('next');
      const requests = model.requests.map(({ messages }) => messages.map(textOf));
      expect(requests).toEqual([
        ['question'],
        ['question', '', 'found 1', 'found 2', 'Shorter.'],
        'maxTokens' in limits ? ['Shorter.', 'ok', 'next'] : ['next'],
      ]);
    }
  });

  it('sends them also if the input came with an answer, and in a run without an input', async () => {
    const seeded = [userMessage('one'), said('two'), userMessage('question')];
    const starts: readonly ((session: Session) => Promise<unknown>)[] = [
      (session) => session.run(seeded),
      async (session) => {
        await session.run('question').catch(() => {});
        await session.continue();
      },
    ];
    for (const [at, start] of starts.entries()) {
      const look = tool({
        name: 'look',
        description: 'Looks.',
        input: z.object({}),
        async execute() {
          await session.steer('Shorter.');
          return 'found';
        },
      });
      const refused = failWith(Object.assign(new Error('bad'), { status: 400 }));
      const model = scriptedModel([...(at === 1 ? [refused] : []), toolCalls({ name: 'look' }), text('ok')]);
      const middleware = [historyTruncator({ maxMessages: 1 })];
      const session = new Agent({ model, tools: [look], middleware }).session('s');
      await start(session);
      expect(model.requests.at(-1)!.messages.map(textOf)).toEqual(['question', '', 'found', 'Shorter.']);
    }
  });

  it('does not have to send results that an earlier run left unread', async () => {
    const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'found' });
    const model = scriptedModel([toolCalls({ name: 'look', args: {} }), text('ok')]);
    const middleware = [historyTruncator({ maxMessages: 1 })];
    const session = new Agent({ model, tools: [look], middleware }).session('s');
    expect((await session.run('question', { limits: { turns: 1 } })).stop.reason).toBe('max_turns');
    await session.run('next');
    expect(model.requests.at(-1)!.messages.map(textOf)).toEqual(['next']);
  });

  it('sends as many as fit', async () => {
    // Each takes its length and four.
    expect(await texts({ maxTokens: 15 }, ['aaaa', 'b', 'c', 'd'])).toEqual(['b', 'c', 'd']);
    expect(await texts({ maxTokens: 14 }, ['aaaa', 'b', 'c', 'd'])).toEqual(['c', 'd']);
    expect(await texts({ maxTokens: 15, maxMessages: 2 }, ['a', 'b', 'c', 'd'])).toEqual(['c', 'd']);
  });

  it('leaves a short request alone, the list included', async () => {
    const middleware = historyTruncator({ maxMessages: 3, maxTokens: 100, tokenCounter });
    const messages = [userMessage('a'), userMessage('b')];
    expect(await middleware.transformContext!(messages, {} as never)).toBe(messages);
  });

  it('sends the last message, however long it is', async () => {
    expect(await texts({ maxTokens: 1 }, ['a', 'b'.repeat(50)])).toEqual(['b'.repeat(50)]);
  });

  it('sends pinned messages, which take room from the others', async () => {
    expect(await texts({ maxMessages: 3 }, [pinned('p'), 'a', 'b', 'c', 'd'])).toEqual(['p', 'c', 'd']);
    expect(await texts({ maxTokens: 15 }, [pinned('p'), 'a', 'b', 'c'])).toEqual(['p', 'b', 'c']);
    expect(await texts({ maxMessages: 1 }, [pinned('p'), pinned('q'), 'a'])).toEqual(['p', 'q', 'a']);
  });

  it('sends no result without its call: the whole batch goes', async () => {
    const history = ['a', calls('1', '2'), result('1'), result('2'), 'b', said('c'), 'd'];
    expect(await texts({ maxMessages: 5 }, history)).toEqual(['b', 'c', 'd']);
    expect(await texts({ maxMessages: 6 }, history)).toEqual(['b', 'c', 'd']);
  });

  it('sends the whole batch when it is the last, and the question it is about', async () => {
    const history = ['z', 'a', said('x'), calls('1', '2'), result('1'), result('2')];
    for (const maxMessages of [1, 2, 3])
      expect(await texts({ maxMessages }, history)).toEqual(['a', '', '1', '2']);
  });

  it('sends the question that a long series of calls is about', async () => {
    const history = [
      'question',
      ...Array.from({ length: 20 }, (_, i) => [calls(`${i}`), result(`${i}`)]).flat(),
    ];
    expect(await texts({ maxMessages: 5 }, history)).toEqual(['question', '', '18', '', '19']);
  });

  it('splits no pair, loses nothing pinned and keeps to its limits where it can, in any history', async () => {
    await fc.assert(
      fc.asyncProperty(
        randomHistory({ whole: true }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 3000 }),
        async (history, maxMessages, maxTokens) => {
          const { messages, dropped } = await sent({ maxMessages, maxTokens }, [...history, 'Go.']);
          expect(dropped).toEqual([]);
          expect(unpaired(messages)).toEqual({ calls: [], results: [] });
          expect(textOf(messages.at(-1)!)).toBe('Go.');
          const pins = (list: readonly Message[]) =>
            list.filter(({ metadata }) => metadata?.pinned).map(textOf);
          expect(pins(messages)).toEqual(pins(history));
          if (pins(history).length === 0) {
            const tokens = messages.reduce((sum, message) => sum + textOf(message).length + 4, 0);
            expect(messages.length === 1 || (messages.length <= maxMessages && tokens <= maxTokens)).toBe(
              true,
            );
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('counts each message once in a run', async () => {
    let counted = 0;
    const counter = (text: string) => {
      counted++;
      return text.length;
    };
    const model = scriptedModel([toolCalls({ name: 'none' }), toolCalls({ name: 'none' }), text('ok')]);
    const middleware = [historyTruncator({ maxTokens: 1e6, tokenCounter: counter })];
    await new Agent({ model, middleware }).run(Array.from({ length: 500 }, (_, i) => `${i}`));
    expect(counted).toBeLessThan(510);
  });

  it.each<[object, string]>([
    [{}, 'historyTruncator() got nothing to limit. Give `maxMessages` or `maxTokens`.'],
    [{ maxMessages: 0 }, 'Expected `maxMessages` to be an integer ≥ 1, got 0.'],
    [{ maxTokens: 1.5 }, 'Expected `maxTokens` to be an integer ≥ 1, got 1.5.'],
    [{ maxMessages: 1, tokenCounter: 1 }, 'Expected `tokenCounter` to be a function, got 1.'],
    [{ max: 1 }, 'max'],
  ])('refuses %j', (options, message) => {
    expect(() => historyTruncator(options as never)).toThrow(message);
  });
});
