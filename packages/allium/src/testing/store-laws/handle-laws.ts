/** The laws of two handles on the same data, as two processes have. */
import { conflicts, equal, info, reasons, settled, texts } from './expectations.js';
import type { StoreLawEntry } from './law.js';
import { cancel, run, text } from './samples.js';

export const HANDLE_LAWS = [
  {
    law: 'two-handles',
    statement: "Two handles on the same data see each other's writes at once, and only one can win a place.",
    needs: 'reopen',
    async check({ open, reopen, prefix }) {
      const one = await open();
      await one.append(prefix, 0, [run('r', prefix, 10)]);
      const two = await reopen(one);
      equal(await two.head(prefix), 1, 'the head that the second handle sees');
      await two.append(prefix, 1, [text('two')]);
      equal(await one.head(prefix), 2, 'the head that the first handle sees after the second appended');
      await conflicts(
        () => one.append(prefix, 1, [text('x')]),
        'an append of the first handle at the place the second wrote to',
      );
      await one.append(prefix, 2, [text('one')]);
      equal(texts(await two.read(prefix, 2)), ['two', 'one'], 'the entries that the second handle reads');
      equal((await info(two, prefix, prefix)).seq, 3, 'the `seq` that the second handle lists');

      const attempts = await Promise.all(
        Array.from({ length: 16 }, (_, i) =>
          settled(() => (i % 2 ? one : two).append(prefix, 3, [text(`${i}`)])),
        ),
      );
      equal(
        attempts.filter(({ ok }) => ok).length,
        1,
        'the number of successes among 16 appends at once through two handles',
      );
      equal(
        texts(await one.read(prefix, 4)),
        attempts.flatMap(({ ok }, i) => (ok ? [`${i}`] : [])),
        'the entry of the append that succeeded',
      );

      await two.post(prefix, cancel('from two'));
      for (const handle of [two, one])
        equal(
          reasons(await handle.take(prefix, 0)),
          ['from two'],
          'the item posted through the second handle, taken through either,',
        );
      await two.delete(prefix);
      await conflicts(
        () => one.append(prefix, 4, [text('x')]),
        'an append of the first handle to a session the second deleted',
      );
      await two.append(prefix, 0, [text('again')]);
      equal(
        texts(await one.read(prefix, 1)),
        ['again'],
        'the entries that the first handle reads after the session was made again',
      );
    },
  },
  {
    law: 'crash',
    statement: 'What was confirmed is there after a crash. An append under way is there whole or not at all.',
    needs: 'reopen',
    async check({ open, reopen, prefix }) {
      const one = await open();
      await one.append(prefix, 0, [run('r', prefix, 10), text('a')]);
      await one.post(prefix, cancel('posted'));
      // The first handle is never closed. The next one must find everything that was confirmed.
      const two = await reopen(one);
      equal(texts(await two.read(prefix, 2)), ['a'], 'the entries found after a crash');
      equal(reasons(await two.take(prefix, 0)), ['posted'], 'the inbox found after a crash');
      // An append that is under way when the process dies is there as a whole or not at all.
      const underWay = settled(() => one.append(prefix, 2, [text('b'), text('c'), text('d')]));
      const three = await reopen(one);
      const found = texts(await three.read(prefix, 3));
      if (found.length > 0)
        equal(found, ['b', 'c', 'd'], 'the part of an append under way that the next process finds');
      await underWay;
      equal(
        texts(await three.read(prefix, 3)),
        ['b', 'c', 'd'],
        'the entries of that append once it was confirmed',
      );
      equal(await three.append(prefix, 5, [text('e')]), 6, 'what an append after the crash returns');
    },
  },
] as const satisfies readonly StoreLawEntry[];
