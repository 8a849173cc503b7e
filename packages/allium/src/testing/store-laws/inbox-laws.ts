/** The laws of the inbox: nothing posted gets lost, and nothing is taken twice. */
import type { InboxItem } from '../../index.js';
import { equal, reasons, sessionsOf } from './expectations.js';
import type { StoreLawEntry } from './law.js';
import { cancel, text } from './samples.js';

export const INBOX_LAWS = [
  {
    law: 'inbox-order',
    statement: 'Inbox items come back in the order they were posted, numbered from 1.',
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
    statement:
      'Taking items does not remove them. Asking for those after a number does remove those up to it.',
    async check({ open, prefix }) {
      const store = await open();
      await store.append(prefix, 0, [text('a')]);
      for (const reason of ['one', 'two', 'three']) await store.post(prefix, cancel(reason));
      equal(reasons(await store.take(prefix, 0)).sort(), ['one', 'three', 'two'], 'the items after 0');
      equal(
        reasons(await store.take(prefix, 0)).sort(),
        ['one', 'three', 'two'],
        'the items after 0 when asked again (taking does not remove)',
      );
      equal(reasons(await store.take(prefix, 2)), ['three'], 'the items after 2');
      equal(
        reasons(await store.take(prefix, 0)),
        ['three'],
        'the items after 0 once somebody asked for those after 2',
      );
      equal(await store.take(prefix, 3), [], 'the items after the last');
      await store.post(prefix, cancel('four'));
      equal(
        await store.take(prefix, 3),
        [{ n: 4, item: cancel('four') }],
        'an item posted when the others are gone (the numbers go on)',
      );
    },
  },
  {
    law: 'inbox-taken',
    statement:
      'Items that an entry took over are gone from the inbox, and the next one gets the next number.',
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
        'the items after an entry took over numbers 1 and 3 (they are gone, and the numbers go on)',
      );
    },
  },
  {
    law: 'inbox-current',
    statement: 'The inbox shows an item as soon as it is posted, also right after an append or beside one.',
    async check({ open, prefix }) {
      const store = await open();
      for (let n = 1; n <= 8; n++) {
        // A store may look into the inbox along with an append. What it found then is out of date after the next post.
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
          'whether the inbox has an item that was posted right after an append or beside one',
        );
      }
    },
  },
  {
    law: 'inbox-early',
    statement: 'Items can be posted before the first append. They do not make the session exist.',
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
