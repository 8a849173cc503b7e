/** Going back in a session, forking it and compacting it by hand: what is refused, and what is kept. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Agent, defineMiddleware, memoryStore, type Store, textOf, tool } from 'allium';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { collect, failWith, hang, scriptedModel, toolCalls } from 'allium/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectValidHistory, settle } from '../../../../test/run-checks.js';
import { sessionHistoryChecks } from '../../../../test/session-history-checks.js';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-rewind-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

const files = () => fileStore({ dir: path.join(root, 'sessions') });
const database = () => sqliteStore({ path: path.join(root, 'sessions.db') });
sessionHistoryChecks('memory', memoryStore);
sessionHistoryChecks('files', files, files);
sessionHistoryChecks('SQLite', database, database);

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
const pair = () => toolCalls({ name: 'look' }, { name: 'look' });

function sessionOf(script: Parameters<typeof scriptedModel>[0], more: object = {}) {
  const store = memoryStore();
  const model = scriptedModel(script);
  return { store, model, session: new Agent({ store, model, tools: [look], ...more }).session('s') };
}

describe('a point between calls and their results', () => {
  it('is refused, with the points beside it', async () => {
    const { session, store } = sessionOf([pair(), 'done']);
    await session.run('go');
    const [user, asking, first, last, answer] = await session.messages();
    const head = store.head('s');
    for (const point of [asking!.id, first!.id, { before: first!.id }, { before: last!.id }]) {
      const expected = { code: 'CALLS_UNANSWERED', data: { before: asking!.id, after: last!.id } };
      await expect(session.rewind(point)).rejects.toMatchObject(expected);
      await expect(session.fork(point)).rejects.toMatchObject(expected);
    }
    expect(store.head('s')).toBe(head);
    for (const point of [last!.id, { before: asking!.id }, { before: answer!.id }, user!.id]) {
      const copy = await session.fork(point);
      expectValidHistory(await copy.messages());
    }
  });

  it('names only the points that exist if the calls are not answered yet', async () => {
    const asks = defineMiddleware({ name: 'asks', beforeToolCall: () => ({ ask: { title: 'May I?' } }) });
    const { session } = sessionOf([pair()], { middleware: [asks] });
    await session.run('go');
    const [, asking] = await session.messages();
    const refused = session.rewind(asking!.id);
    await expect(refused).rejects.toMatchObject({ code: 'CALLS_UNANSWERED', data: { before: asking!.id } });
    await expect(refused).rejects.toThrow(/\{ before: "[^"]+" \}\.$/);
    expect(await session.pending()).toHaveLength(2);
  });
});

it.each<[string, unknown, string]>([
  ['an unknown message', 'nobody', 'MESSAGE_UNKNOWN'],
  ['no id', 5, 'INVALID_OPTION'],
  ['nothing', undefined, 'INVALID_OPTION'],
  ['half a point', {}, 'INVALID_OPTION'],
])('%s is refused', async (_, point, code) => {
  const { session } = sessionOf(['a']);
  await session.run('go');
  await expect(session.rewind(point as string)).rejects.toMatchObject({ code });
});

it('a message from after a point that was rewound to is unknown', async () => {
  const { session } = sessionOf(['a', 'b']);
  const { messages } = await session.run('one');
  await session.rewind(messages[0]!.id);
  await expect(session.rewind(messages[1]!.id)).rejects.toMatchObject({ code: 'MESSAGE_UNKNOWN' });
  await expect(session.fork(messages[1]!.id)).rejects.toMatchObject({ code: 'MESSAGE_UNKNOWN' });
});

it('a rewind to the last message writes nothing', async () => {
  const { session, store } = sessionOf(['a']);
  const { messages } = await session.run('one');
  const head = store.head('s');
  await session.rewind(messages[1]!.id);
  expect(store.head('s')).toBe(head);
});

it('a session of another tenant is neither rewound, forked nor compacted', async () => {
  const { session, store } = sessionOf(['a'], { tenant: 'acme' });
  const { messages } = await session.run('one');
  const compact = () => {};
  const agent = new Agent({
    store,
    model: scriptedModel([]),
    tenant: 'other',
    middleware: [{ name: 'c', compact }],
  });
  const other = agent.session('s');
  for (const refused of [() => other.rewind(messages[0]!.id), () => other.fork(), () => other.compact()])
    await expect(refused()).rejects.toMatchObject({ code: 'TENANT_MISMATCH' });
});

it('a session that does not exist cannot be forked, and one that does is not forked over', async () => {
  const { session } = sessionOf(['a']);
  await expect(session.fork()).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
  await session.run('one');
  await session.fork(undefined, { id: 'copy' });
  await expect(session.fork(undefined, { id: 'copy' })).rejects.toMatchObject({ code: 'SESSION_CONFLICT' });
  await expect(session.fork(undefined, { id: '' })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
});

describe('a run that is open', () => {
  const asks = defineMiddleware({ name: 'asks', beforeToolCall: () => ({ ask: { title: 'May I?' } }) });

  it('is ended by a rewind: nothing is pending, and the history is valid', async () => {
    const { session, store } = sessionOf(['a', pair(), 'b'], { middleware: [asks] });
    await session.run('one');
    await session.run('two');
    const messages = await session.messages();
    await session.rewind(messages[2]!.id);
    expect(await session.pending()).toEqual([]);
    expect(await session.continue()).toMatchObject({ status: 'done', text: 'b' });
    expectValidHistory(await session.messages());
    expect(store.read('s', 1).filter(({ type }) => type === 'run_end')).toHaveLength(3);
  });

  it('goes on in the original of a fork, and is ended in the copy', async () => {
    const { session } = sessionOf([pair(), 'b', 'c'], { middleware: [asks] });
    const { pending } = await session.run('one');
    const copy = await session.fork();
    expect(await copy.pending()).toEqual([]);
    expectValidHistory(await copy.messages());
    const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' as const }]));
    expect(await session.resume({ answers })).toMatchObject({ status: 'done', text: 'b' });
    expect(await copy.run('on')).toMatchObject({ status: 'done', text: 'c' });
  });

  it('whose tool waits is told in the copy not to have run, if its tools may be run again or not', async () => {
    const asking = (name: string, idempotent: boolean) =>
      tool({
        name,
        description: 'Asks.',
        input: z.object({}),
        idempotent,
        execute: async (_, ctx) => (await ctx.suspend({ title: 'Well?' })).type,
      });
    const tools = [asking('once', false), asking('often', true)];
    const { session } = sessionOf([toolCalls({ name: 'once' }, { name: 'often' })], { tools });
    await session.run('one');
    const copy = await session.fork();
    expect((await copy.messages()).slice(2).map(textOf)).toEqual([
      'Not run: the run was given up.',
      'Not run: the run was given up.',
    ]);
    expect(await session.pending()).toHaveLength(2);
  });

  it('that crashed before its answer is ended too, and its question asked again', async () => {
    const { session, store } = sessionOf([failWith(new Error('down'))]);
    const append = store.append.bind(store);
    store.append = (id, seq, entries) => {
      if (entries.some(({ type }) => type === 'run_end')) throw new Error('disk');
      return append(id, seq, entries);
    };
    await expect(session.run('one')).rejects.toThrow();
    store.append = append;
    const [question] = await session.messages();
    await session.rewind(question!.id);
    const model = scriptedModel(['a']);
    expect(await new Agent({ store, model }).session('s').continue()).toMatchObject({ text: 'a' });
  });

  it('and under way in this process refuses a rewind, but can be forked', async () => {
    const { session } = sessionOf(['a', hang('half')]);
    await session.run('one');
    const stream = session.stream('two');
    const events = collect(stream);
    await settle();
    const [first] = await session.messages();
    await expect(session.rewind(first!.id)).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    await expect(session.compact()).rejects.toMatchObject({ code: 'NO_COMPACTION' });
    const copy = await session.fork();
    expect((await copy.messages()).map(textOf)).toEqual(['one', 'a', 'two']);
    await session.abort();
    expect((await events).error).toMatchObject({ code: 'ABORTED' });
  });
});

it('a run in another process fails with SESSION_CONFLICT if a rewind comes in between, and mixes nothing', async () => {
  const { session, store } = sessionOf(['a', 'late']);
  const { messages } = await session.run('one');
  const slow = defineMiddleware({
    name: 'slow',
    wrapModel: async (_, next) => {
      const other = new Agent({ store, model: scriptedModel([]) }).session('s');
      await other.rewind(messages[0]!.id);
      return next();
    },
  });
  const running = new Agent({ store, model: scriptedModel(['late']), middleware: [slow] })
    .session('s')
    .run('two');
  await expect(running).rejects.toMatchObject({ code: 'SESSION_CONFLICT' });
  expect((await session.messages()).map(textOf)).toEqual(['one']);
});

it('waiting messages stay with the session through a rewind, and with the original of a fork', async () => {
  const { session } = sessionOf(['a', 'b']);
  const { messages } = await session.run('one');
  await session.followUp('later');
  const copy = await session.fork();
  await session.rewind(messages[0]!.id);
  expect((await session.queued()).map(({ message }) => textOf(message))).toEqual(['later']);
  expect(await copy.queued()).toEqual([]);
  await copy.steer('for the copy');
  expect(await copy.queued()).toHaveLength(1);
});

it('limits of the session count what was rewound, and call ids stay unique', async () => {
  const store: Store = memoryStore();
  const model = scriptedModel([
    toolCalls({ name: 'look', id: 'same' }),
    'a',
    toolCalls({ name: 'look', id: 'same' }),
    'b',
  ]);
  const agent = new Agent({ store, model, tools: [look], sessionLimits: { turns: 4 } });
  const session = agent.session('s');
  const { messages } = await session.run('one');
  await session.rewind(messages[0]!.id);
  const next = await session.continue();
  expect(next.messages[0]).not.toMatchObject({ content: [{ id: 'same' }] });
  expect((await session.run('more')).stop.reason).toBe('max_turns');
});

describe('compact()', () => {
  it('says so if no middleware can compact', async () => {
    const { session } = sessionOf(['a']);
    await session.run('one');
    await expect(session.compact()).rejects.toMatchObject({ code: 'NO_COMPACTION' });
  });

  it('asks the middleware that can, in order, in a run of its own that may be stopped', async () => {
    const order: string[] = [];
    const named = (name: string) => ({ name, compact: () => void order.push(name) });
    const { session, store } = sessionOf(['a'], { middleware: [named('one'), named('two')] });
    await session.run('go');
    expect(await session.compact()).toMatchObject({ status: 'done', stop: { reason: 'final' }, turns: 0 });
    expect(order).toEqual(['one', 'two']);
    const stops = {
      name: 'stops',
      compact: (ctx: { stop(reason: 'stopped', why: string): never }) => ctx.stop('stopped', 'no'),
    };
    expect(await session.compact({ middleware: [stops] })).toMatchObject({
      status: 'stopped',
      stop: { reason: 'stopped', message: 'no', by: 'stops' },
    });
    const broken = { name: 'broken', compact: () => Promise.reject(new Error('oops')) };
    await expect(session.compact({ middleware: [broken] })).rejects.toMatchObject({
      code: 'MIDDLEWARE_ERROR',
    });
    expect(store.read('s', 1).filter(({ type }) => type === 'run_end')).toHaveLength(4);
    expect(await session.messages()).toHaveLength(2);
  });

  it('leaves an open run alone', async () => {
    const asks = defineMiddleware({
      name: 'asks',
      beforeToolCall: () => ({ ask: { title: 'May I?' } }),
      compact() {},
    });
    const { session } = sessionOf([pair()], { middleware: [asks] });
    await session.run('go');
    await expect(session.compact()).rejects.toMatchObject({ code: 'RUN_OPEN' });
    expect(await session.pending()).toHaveLength(2);
  });

  it('refuses a compact hook that returns anything', async () => {
    const wrong = { name: 'wrong', compact: () => 'done' as never };
    const { session } = sessionOf(['a'], { middleware: [wrong] });
    await session.run('go');
    await expect(session.compact()).rejects.toMatchObject({ code: 'INVALID_HOOK_RESULT' });
  });
});
