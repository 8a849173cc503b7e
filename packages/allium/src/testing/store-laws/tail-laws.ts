/** The law of the optional `tail`. */
import type { Store, Tail } from '../../index.js';
import { equal, texts } from './expectations.js';
import type { StoreLawEntry } from './law.js';
import { numbered, text, UNICODE } from './samples.js';

export const TAIL_LAWS = [
  {
    law: 'tail',
    statement: '`tail` returns the newest snapshot and the entries after it. A store without `tail` passes.',
    async check({ open, prefix }) {
      const store = await open();
      if (!store.tail) return;
      const seen = async (sessionId = prefix) => shown(await store.tail!(sessionId));
      equal(await seen(), [undefined], 'the tail of a session that does not exist');
      await store.append(prefix, 0, [text('a'), text('b')]);
      equal(await seen(), [undefined, 'a', 'b'], 'the tail without a snapshot');
      const first = { seq: 2, state: JSON.stringify(UNICODE) };
      await store.append(prefix, 2, [text('c')], first);
      equal(await seen(), [first, 'c'], 'the tail after a snapshot of what came before the append');
      const second = { seq: 4, state: '{"second":true}' };
      await store.append(prefix, 3, [text('d'), text('e')], second);
      equal(await seen(), [second, 'e'], 'the tail after a snapshot within the append');
      await store.append(prefix, 5, [text('f')], { seq: 7, state: 'of what was never written' });
      equal(await seen(), [second, 'e', 'f'], 'the tail after a snapshot beyond the last entry');
      equal(await seqs(store, prefix), [5, 6], 'the numbers of its entries');
      equal(texts(await store.read(prefix, 1)).join(''), 'abcdef', 'everything that was appended');
      await store.append(prefix, 6, numbered(600));
      equal((await seen()).length, 1 + 2 + 600, 'the length of the tail after many more entries');
      await store.fork(prefix, 6, `${prefix}-fork`);
      equal(
        await seen(`${prefix}-fork`),
        [undefined, ...'abcdef'],
        'the tail of a fork, which has no snapshot',
      );
      await store.delete(prefix);
      equal(await seen(), [undefined], 'the tail of a deleted session');
      await store.append(prefix, 0, [text('z')]);
      equal(await seen(), [undefined, 'z'], 'the tail of a session made again');
    },
  },
] as const satisfies readonly StoreLawEntry[];

function shown({ snapshot, entries }: Tail): readonly unknown[] {
  return [snapshot && { seq: snapshot.seq, state: snapshot.state }, ...texts(entries)];
}

async function seqs(store: Store, sessionId: string): Promise<readonly number[]> {
  return (await store.tail!(sessionId)).entries.map(({ seq }) => seq);
}
