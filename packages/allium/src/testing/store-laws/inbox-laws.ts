/** The laws of the inbox: nothing posted gets lost, and nothing is taken twice. */
import type { InboxItem } from '../../index.js';
import { equal, reasons, sessionsOf } from './expectations.js';
import type { StoreLawEntry } from './law.js';
import { cancel, text } from './samples.js';

export const INBOX_LAWS = [
  {
    law: 'inbox-order',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [text('a')]);
      equal(await store.take(prefix, 0), [], 'an inbox that nobody wrote to');
      const items: InboxItem[] = [
        {
          type: 'steer',
          message: { id: '', role: 'user', content: [{ type: 'text', text: '🧅 stop\u0000\u2028' }] },
        },
        { type: 'answer', requestId: 'q1', decision: { type: 'edit', args: { n: 1.5, none: null } } },
        { type: 'cancel' },
      ];
      for (const item of items) await store.post(prefix, item);
      equal(
        await store.take(prefix, 0),
        items.map((item, i) => ({ n: i + 1, item })),
        'three items, in order, numbered from 1',
      );
      await Promise.all(Array.from({ length: 16 }, async (_, i) => store.post(prefix, cancel(`${i}`))));
      const later = await store.take(prefix, 3);
      equal(
        later.map(({ n }) => n),
        Array.from({ length: 16 }, (_, i) => i + 4),
        'the numbers of 16 items posted at once',
      );
      equal(
        reasons(later).sort(),
        Array.from({ length: 16 }, (_, i) => `${i}`).sort(),
        'the items posted at once',
      );
    },
  },
  {
    law: 'inbox-cursor',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [text('a')]);
      for (const reason of ['one', 'two', 'three']) await store.post(prefix, cancel(reason));
      equal(reasons(await store.take(prefix, 0)).sort(), ['one', 'three', 'two'], 'the items after 0');
      equal(
        reasons(await store.take(prefix, 0)).sort(),
        ['one', 'three', 'two'],
        'the items after 0 when asked again: taking does not remove',
      );
      equal(reasons(await store.take(prefix, 2)), ['three'], 'the items after 2');
      equal(
        reasons(await store.take(prefix, 0)),
        ['three'],
        'the items after 0, those up to 2 being forgotten',
      );
      equal(await store.take(prefix, 3), [], 'the items after the last');
      await store.post(prefix, cancel('four'));
      equal(
        await store.take(prefix, 3),
        [{ n: 4, item: cancel('four') }],
        'an item posted when all before were forgotten: it goes on counting',
      );
    },
  },
  {
    law: 'inbox-taken',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [text('a')]);
      for (const reason of ['one', 'two', 'three']) await store.post(prefix, cancel(reason));
      equal(
        reasons(await store.take(prefix, 0)).sort(),
        ['one', 'three', 'two'],
        'the items before any was taken over',
      );
      await store.append(prefix, 1, [{ v: 1, at: 1, type: 'inbox', cursor: 3, waits: [2] }]);
      await store.post(prefix, cancel('four'));
      const left = (await store.take(prefix, 0)).filter(({ n }) => n !== 2);
      equal(
        left,
        [{ n: 4, item: cancel('four') }],
        'the items after an entry took over one and three: they are gone, and it goes on counting',
      );
    },
  },
  {
    law: 'inbox-current',
    async check({ open, prefix }) {
      const store = await open();
      for (let n = 1; n <= 8; n++) {
        // What was found in the inbox along with an append does not hold for what is posted after it, or at the same time.
        const appended = async (): Promise<unknown> => store.append(prefix, n - 1, [text(`${n}`)]);
        const posted = async (): Promise<unknown> => store.post(prefix, cancel(`${n}`));
        if (n % 2 === 0) await Promise.all([appended(), posted()]);
        else {
          await appended();
          await posted();
        }
        equal(
          reasons(await store.take(prefix, 0)).includes(`${n}`),
          true,
          'whether the inbox has an item that was posted right after an append, or beside it,',
        );
      }
    },
  },
  {
    law: 'inbox-early',
    async check({ open, prefix }) {
      const store = await open();
      await store.post(prefix, cancel('early'));
      equal(await store.head(prefix), 0, 'the head of a session that has only an inbox');
      equal(
        (await sessionsOf(store, {})).filter(({ sessionId }) => sessionId === prefix),
        [],
        'the entry in `list` of a session that has only an inbox',
      );
      equal(await store.append(prefix, 0, [text('a')]), 1, 'what the first append after a post returns');
      equal(reasons(await store.take(prefix, 0)), ['early'], 'the item posted before the first append');
    },
  },
] as const satisfies readonly StoreLawEntry[];
