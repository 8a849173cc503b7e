/** The laws of the journal: what was appended is there, in order, once, whole and unchanged. */
import type { InboxItem } from '../../index.js';
import {
  codeOf,
  conflicts,
  equal,
  info,
  meddle,
  roundTrip,
  sessionsOf,
  settled,
  texts,
  tick,
  valueIn,
} from './expectations.js';
import type { StoreLawEntry } from './law.js';
import { head, NOW, numbered, run, state, text, UNICODE, VALUES } from './samples.js';
import { wholeEntries, wholeItems } from './whole-samples.js';

export const JOURNAL_LAWS = [
  {
    law: 'order',
    statement: 'Entries come back in the order in which they were appended.',
    async check({ open, prefix }) {
      const store = await open();
      // Each batch comes from a process whose clock is behind that of the one before.
      const at = (time: number, ...ids: string[]) => ids.map((id) => ({ ...text(id), at: time }));
      await store.append(prefix, 0, at(NOW, 'a', 'b', 'c'));
      await store.append(prefix, 3, at(NOW - 20, 'd'));
      await store.append(prefix, 4, at(NOW - 70_000, 'e', 'f'));
      equal(
        texts(await store.read(prefix, 1)),
        ['a', 'b', 'c', 'd', 'e', 'f'],
        'the entries in the order they were appended',
      );
      // Enough entries to catch a store that sorts numbers as text, which puts 10 before 2.
      const many = numbered(2_000);
      await store.append(`${prefix}-many`, 0, many);
      equal(
        texts(await store.read(`${prefix}-many`, 1)),
        many.map(({ message }) => message.id),
        'the entries of a batch of 2000 in the order they were appended',
      );
    },
  },
  {
    law: 'gapless-seq',
    statement: 'Entries are numbered 1, 2, 3 and so on, without a gap. An append of nothing changes nothing.',
    async check({ open, prefix }) {
      const store = await open();
      equal(await store.head(prefix), 0, 'the head of a session that does not exist');
      equal(
        await store.append(prefix, 0, [text('a'), text('b'), text('c')]),
        3,
        'what the first append returns',
      );
      equal(await store.append(prefix, 3, [text('d')]), 4, 'what the second append returns');
      equal(await store.head(prefix), 4, 'the head after four entries');
      const entries = await store.read(prefix, 1);
      equal(
        entries.map(({ seq }) => seq),
        [1, 2, 3, 4],
        'the `seq` of four entries',
      );
      // A store may refuse an append of nothing. Otherwise it changes no number and makes no session.
      const none = `${prefix}-none`;
      for (const [id, seq] of [
        [none, 0],
        [prefix, 4],
      ] as const) {
        const { ok, value } = await settled(() => store.append(id, seq, []));
        if (ok) equal(value, seq, `what an append of nothing to a session of ${seq} entries returns`);
        equal(
          await store.head(id),
          seq,
          `the head of a session of ${seq} entries after an append of nothing`,
        );
      }
      const listed = (await sessionsOf(store, {})).some(({ sessionId }) => sessionId === none);
      equal(listed, false, 'whether `list` shows a session to which nothing was ever appended');
      await store.append(`${prefix}-many`, 0, numbered(2_000));
      // Their order is the business of another law.
      const seqs = (await store.read(`${prefix}-many`, 1)).map(({ seq }) => seq);
      equal(
        seqs.sort((a, b) => a - b),
        Array.from({ length: 2_000 }, (_, i) => i + 1),
        'the `seq` of a batch of 2000',
      );
    },
  },
  {
    law: 'atomic-append',
    statement: 'A batch is written whole or not at all, and no reader sees a part of it.',
    async check({ open, prefix }) {
      const store = await open();
      // A bigint is not JSON. The store may refuse the batch or keep it, but only as a whole.
      const poison = { ...head(), type: 'state', cell: 'c', version: 1, value: 1n } as const;
      const attempt = await settled(() => store.append(prefix, 0, [text('a'), poison, text('c')]));
      const kept = (await store.read(prefix, 1)).length;
      equal(
        kept,
        attempt.ok ? 3 : 0,
        `the number of entries kept of a batch of 3 that was ${attempt.ok ? 'accepted' : 'refused'}`,
      );

      // Anybody who reads meanwhile sees whole batches.
      const other = `${prefix}-read`;
      let writing = true;
      const write = (async () => {
        for (let i = 0; i < 10; i++) await store.append(other, i * 3, [text('a'), text('b'), text('c')]);
      })().finally(() => {
        writing = false;
      });
      do
        equal(
          (await store.read(other, 1)).length % 3,
          0,
          'the number of entries that a reader sees beyond whole batches of 3',
        );
      while (writing && (await tick()));
      await write;
    },
  },
  {
    law: 'expected-seq',
    statement: 'An append anywhere but at the end of the session fails with SESSION_CONFLICT.',
    async check({ open, prefix }) {
      const store = await open();
      await conflicts(
        () => store.append(prefix, 1, [text('x')]),
        'an append at 1 to a session that does not exist',
      );
      for (const at of [0, 1, 3]) {
        await store.append(`${prefix}-${at}`, 0, [text('a'), text('b')]);
        await conflicts(
          () => store.append(`${prefix}-${at}`, at, [text('x')]),
          `an append at ${at} to a session at 2`,
        );
      }
      await store.append(prefix, 0, [text('a'), text('b')]);
      await conflicts(() => store.append(prefix, 1, []), 'an empty append at 1 to a session at 2');
      equal(await store.append(prefix, 2, []), 2, 'what an empty append to a session at 2 returns');
      equal(
        await store.append(prefix, 2, [text('c')]),
        3,
        'what an append at the right place returns after all that',
      );
      await store.delete(prefix);
      await conflicts(() => store.append(prefix, 3, [text('x')]), 'an append to a session deleted meanwhile');
    },
  },
  {
    law: 'one-winner',
    statement:
      'When several appends want the same place at once, one succeeds and the others fail with SESSION_CONFLICT.',
    async check({ open, prefix }) {
      const store = await open();
      for (const at of [0, 1, 2]) {
        const id = `${prefix}-${at}`;
        if (at > 0)
          await store.append(
            id,
            0,
            Array.from({ length: at }, () => text('before')),
          );
        const attempts = await Promise.all(
          Array.from({ length: 16 }, (_, i) => settled(() => store.append(id, at, [text(`${i}`)]))),
        );
        equal(
          attempts.filter(({ ok }) => ok).length,
          1,
          `the number of successes among 16 appends made at once at ${at}`,
        );
        for (const { ok, error } of attempts)
          if (!ok) equal(codeOf(error), 'SESSION_CONFLICT', 'the error code of an append that lost');
      }
    },
  },
  {
    law: 'conflict-writes-nothing',
    statement: 'An append that conflicts writes nothing.',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [run('r', prefix, 10), text('a')]);
      await settled(() => store.append(prefix, 1, [text('x'), text('y')]));
      equal(texts(await store.read(prefix, 2)), ['a'], 'the entries after an append that conflicted');
      equal(
        (await info(store, prefix, prefix)).updatedAt,
        text('a').at,
        '`updatedAt` after an append that conflicted',
      );

      const other = `${prefix}-many`;
      const attempts = await Promise.all(
        Array.from({ length: 16 }, (_, i) =>
          settled(() => store.append(other, 0, [text(`${i}a`), text(`${i}b`)])),
        ),
      );
      const won = attempts.flatMap(({ ok }, i) => (ok ? [`${i}a`, `${i}b`] : []));
      equal(
        texts(await store.read(other, 1)).sort(),
        won.sort(),
        'the entries after 16 appends at once, of which only one succeeds,',
      );
    },
  },
  {
    law: 'values',
    statement: 'Every JSON value, entry and inbox item comes back with everything that was in it.',
    async check({ open, prefix }) {
      const store = await open();
      for (const [i, value] of VALUES.entries()) await roundTrip(store, `${prefix}-${i}`, value);
      for (const [i, entry] of wholeEntries().entries()) {
        const id = `${prefix}-entry-${i}`;
        await store.append(id, 0, [structuredClone(entry)]);
        // Its number is the business of another law.
        const found = (await store.read(id, 1)).map(({ seq: _, ...rest }) => rest);
        equal(found, [entry], `an entry of type "${entry.type}", with all its fields, read back`);
      }
      for (const [i, item] of wholeItems().entries()) {
        const id = `${prefix}-item-${i}`;
        await store.append(id, 0, [text('a')]);
        await store.post(id, structuredClone(item));
        const found = (await store.take(id, 0)).map((taken) => taken.item);
        equal(found, [item], `an inbox item of type "${item.type}", with all its fields, read back`);
      }
    },
  },
  {
    law: 'large-values',
    statement: 'Long texts and large batches come back whole.',
    async check({ open, prefix }) {
      const store = await open();
      await roundTrip(store, `${prefix}-text`, 'allium '.repeat(700_000));
      await roundTrip(
        store,
        `${prefix}-list`,
        Array.from({ length: 50_000 }, (_, i) => ({ i, name: `item ${i}` })),
      );
      // Messages may have a column of their own, with its own limit.
      const long = text('onion '.repeat(100_000));
      await store.append(`${prefix}-message`, 0, [{ ...long, message: { ...long.message, id: 'm' } }]);
      const [found] = await store.read(`${prefix}-message`, 1);
      equal(
        found?.type === 'message' && found.message.content,
        long.message.content,
        'a long message read back',
      );
      await store.append(prefix, 0, numbered(2_000));
      equal((await store.read(prefix, 1)).length, 2_000, 'the number of entries of a batch of 2000');
      equal(
        await store.append(prefix, 2_000, [text('after')]),
        2_001,
        'what an append after a batch of 2000 returns',
      );
    },
  },
  {
    law: 'unicode',
    statement: 'Any text comes back unchanged, even text that UTF-8 cannot hold.',
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
    statement: '`read` begins with exactly the entry it is asked for, also in the middle of a batch.',
    async check({ open, prefix }) {
      const store = await open();
      equal(await store.read(prefix, 1), [], 'the entries of a session that does not exist');
      await store.append(prefix, 0, [text('a'), text('b'), text('c')]);
      await store.append(prefix, 3, [text('d'), text('e')]);
      const all = ['a', 'b', 'c', 'd', 'e'];
      for (let from = 0; from <= 7; from++) {
        equal(
          texts(await store.read(prefix, from)),
          all.slice(Math.max(0, from - 1)),
          `the entries from ${from} on`,
        );
      }
    },
  },
  {
    law: 'no-sharing',
    statement:
      'The store shares no object with its callers: what they change in theirs does not change its own.',
    async check({ open, prefix }) {
      const store = await open();
      const value = { list: [1, 2, 3] };
      await store.append(prefix, 0, [state(value)]);
      const item: InboxItem = {
        type: 'answer',
        requestId: 'q',
        decision: { type: 'edit', args: { list: [1, 2, 3] } },
      };
      await store.post(prefix, item);
      meddle(value);
      meddle(item);
      equal(
        valueIn((await store.read(prefix, 1))[0]),
        { list: [1, 2, 3] },
        'a value whose owner tried to change it after the append',
      );
      meddle(await store.read(prefix, 1));
      meddle(await store.take(prefix, 0));
      equal(
        valueIn((await store.read(prefix, 1))[0]),
        { list: [1, 2, 3] },
        'a value that an earlier reader tried to change',
      );
      const unchanged = {
        type: 'answer',
        requestId: 'q',
        decision: { type: 'edit', args: { list: [1, 2, 3] } },
      };
      for (const taken of await store.take(prefix, 0))
        equal(taken.item, unchanged, 'an inbox item that its owner and an earlier reader tried to change');
    },
  },
] as const satisfies readonly StoreLawEntry[];
