/** The laws of the store port. Each looks at one promise only, so that a broken store fails under the right name. */
import { ENTRY_VERSION, type Entry, type InboxItem, type NewEntry, type SessionInfo, type Store } from '../kernel/store.js';

export interface LawContext {
  /** Begins every session id and tenant of this trial. */
  readonly prefix: string;
  open(): Promise<Store>;
  reopen(store: Store): Promise<Store>;
}

export type StoreLaw = (typeof LAWS)[number]['law'];

interface Law {
  readonly law: string;
  readonly needs?: 'reopen';
  readonly check: (context: LawContext) => Promise<void>;
}

const LAWS = [
  // ── The journal ────────────────────────────────────────────────────────────────────────────────────────────
  {
    law: 'order',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [text('a'), text('b'), text('c')]);
      await store.append(prefix, 3, [text('d')]);
      await store.append(prefix, 4, [text('e'), text('f')]);
      equal(texts(await store.read(prefix, 1)), ['a', 'b', 'c', 'd', 'e', 'f'], 'the entries in the order they were appended');
    },
  },
  {
    law: 'gapless-seq',
    async check({ open, prefix }) {
      const store = await open();
      equal(await store.head(prefix), 0, 'the head of a session that does not exist');
      equal(await store.append(prefix, 0, [text('a'), text('b'), text('c')]), 3, 'what the first append returns');
      equal(await store.append(prefix, 3, [text('d')]), 4, 'what the second append returns');
      equal(await store.head(prefix), 4, 'the head after four entries');
      const entries = await store.read(prefix, 1);
      equal(entries.map(({ seq }) => seq), [1, 2, 3, 4], 'the `seq` of four entries');
    },
  },
  {
    law: 'atomic-append',
    async check({ open, prefix }) {
      const store = await open();
      // A batch with a value that is no JSON: it may be refused or kept, but only as a whole.
      const poison = { ...head(), type: 'state', cell: 'c', version: 1, value: 1n } as const;
      const attempt = await settled(() => store.append(prefix, 0, [text('a'), poison, text('c')]));
      const kept = (await store.read(prefix, 1)).length;
      equal(kept, attempt.ok ? 3 : 0, `the entries kept of a batch of 3 that was ${attempt.ok ? 'accepted' : 'refused'}`);

      // Whoever reads meanwhile sees whole batches.
      const other = `${prefix}-read`;
      let writing = true;
      const write = (async () => {
        for (let i = 0; i < 10; i++) await store.append(other, i * 3, [text('a'), text('b'), text('c')]);
      })().finally(() => {
        writing = false;
      });
      do equal((await store.read(other, 1)).length % 3, 0, 'what is left over when a reader divides by whole batches of 3');
      while (writing && (await tick()));
      await write;
    },
  },
  {
    law: 'expected-seq',
    async check({ open, prefix }) {
      const store = await open();
      await conflicts(() => store.append(prefix, 1, [text('x')]), 'an append at 1 to a session that does not exist');
      for (const at of [0, 1, 3]) {
        await store.append(`${prefix}-${at}`, 0, [text('a'), text('b')]);
        await conflicts(() => store.append(`${prefix}-${at}`, at, [text('x')]), `an append at ${at} to a session at 2`);
      }
      await store.append(prefix, 0, [text('a'), text('b')]);
      await conflicts(() => store.append(prefix, 1, []), 'an empty append at 1 to a session at 2');
      equal(await store.append(prefix, 2, []), 2, 'what an empty append to a session at 2 returns');
      equal(await store.append(prefix, 2, [text('c')]), 3, 'what an append at the right place returns after all that');
      await store.delete(prefix);
      await conflicts(() => store.append(prefix, 3, [text('x')]), 'an append to a session deleted meanwhile');
    },
  },
  {
    law: 'one-winner',
    async check({ open, prefix }) {
      const store = await open();
      for (const at of [0, 1, 2]) {
        const id = `${prefix}-${at}`;
        if (at > 0) await store.append(id, 0, Array.from({ length: at }, () => text('before')));
        const attempts = await Promise.all(Array.from({ length: 16 }, (_, i) => settled(() => store.append(id, at, [text(`${i}`)]))));
        equal(attempts.filter(({ ok }) => ok).length, 1, `how many of 16 appends at ${at}, made at once, succeeded`);
        for (const { ok, error } of attempts) if (!ok) equal(codeOf(error), 'SESSION_CONFLICT', 'the code of the error of the others');
      }
    },
  },
  {
    law: 'conflict-writes-nothing',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [run('r', prefix, 10), text('a')]);
      await settled(() => store.append(prefix, 1, [text('x'), text('y')]));
      equal(texts(await store.read(prefix, 2)), ['a'], 'the entries after an append that conflicted');
      equal((await info(store, prefix, prefix)).updatedAt, text('a').at, '`updatedAt` after an append that conflicted');

      const other = `${prefix}-many`;
      const attempts = await Promise.all(Array.from({ length: 16 }, (_, i) => settled(() => store.append(other, 0, [text(`${i}a`), text(`${i}b`)]))));
      const won = attempts.flatMap(({ ok }, i) => (ok ? [`${i}a`, `${i}b`] : []));
      equal(texts(await store.read(other, 1)).sort(), won.sort(), 'the entries after 16 appends at once: those of the winner');
    },
  },
  {
    law: 'values',
    async check({ open, prefix }) {
      const store = await open();
      for (const [i, value] of VALUES.entries()) await roundTrip(store, `${prefix}-${i}`, value);
    },
  },
  {
    law: 'large-values',
    async check({ open, prefix }) {
      const store = await open();
      await roundTrip(store, `${prefix}-text`, 'allium '.repeat(700_000));
      await roundTrip(store, `${prefix}-list`, Array.from({ length: 50_000 }, (_, i) => ({ i, name: `item ${i}` })));
      const many = Array.from({ length: 2_000 }, (_, i) => text(`${i}`));
      await store.append(prefix, 0, many);
      equal((await store.read(prefix, 1)).length, 2_000, 'the entries of a batch of 2000');
      equal(await store.append(prefix, 2_000, [text('after')]), 2_001, 'what an append after a batch of 2000 returns');
    },
  },
  {
    law: 'unicode',
    async check({ open, prefix }) {
      const store = await open();
      for (const [i, value] of UNICODE.entries()) {
        await roundTrip(store, `${prefix}-${i}`, value);
        await roundTrip(store, `${prefix}-key-${i}`, { [value]: 1 });
      }
    },
  },
  {
    law: 'read-from',
    async check({ open, prefix }) {
      const store = await open();
      equal(await store.read(prefix, 1), [], 'the entries of a session that does not exist');
      await store.append(prefix, 0, [text('a'), text('b'), text('c')]);
      await store.append(prefix, 3, [text('d'), text('e')]);
      const all = ['a', 'b', 'c', 'd', 'e'];
      for (let from = 0; from <= 7; from++) {
        equal(texts(await store.read(prefix, from)), all.slice(Math.max(0, from - 1)), `the entries from ${from} on`);
      }
    },
  },
  {
    law: 'no-sharing',
    async check({ open, prefix }) {
      const store = await open();
      const value = { list: [1, 2, 3] };
      await store.append(prefix, 0, [state(value)]);
      const item: InboxItem = { type: 'answer', requestId: 'q', decision: { type: 'edit', args: { list: [1, 2, 3] } } };
      await store.post(prefix, item);
      meddle(value);
      meddle(item);
      equal(valueOf((await store.read(prefix, 1))[0]), { list: [1, 2, 3] }, 'a value whose owner tried to change it after the append');
      meddle(await store.read(prefix, 1));
      meddle(await store.take(prefix, 0));
      equal(valueOf((await store.read(prefix, 1))[0]), { list: [1, 2, 3] }, 'a value that an earlier reader tried to change');
      const unchanged = { type: 'answer', requestId: 'q', decision: { type: 'edit', args: { list: [1, 2, 3] } } };
      for (const taken of await store.take(prefix, 0)) equal(taken.item, unchanged, 'an inbox item that its owner and an earlier reader tried to change');
    },
  },

  // ── Sessions ───────────────────────────────────────────────────────────────────────────────────────────────
  {
    law: 'independent-sessions',
    async check({ open, prefix }) {
      const store = await open();
      // One id is the beginning of the other, which is where stores built on key prefixes go wrong.
      const [a, b] = [prefix, `${prefix}-b`];
      await store.append(a, 0, [text('a1')]);
      await store.append(b, 0, [text('b1')]);
      await store.append(a, 1, [text('a2')]);
      await store.append(b, 1, [text('b2')]);
      await store.post(a, cancel('for a'));
      await store.post(b, cancel('for b'));
      equal(texts(await store.read(a, 1)), ['a1', 'a2'], 'the entries of the first of two sessions');
      equal(reasons(await store.take(a, 0)), ['for a'], 'the inbox of the first of two sessions');
      await store.delete(a);
      equal(texts(await store.read(b, 1)), ['b1', 'b2'], 'the entries of the second session, the first being deleted');
      equal(reasons(await store.take(b, 0)), ['for b'], 'the inbox of the second session, the first being deleted');
    },
  },
  {
    law: 'session-ids',
    async check({ open, prefix }) {
      const store = await open();
      const ids = ODD_IDS.map((id) => `${id}${prefix}${id}`);
      for (const id of ids) await store.append(id, 0, [run(id, `${prefix}-ids`, 5)]);
      for (const id of ids) equal((await store.read(id, 1)).map((entry) => (entry.type === 'run_start' ? entry.runId : '')), [id], `the entries of session ${JSON.stringify(id.slice(0, 60))}`);
      const listed = await sessionsOf(store, { tenant: `${prefix}-ids` });
      equal(listed.map(({ sessionId }) => sessionId).sort(), [...ids].sort(), 'the ids that `list` gives');
      // Text no database can hold as it is may be refused, but two such ids must not become one session.
      const [one, two] = [`${prefix}\ud800`, `${prefix}\ud801`];
      await settled(() => store.append(one, 0, [text('one')]));
      const second = await settled(() => store.read(two, 1));
      if (second.ok) equal(second.value, [], 'the entries of a session of which only one with a similar, ill-formed id was written');
    },
  },
  {
    law: 'list-tenant',
    async check({ open, prefix }) {
      const store = await open();
      const [ours, theirs] = [`${prefix}-ours`, `${prefix}-theirs`];
      await store.append(`${prefix}-1`, 0, [text('early'), run('r1', ours, 20)]);
      await store.append(`${prefix}-2`, 0, [run('r2', theirs, 30)]);
      await store.append(`${prefix}-3`, 0, [run('r3', undefined, 40)]);
      // Later runs do not move a session to another tenant.
      await store.append(`${prefix}-1`, 2, [run('r4', theirs, 50)]);
      await store.append(`${prefix}-3`, 1, [run('r5', theirs, 60)]);
      equal(
        await sessionsOf(store, { tenant: ours }),
        [{ sessionId: `${prefix}-1`, tenant: ours, seq: 3, createdAt: text('early').at, updatedAt: 50 }],
        'the sessions of the first tenant',
      );
      equal((await sessionsOf(store, { tenant: theirs })).map(({ sessionId }) => sessionId), [`${prefix}-2`], 'the sessions of the second tenant');
      const all = await sessionsOf(store, {});
      const untenanted = all.find(({ sessionId }) => sessionId === `${prefix}-3`);
      equal(untenanted, { sessionId: `${prefix}-3`, seq: 2, createdAt: 40, updatedAt: 60 }, 'a session without a tenant in the list of all');
    },
  },
  {
    law: 'list-time',
    async check({ open, prefix }) {
      const store = await open();
      for (const [i, at] of [300, 100, 200].entries()) await store.append(`${prefix}-${i}`, 0, [run('r', prefix, at)]);
      const ids = async (since?: number) => (await sessionsOf(store, { tenant: prefix, ...(since !== undefined && { since }) })).map(({ sessionId }) => sessionId.slice(prefix.length + 1));
      equal(await ids(), ['0', '2', '1'], 'the sessions, newest first');
      equal(await ids(200), ['0', '2'], 'the sessions updated since 200');
      await store.append(`${prefix}-1`, 1, [{ ...text('later'), at: 400 }]);
      equal(await ids(), ['1', '0', '2'], 'the sessions, newest first, after an append to the oldest');
      equal(await ids(301), ['1'], 'the sessions updated since 301');
    },
  },
  {
    law: 'list-paging',
    async check({ open, prefix }) {
      const store = await open();
      // Several sessions have the same time, so a cursor that is only a time loses or repeats some.
      const ids = Array.from({ length: 10 }, (_, i) => `${prefix}-${i}`);
      for (const [i, id] of ids.entries()) await store.append(id, 0, [run('r', prefix, 100 + Math.floor(i / 4))]);
      const seen: string[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < 20; page++) {
        const { sessions, next } = await store.list({ tenant: prefix, limit: 3, ...(cursor !== undefined && { cursor }) });
        if (sessions.length > 3) equal(sessions.length, 3, 'the length of a page of at most 3');
        seen.push(...sessions.map(({ sessionId }) => sessionId));
        if (next === undefined) break;
        cursor = next;
        // Meanwhile sessions come in at the front and go away behind.
        await store.append(`${prefix}-new-${page}`, 0, [run('r', prefix, 500 + page)]);
        await store.append(`${prefix}-gone`, 0, [run('r', prefix, 900)]);
        await store.delete(`${prefix}-gone`);
      }
      equal([...seen].sort(), ids, 'the sessions on all pages, each once, though others were added meanwhile');
    },
  },
  {
    law: 'fork-copies',
    async check({ open, prefix }) {
      const store = await open();
      const copy = `copy-${prefix}`;
      await store.append(prefix, 0, [run('r', prefix, 10), text('a'), text('b')]);
      await store.append(prefix, 3, [text('c'), text('d')]);
      await store.fork(prefix, 4, copy);
      const [original, copied] = [await store.read(prefix, 1), await store.read(copy, 1)];
      equal(copied, original.slice(0, 4), 'the entries of a fork at 4');
      equal(await store.head(copy), 4, 'the head of a fork at 4');
      equal((await info(store, prefix, copy)).tenant, prefix, 'the tenant of a fork');
      equal(codeOf((await settled(() => store.fork(`${prefix}-none`, 1, `${prefix}-x`))).error), 'SESSION_UNKNOWN', 'the code of forking a session that does not exist');
      await conflicts(() => store.fork(prefix, 1, copy), 'a fork onto a session that exists');
      for (const seq of [0, 6]) equal((await settled(() => store.fork(prefix, seq, `${prefix}-x`))).ok, false, `whether a session of 5 entries can be forked at ${seq}`);
      equal(await store.head(`${prefix}-x`), 0, 'the head of a session that could not be forked');
      equal((await store.read(copy, 1)).length, 4, 'the entries of the fork after other forks failed');
    },
  },
  {
    law: 'fork-isolation',
    async check({ open, prefix }) {
      const store = await open();
      const copy = `copy-${prefix}`;
      await store.append(prefix, 0, [text('a'), text('b')]);
      await store.fork(prefix, 2, copy);
      await store.append(prefix, 2, [text('source')]);
      await store.append(copy, 2, [text('fork')]);
      equal(texts(await store.read(prefix, 1)), ['a', 'b', 'source'], 'the entries of the source after both went on');
      equal(texts(await store.read(copy, 1)), ['a', 'b', 'fork'], 'the entries of the fork after both went on');
      await store.delete(prefix);
      equal(texts(await store.read(copy, 1)), ['a', 'b', 'fork'], 'the entries of the fork after its source was deleted');
    },
  },
  {
    law: 'fork-inbox',
    async check({ open, prefix }) {
      const store = await open();
      const copy = `copy-${prefix}`;
      await store.append(prefix, 0, [text('a')]);
      await store.post(prefix, cancel('one'));
      await store.post(prefix, cancel('two'));
      await store.append(prefix, 1, [{ ...head(), type: 'inbox', cursor: 2, queued: [] }]);
      await store.fork(prefix, 2, copy);
      await store.post(copy, cancel('for the fork'));
      await store.post(prefix, cancel('for the source'));
      // The journal of the fork says that two items were taken; its own items must count as later than those.
      equal(reasons(await store.take(copy, 2)), ['for the fork'], 'the items of the fork after the cursor in its journal');
      equal(reasons(await store.take(prefix, 2)), ['for the source'], 'the items of the source after its cursor');
    },
  },
  {
    law: 'delete',
    async check({ open, prefix }) {
      const store = await open();
      await store.delete(prefix);
      await store.append(prefix, 0, [run('r', prefix, 10), text('a')]);
      await store.post(prefix, cancel('old'));
      await store.delete(prefix);
      equal(await store.head(prefix), 0, 'the head of a deleted session');
      equal(await store.read(prefix, 1), [], 'the entries of a deleted session');
      equal(await store.take(prefix, 0), [], 'the inbox of a deleted session');
      equal(await sessionsOf(store, { tenant: prefix }), [], 'the list after the only session was deleted');
      equal(await store.append(prefix, 0, [text('new')]), 1, 'what the first append after a deletion returns');
      equal(texts(await store.read(prefix, 1)), ['new'], 'the entries of a session made again after its deletion');
    },
  },

  // ── The inbox ──────────────────────────────────────────────────────────────────────────────────────────────
  {
    law: 'inbox-order',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [text('a')]);
      equal(await store.take(prefix, 0), [], 'an inbox that nobody wrote to');
      const items: InboxItem[] = [
        { type: 'steer', message: { id: '', role: 'user', content: [{ type: 'text', text: '🧅 stop\u0000\u2028' }] } },
        { type: 'answer', requestId: 'q1', decision: { type: 'edit', args: { n: 1.5, none: null } } },
        { type: 'cancel' },
      ];
      for (const item of items) await store.post(prefix, item);
      equal(await store.take(prefix, 0), items.map((item, i) => ({ n: i + 1, item })), 'three items, in order, numbered from 1');
      await Promise.all(Array.from({ length: 16 }, async (_, i) => store.post(prefix, cancel(`${i}`))));
      const later = await store.take(prefix, 3);
      equal(later.map(({ n }) => n), Array.from({ length: 16 }, (_, i) => i + 4), 'the numbers of 16 items posted at once');
      equal(reasons(later).sort(), Array.from({ length: 16 }, (_, i) => `${i}`).sort(), 'the items posted at once');
    },
  },
  {
    law: 'inbox-cursor',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [text('a')]);
      for (const reason of ['one', 'two', 'three']) await store.post(prefix, cancel(reason));
      equal(reasons(await store.take(prefix, 0)).sort(), ['one', 'three', 'two'], 'the items after 0');
      equal(reasons(await store.take(prefix, 0)).sort(), ['one', 'three', 'two'], 'the items after 0 when asked again: taking does not remove');
      equal(reasons(await store.take(prefix, 2)), ['three'], 'the items after 2');
      equal(reasons(await store.take(prefix, 0)), ['three'], 'the items after 0, those up to 2 being forgotten');
      equal(await store.take(prefix, 3), [], 'the items after the last');
      await store.post(prefix, cancel('four'));
      equal(await store.take(prefix, 3), [{ n: 4, item: cancel('four') }], 'an item posted when all before were forgotten: it goes on counting');
    },
  },
  {
    law: 'inbox-early',
    async check({ open, prefix }) {
      const store = await open();
      await store.post(prefix, cancel('early'));
      equal(await store.head(prefix), 0, 'the head of a session that has only an inbox');
      equal((await sessionsOf(store, {})).filter(({ sessionId }) => sessionId === prefix), [], 'the entry in `list` of a session that has only an inbox');
      equal(await store.append(prefix, 0, [text('a')]), 1, 'what the first append after a post returns');
      equal(reasons(await store.take(prefix, 0)), ['early'], 'the item posted before the first append');
    },
  },

  // ── Two handles, as two processes have ─────────────────────────────────────────────────────────────────────
  {
    law: 'two-handles',
    needs: 'reopen',
    async check({ open, reopen, prefix }) {
      const one = await open();
      await one.append(prefix, 0, [run('r', prefix, 10)]);
      const two = await reopen(one);
      equal(await two.head(prefix), 1, 'the head that the second handle sees');
      await two.append(prefix, 1, [text('two')]);
      equal(await one.head(prefix), 2, 'the head that the first handle sees after the second appended');
      await conflicts(() => one.append(prefix, 1, [text('x')]), 'an append of the first handle at the place the second wrote to');
      await one.append(prefix, 2, [text('one')]);
      equal(texts(await two.read(prefix, 2)), ['two', 'one'], 'the entries that the second handle reads');
      equal((await info(two, prefix, prefix)).seq, 3, 'the `seq` that the second handle lists');

      const attempts = await Promise.all(Array.from({ length: 16 }, (_, i) => settled(() => (i % 2 ? one : two).append(prefix, 3, [text(`${i}`)]))));
      equal(attempts.filter(({ ok }) => ok).length, 1, 'how many of 16 appends at once through two handles succeeded');
      equal(texts(await one.read(prefix, 4)), attempts.flatMap(({ ok }, i) => (ok ? [`${i}`] : [])), 'the entry that stands after them');

      await two.post(prefix, cancel('from two'));
      for (const handle of [two, one]) equal(reasons(await handle.take(prefix, 0)), ['from two'], 'the item posted through the second handle, as each of them takes it');
      await two.delete(prefix);
      await conflicts(() => one.append(prefix, 4, [text('x')]), 'an append of the first handle to a session the second deleted');
      await two.append(prefix, 0, [text('again')]);
      equal(texts(await one.read(prefix, 1)), ['again'], 'the entries that the first handle reads after the session was made again');
    },
  },
  {
    law: 'crash',
    needs: 'reopen',
    async check({ open, reopen, prefix }) {
      const one = await open();
      await one.append(prefix, 0, [run('r', prefix, 10), text('a')]);
      await one.post(prefix, cancel('posted'));
      // The first handle is never closed: whatever was confirmed has to be there for the next one.
      const two = await reopen(one);
      equal(texts(await two.read(prefix, 2)), ['a'], 'the entries found after a crash');
      equal(reasons(await two.take(prefix, 0)), ['posted'], 'the inbox found after a crash');
      // An append that is under way when the process dies is there as a whole or not at all.
      const underWay = settled(() => one.append(prefix, 2, [text('b'), text('c'), text('d')]));
      const three = await reopen(one);
      const found = texts(await three.read(prefix, 3));
      if (found.length > 0) equal(found, ['b', 'c', 'd'], 'the part of an append under way that the next process finds');
      await underWay;
      equal(texts(await three.read(prefix, 3)), ['b', 'c', 'd'], 'the entries of that append once it was confirmed');
      equal(await three.append(prefix, 5, [text('e')]), 6, 'what an append after the crash returns');
    },
  },
] as const satisfies readonly Law[];

export const STORE_LAWS: readonly (Law & { readonly law: StoreLaw })[] = LAWS;

// ── What the laws write ──────────────────────────────────────────────────────────────────────────────────────

const head = () => ({ v: ENTRY_VERSION, at: 1_000 });

function text(id: string): NewEntry & { readonly type: 'message' } {
  return { ...head(), type: 'message', runId: 'r', message: { id, role: 'user', content: [{ type: 'text', text: id }] } };
}

function state(value: unknown): NewEntry {
  return { ...head(), type: 'state', cell: 'c', version: 1, value };
}

function run(runId: string, tenant: string | undefined, at: number): NewEntry {
  return { v: ENTRY_VERSION, at, type: 'run_start', runId, plan: [], ...(tenant !== undefined && { tenant }) };
}

const cancel = (reason: string): InboxItem => ({ type: 'cancel', reason });

const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1.5,
  Number.MAX_SAFE_INTEGER,
  1e300,
  5e-324,
  '',
  [],
  {},
  [null, [[]], { '': {} }],
  { a: null, 'key with "quotes" \\ and \n': '\t\r\n"\\/' },
  JSON.parse('{"__proto__":{"x":1},"constructor":2,"1":"number-like","toString":null}'),
  Array.from({ length: 60 }).reduce((inner: unknown) => ({ inner }), 'deep'),
];

const UNICODE: readonly string[] = ['é ü ß', '日本語', '🧅👩‍👩‍👧‍👦', '\u0000 in the \u0000 middle', '\u2028\u2029', '\ufeff', 'e\u0301', '\ud83e', '\udd45', 'cut \ud83e here', '\uffff', '\u007f\u0080'];

const ODD_IDS: readonly string[] = ['plain', 'UPPER', 'upper', 'a b', 'a/b', '../up', '..', 'C:\\x', "it's", '"q"', '%41', 'a%', 'a_', '日本', '🧅', ':', '*', '\n', 'con', 'l'.repeat(300), 'é', 'e\u0301'];

// ── How they look at the outcome ─────────────────────────────────────────────────────────────────────────────

async function roundTrip(store: Store, sessionId: string, value: unknown): Promise<void> {
  await store.append(sessionId, 0, [state(value)]);
  equal(valueOf((await store.read(sessionId, 1))[0]), value, 'a value read back');
}

function valueOf(entry: Entry | undefined): unknown {
  return entry?.type === 'state' ? entry.value : undefined;
}

function texts(entries: readonly Entry[]): string[] {
  return entries.map((entry) => (entry.type === 'message' ? entry.message.id : entry.type));
}

function reasons(items: readonly { readonly item: InboxItem }[]): string[] {
  return items.map(({ item }) => (item.type === 'cancel' ? (item.reason ?? '') : item.type));
}

async function info(store: Store, tenant: string, sessionId: string): Promise<SessionInfo> {
  const found = (await sessionsOf(store, { tenant })).find((session) => session.sessionId === sessionId);
  if (!found) throw new Error(`Expected session ${JSON.stringify(sessionId)} in the list of its tenant.`);
  return found;
}

async function sessionsOf(store: Store, filter: { tenant?: string; since?: number }): Promise<SessionInfo[]> {
  const sessions: SessionInfo[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.list({ ...filter, limit: 1_000, ...(cursor !== undefined && { cursor }) });
    sessions.push(...page.sessions);
    if (page.next === undefined) return sessions;
    cursor = page.next;
  }
}

type Attempt<T> = { readonly ok: boolean; readonly value?: T; readonly error?: unknown };

async function settled<T>(attempt: () => T | Promise<T>): Promise<Attempt<T>> {
  try {
    return { ok: true, value: await attempt() };
  } catch (error) {
    return { ok: false, error };
  }
}

async function conflicts(attempt: () => unknown, what: string): Promise<void> {
  const { ok, error } = await settled(attempt);
  equal(ok ? 'success' : codeOf(error), 'SESSION_CONFLICT', `the outcome of ${what}`);
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : String(error);
}

/** Changes everything reachable that lets itself be changed. */
function meddle(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    meddle((value as Record<string, unknown>)[key]);
    Reflect.set(value, key, 'meddled');
  }
}

function tick(): Promise<true> {
  return new Promise((resolve) => setImmediate(resolve, true));
}

function equal(actual: unknown, expected: unknown, what: string): void {
  const path = difference(actual, expected, '');
  if (path === undefined) return;
  throw new Error(`Expected ${what} to be ${brief(expected)}, got ${brief(actual)}${path === '' ? '' : ` (they differ at ${path})`}.`);
}

/** Where two JSON values differ. A property that is undefined counts as absent, as it does in JSON. */
function difference(a: unknown, b: unknown, path: string): string | undefined {
  if (Object.is(a, b)) return undefined;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return path;
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return `${path}.length`;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const inner = difference((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key], `${path}[${JSON.stringify(key)}]`);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

function brief(value: unknown): string {
  const json = JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner)) ?? String(value);
  return json.length > 200 ? `${json.slice(0, 200)}… (${json.length} characters)` : json;
}
