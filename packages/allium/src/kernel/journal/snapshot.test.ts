import { defineMiddleware, defineState, memoryStore, tool } from 'allium';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Agent } from '../../index.js';
import { scriptedModel, text, toolCalls } from '../../testing/index.js';
import type { Entry, Snapshot, Store } from '../protocol/store.js';
import { applyEntry } from './read-session.js';
import { SessionState } from './session-state.js';
import { dueSnapshot, restore } from './snapshot.js';

const add = tool({ name: 'add', description: 'Adds.', input: z.object({}), execute: async () => '3' });
const total = defineState({ name: 'total', scope: 'session', initial: 0 });
const mine = defineState({ name: 'mine', scope: 'run', initial: 0 });
const counting = defineMiddleware({
  name: 'counting',
  state: [total, mine],
  afterModel(ctx) {
    ctx.state.update(total, (n) => n + 1);
    ctx.state.update(mine, (n) => n + 1);
  },
});

/** Calls the tool in each of `turns` turns, always under the same id. */
const calling = (turns: number) =>
  scriptedModel(
    [...Array.from({ length: turns }, () => toolCalls({ name: 'add', args: {}, id: 'same' })), text('done')],
    { repeat: true },
  );

function agentWith(store: Store, turns: number, more: object = {}): Agent {
  return new Agent({
    model: calling(turns),
    tools: [add],
    middleware: [counting],
    store,
    limits: { turns: 1000 },
    ...more,
  });
}

/** What is read of a store, by method. */
function watched(inner = memoryStore()) {
  const read: Record<string, number> = {};
  const count = (name: string, { length }: readonly unknown[]) => {
    read[name] = (read[name] ?? 0) + length;
  };
  const store: Store = Object.assign(Object.create(inner) as Store, {
    append: inner.append.bind(inner),
    head: inner.head.bind(inner),
    take: inner.take.bind(inner),
    post: inner.post.bind(inner),
    fork: inner.fork.bind(inner),
    delete: inner.delete.bind(inner),
    list: inner.list.bind(inner),
    read(id: string, from: number) {
      const entries = inner.read(id, from);
      count('read', entries);
      return entries;
    },
    tail(id: string) {
      const tail = inner.tail!(id);
      count('tail', tail.entries);
      return tail;
    },
  });
  return { inner, store, read };
}

/** Everything but the messages and what is known of snapshots. */
function facts(state: SessionState): unknown {
  const { history, callIds, snapshotAt, snapshotAfter, last, usage, open, ...rest } = state;
  const { type, at } = last!;
  return {
    ...rest,
    last: { type, at },
    usage: usage.snapshot(),
    open: open && { ...open, usage: open.usage.snapshot() },
    length: history.length,
    lastMessage: [history.last?.id, history.last?.role],
  };
}

async function journalOf(run: (agent: Agent) => Promise<unknown>): Promise<readonly Entry[]> {
  const store = memoryStore();
  await run(agentWith(store, 6));
  return store.read('s', 1);
}

const JOURNALS: Readonly<Record<string, (agent: Agent) => Promise<unknown>>> = {
  'one run': (agent) => agent.session('s', { tenant: 't' }).run('go'),
  'runs with limits, metadata and messages that wait': async (agent) => {
    const session = agent.session('s');
    await session.followUp('and then?');
    await session.run('go', { limits: { turns: 2 }, metadata: { a: 1 } });
    await session.followUp('more');
    await session.run('again');
  },
  'a suspended run, answered for the rest of the session': async (agent) => {
    const asking = defineMiddleware({ name: 'asking', beforeToolCall: () => ({ ask: { title: 'May I?' } }) });
    const session = agent.session('s');
    const { pending } = await session.run('go', { middleware: [asking] });
    await session.resume({
      middleware: [asking],
      answers: { [pending[0]!.id]: { type: 'approve', remember: 'tool' } },
    });
  },
};

describe('a snapshot', () => {
  for (const [what, run] of Object.entries(JOURNALS))
    it(`after any entry equals what the entries before it add up to: ${what}`, async () => {
      const entries = await journalOf(run);
      const whole = new SessionState('s');
      for (const entry of entries) applyEntry(whole, entry);
      let taken = 0;
      for (let k = 1; k <= entries.length; k++) {
        const before = new SessionState('s');
        for (const entry of entries.slice(0, k)) applyEntry(before, entry);
        before.snapshotAfter = 0;
        const snapshot = dueSnapshot(before, k, before.last);
        if (snapshot === undefined) continue;
        taken++;
        const after = new SessionState('s');
        expect(restore(after, snapshot)).toBe(true);
        expect(JSON.stringify(snapshot)).not.toContain('"content":[{"type":"text","text":"go"');
        for (const entry of entries.slice(k)) applyEntry(after, entry);
        expect(facts(after)).toEqual(facts(whole));
      }
      expect(taken).toBeGreaterThan(entries.length / 4);
    });

  it('lets a long session be opened without its messages, which are read when somebody asks', async () => {
    const { inner, store, read } = watched();
    await agentWith(inner, 400).session('s').run('go');
    const length = inner.head('s');
    const other = agentWith(store, 3).session('s');
    expect(await other.pending()).toEqual([]);
    expect(await other.state(total)).toBe(401);
    expect(read.tail! + (read.read ?? 0)).toBeLessThan(300);
    expect(await other.messages()).toHaveLength(802);
    expect(read.read).toBeGreaterThanOrEqual(length);
  });

  it('does not let a call id be used twice, however old', async () => {
    const store = memoryStore();
    await agentWith(store, 400).session('s').run('go');
    const session = agentWith(store, 3).session('s');
    await session.pending();
    await session.run('again');
    const ids = (await session.messages()).flatMap((message) =>
      message.role === 'assistant'
        ? message.content.flatMap((part) => (part.type === 'tool-call' ? part.id : []))
        : [],
    );
    expect(ids).toHaveLength(403);
    expect(new Set(ids).size).toBe(403);
  });

  it('is written rarely enough to add little, and is there after a run that never ended', async () => {
    const store = memoryStore();
    const snapshots: Snapshot[] = [];
    const noting: Store = Object.assign(Object.create(store) as Store, {
      append: (id: string, seq: number, entries: never, snapshot?: Snapshot) => {
        if (snapshot) snapshots.push(snapshot);
        if (seq > 900) throw new Error('The disk is full.');
        return store.append(id, seq, entries, snapshot);
      },
      read: store.read.bind(store),
      tail: store.tail!.bind(store),
      take: store.take.bind(store),
      head: store.head.bind(store),
    });
    await expect(agentWith(noting, 600).session('s').run('go')).rejects.toThrow('disk is full');
    expect(snapshots.map(({ seq }) => seq).length).toBeLessThanOrEqual(4);
    expect(store.tail!('s').snapshot!.seq).toBeGreaterThan(512);
    const whole = new SessionState('s');
    for (const entry of store.read('s', 1)) applyEntry(whole, entry);
    const { open } = whole;
    const resumed = agentWith(store, 5).session('s');
    expect(await resumed.pending()).toEqual([]);
    const result = await resumed.resume();
    expect(result.runId).toBe(open!.runId);
    expect(result.turns).toBe(open!.turns + 6);
  });

  it('that cannot be used is ignored', async () => {
    const store = memoryStore();
    await agentWith(store, 400).session('s').run('go');
    for (const state of ['{"version":99}', 'null', '{', '[]']) {
      const damaged: Store = Object.assign(Object.create(store) as Store, {
        tail: (id: string) => ({
          ...store.tail!(id),
          snapshot: { seq: store.tail!(id).snapshot!.seq, state },
        }),
        read: store.read.bind(store),
        take: store.take.bind(store),
      });
      expect(await agentWith(damaged, 1).session('s').state(total)).toBe(401);
    }
  });

  it('does not hide that the history was rewound to before it', async () => {
    const store = memoryStore();
    const session = agentWith(store, 400).session('s');
    await session.run('go');
    const before = (await session.messages())[3]!.id;
    await session.rewind({ before });
    const other = agentWith(store, 2).session('s');
    expect(await other.state(total)).toBe(1);
    expect(await other.messages()).toHaveLength(3);
  });
});
