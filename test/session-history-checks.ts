/** What has to hold of rewinding, forking and queues in every store, also when another process does it. */
import { Agent, defineMiddleware, defineState, type Message, type Store, textOf, tool } from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectValidHistory } from './run-checks.js';

const turns = defineState({ name: 'turns', scope: 'session', initial: 0 });
const counts = defineMiddleware({
  name: 'counts',
  state: [turns],
  afterModel: (ctx) => ctx.state.update(turns, (n) => n + 1),
  transformSystemPrompt: (_, ctx) => `turn ${ctx.state.get(turns) + 1}`,
});
const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });

const texts = (messages: readonly Message[]) => messages.map((message) => textOf(message) || 'calls');
let made = 0;

/** `again` opens what `open` made last, as another process would; a store in memory has none. */
export function sessionHistoryChecks(name: string, open: () => Store, again?: () => Store): void {
  describe(`the history of a session in ${name}`, () => {
    const setup = (...script: Parameters<typeof scriptedModel>[0]) => {
      const store = open();
      const id = `history-${process.pid}-${made++}`;
      const model = scriptedModel(script);
      const agent = new Agent({ store, model, tools: [look], middleware: [counts] });
      const elsewhere = (...more: Parameters<typeof scriptedModel>[0]) => {
        const other = scriptedModel(more);
        const options = { store: again?.() ?? store, model: other, tools: [look], middleware: [counts] };
        return { session: new Agent(options).session(id), model: other };
      };
      return { store, id, model, session: agent.session(id), elsewhere };
    };

    it('goes on from the message it was rewound to, with its cells, whoever asks', async () => {
      const { store, id, session, elsewhere } = setup('one', toolCalls({ name: 'look' }), 'two', 'three');
      await session.run('first');
      await session.run('second');
      const before = await session.messages();
      const head = await store.head(id);
      const other = elsewhere('another');
      await other.session.rewind(before[1]!.id);
      expect(texts(await session.messages())).toEqual(['first', 'one']);
      const { messages } = await other.session.run('edited');
      expect(other.model.requests[0]!.messages.map(textOf)).toEqual(['first', 'one', 'edited']);
      expect(other.model.requests[0]!.systemPrompt).toBe('turn 2');
      // The first object knows as well, and no id is used twice.
      const all = await session.messages();
      expect(texts(all)).toEqual(['first', 'one', 'edited', 'another']);
      expect(messages.some((message) => before.some((old) => old.id === message.id))).toBe(false);
      expect(texts((await session.run('last')).messages)).toEqual(['last', 'three']);
      // Nothing is deleted.
      const journal = JSON.stringify(await store.read(id, 1));
      expect((await store.read(id, 1)).length).toBeGreaterThan(head);
      expect(journal).toContain('second');
    });

    it('leaves cells alone that do not rewind, through several rewinds and in the next run', async () => {
      const issued = defineState({ name: 'issued', scope: 'session', initial: 0, rewinds: false });
      const numbers = defineMiddleware({
        name: 'numbers',
        state: [issued],
        afterModel: (ctx) => ctx.state.update(issued, (n) => n + 1),
        transformSystemPrompt: (prompt, ctx) => `${prompt}, number ${ctx.state.get(issued) + 1}`,
      });
      const store = open();
      const id = `history-${process.pid}-${made++}`;
      const model = scriptedModel(['one', 'two', 'three']);
      const options = { model, middleware: [counts, numbers] };
      const session = new Agent({ ...options, store }).session(id);
      const other = new Agent({ ...options, store: again?.() ?? store }).session(id);
      const first = await session.run('first');
      const second = await session.run('second');
      await other.rewind({ before: second.messages[0]!.id });
      await session.rewind({ before: first.messages[0]!.id });
      expect(await other.state(issued)).toBe(2);
      await other.run('again');
      expect(model.requests.map(({ systemPrompt }) => systemPrompt)).toEqual([
        'turn 1, number 1',
        'turn 2, number 2',
        'turn 1, number 3',
      ]);
      const copy = await session.fork();
      expect(await copy.state(issued)).toBe(3);
    });

    it('is regenerated: back to the question, and on', async () => {
      const { session, elsewhere } = setup(toolCalls({ name: 'look' }), 'bad');
      await session.run('question');
      const [question] = await session.messages();
      await session.rewind(question!.id);
      const { session: other, model } = elsewhere('good');
      expect(await other.continue()).toMatchObject({ status: 'done', text: 'good' });
      expect(model.requests[0]!.messages.map(textOf)).toEqual(['question']);
      expect(texts(await session.messages())).toEqual(['question', 'good']);
    });

    it('is rewound to its beginning, and again after that', async () => {
      const { session, elsewhere } = setup('one', 'two', 'three');
      const [first] = (await session.run('a')).messages;
      await session.rewind({ before: first!.id });
      expect(await session.messages()).toEqual([]);
      const { messages } = await session.run('b');
      await session.run('c');
      await session.rewind(messages[1]!.id);
      const { session: other, model } = elsewhere('four');
      expect(texts(await other.messages())).toEqual(['b', 'two']);
      await other.run('d');
      expect(model.requests[0]!.systemPrompt).toBe('turn 2');
    });

    it('is forked at a message: the two go their own ways', async () => {
      const { store, session, elsewhere, id } = setup('one', toolCalls({ name: 'look' }), 'two', 'three');
      await session.run('first');
      const { messages } = await session.run('second');
      const copy = await elsewhere('other').session.fork({ before: messages[0]!.id }, { id: `${id}-copy` });
      expect(copy.id).toBe(`${id}-copy`);
      expect(texts(await copy.messages())).toEqual(['first', 'one']);
      expect(texts((await copy.run('instead')).messages)).toEqual(['instead', 'other']);
      expect(texts(await session.messages())).toEqual(['first', 'one', 'second', 'calls', 'seen', 'two']);
      const inside = await session.fork(messages[2]!.id);
      expect(texts(await inside.messages())).toEqual(['first', 'one', 'second', 'calls', 'seen']);
      expectValidHistory(await inside.messages());
      const again = await inside.continue();
      expect(again.text).toBe('three');
      // A fork between two runs holds nothing of the later one.
      const between = await session.fork((await session.messages())[1]!.id, { id: `${id}-between` });
      expect((await store.read(between.id, 1)).at(-1)).toMatchObject({ type: 'run_end', status: 'done' });
      const whole = await session.fork();
      expect(await whole.messages()).toEqual(await session.messages());
    });

    it('has queued messages that somebody else lists and removes', async () => {
      const { session, elsewhere } = setup('one', 'two');
      await session.run('go');
      await session.steer('wrong');
      await session.followUp('later');
      const { session: other } = elsewhere();
      const queued = await other.queued();
      expect(queued.map(({ kind, message }) => [kind, textOf(message)])).toEqual([
        ['steer', 'wrong'],
        ['follow_up', 'later'],
      ]);
      expect(await other.removeQueued(queued[0]!.id)).toBe(true);
      expect(texts((await session.continue()).messages)).toEqual(['later', 'two']);
      expect(await other.queued()).toEqual([]);
    });

    it('is compacted by hand, and a rewind undoes that too', async () => {
      const store = open();
      const id = `history-${process.pid}-${made++}`;
      const model = scriptedModel(['a', 'b', 'c', 'd', 'e'], { repeat: true });
      const summaryModel = scriptedModel(['the summary'], { repeat: true });
      const tokenCounter = (text: string) => text.length;
      const compacts = compaction({ summaryModel, maxTokens: 100_000, keepTailTokens: 10, tokenCounter });
      const session = new Agent({ store, model, middleware: [compacts] }).session(id);
      for (let i = 0; i < 3; i++) await session.run(`a long question ${i} ${'.'.repeat(500)}`);
      const messages = await session.messages();
      const result = await session.compact();
      expect(result).toMatchObject({ status: 'done', turns: 0, messages: [] });
      expect(result.usage.totalTokens).toBeGreaterThan(0);
      expect(await session.messages()).toEqual(messages);
      await session.run('next');
      expect(model.requests.at(-1)!.messages.map(textOf).join()).toContain('the summary');
      await session.rewind(messages[1]!.id);
      await session.run('other');
      expect(model.requests.at(-1)!.messages.map(textOf).join()).not.toContain('the summary');
    });
  });
}
