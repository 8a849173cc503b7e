/** The laws of sessions: apart from each other, listed, forked and deleted. */

import type { SessionInfo } from '../../index.js';
import { codeOf, conflicts, equal, info, reasons, sessionsOf, settled, texts } from './expectations.js';
import type { StoreLawEntry } from './law.js';
import { cancel, head, ODD_IDS, run, text } from './samples.js';

export const SESSION_LAWS = [
  {
    law: 'independent-sessions',
    statement: 'What happens to one session leaves the others alone, even if their ids begin alike.',
    async check({ open, prefix }) {
      const store = await open();
      // One id is the beginning of the other, which is where stores built on key prefixes go wrong.
      const [a, b] = [prefix, `${prefix}-b`];
      // These look a little like ids of sub-agents' sessions, which are deleted with the session of their agent.
      const others = [`${prefix}/r_1`, `${prefix}/b`, `${prefix}-b/r_1.2.0`];
      for (const id of others) await store.append(id, 0, [text(id)]);
      await store.append(a, 0, [text('a1')]);
      await store.append(b, 0, [text('b1')]);
      await store.append(a, 1, [text('a2')]);
      await store.append(b, 1, [text('b2')]);
      await store.post(a, cancel('for a'));
      await store.post(b, cancel('for b'));
      equal(texts(await store.read(a, 1)), ['a1', 'a2'], 'the entries of the first of two sessions');
      equal(reasons(await store.take(a, 0)), ['for a'], 'the inbox of the first of two sessions');
      await store.delete(a);
      equal(
        texts(await store.read(b, 1)),
        ['b1', 'b2'],
        'the entries of the second session after the first was deleted',
      );
      equal(
        reasons(await store.take(b, 0)),
        ['for b'],
        'the inbox of the second session after the first was deleted',
      );
      for (const id of others)
        equal(texts(await store.read(id, 1)), [id], `the entries of ${id} after ${a} was deleted`);
    },
  },
  {
    law: 'session-ids',
    statement: 'Any text can be a session id, and two different ids never mean the same session.',
    async check({ open, prefix }) {
      const store = await open();
      const ids = ODD_IDS.map((id) => `${id}${prefix}${id}`);
      for (const id of ids) await store.append(id, 0, [run(id, `${prefix}-ids`, 5)]);
      for (const id of ids)
        equal(
          (await store.read(id, 1)).map((entry) => (entry.type === 'run_start' ? entry.runId : '')),
          [id],
          `the entries of session ${JSON.stringify(id.slice(0, 60))}`,
        );
      const listed = await sessionsOf(store, { tenant: `${prefix}-ids` });
      equal(listed.map(({ sessionId }) => sessionId).sort(), [...ids].sort(), 'the ids that `list` gives');
      // Some text fits into no database. A store may refuse such ids, but two of them must not become one session.
      const [one, two] = [`${prefix}\ud800`, `${prefix}\ud801`];
      await settled(() => store.append(one, 0, [text('one')]));
      const second = await settled(() => store.read(two, 1));
      if (second.ok)
        equal(
          second.value,
          [],
          'the entries of a session that nobody wrote to, though one with a similar ill-formed id exists,',
        );
    },
  },
  {
    law: 'list-tenant',
    statement:
      '`list` returns only the sessions of the tenant it is asked for. The first run decides whose a session is.',
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
      equal(
        (await sessionsOf(store, { tenant: theirs })).map(({ sessionId }) => sessionId),
        [`${prefix}-2`],
        'the sessions of the second tenant',
      );
      const all = await sessionsOf(store, {});
      const untenanted = all.find(({ sessionId }) => sessionId === `${prefix}-3`);
      equal(
        untenanted,
        { sessionId: `${prefix}-3`, seq: 2, createdAt: 40, updatedAt: 60 },
        'a session without a tenant in the list of all',
      );
      // The empty text is a tenant like any other. All trials share it, so look only at sessions of this one.
      await store.append(`${prefix}-4`, 0, [run('r6', '', 70)]);
      const own = (sessions: readonly SessionInfo[]) =>
        sessions.filter(({ sessionId }) => sessionId.startsWith(`${prefix}-`));
      equal(
        own(await sessionsOf(store, { tenant: '' })),
        [{ sessionId: `${prefix}-4`, tenant: '', seq: 1, createdAt: 70, updatedAt: 70 }],
        'the sessions of the tenant whose name is empty',
      );
    },
  },
  {
    law: 'list-time',
    statement: '`list` returns the most recently updated sessions first, and with `since` no older ones.',
    async check({ open, prefix }) {
      const store = await open();
      for (const [i, at] of [300, 100, 200].entries())
        await store.append(`${prefix}-${i}`, 0, [run('r', prefix, at)]);
      const ids = async (since?: number, limit?: number) =>
        (await sessionsOf(store, { tenant: prefix, since, limit })).map(({ sessionId }) =>
          sessionId.slice(prefix.length + 1),
        );
      equal(await ids(), ['0', '2', '1'], 'the sessions, newest first');
      equal(await ids(200), ['0', '2'], 'the sessions updated since 200');
      equal(await ids(200, 1), ['0', '2'], 'the sessions updated since 200, on pages of one');
      await store.append(`${prefix}-1`, 1, [{ ...text('later'), at: 400 }]);
      equal(await ids(), ['1', '0', '2'], 'the sessions, newest first, after an append to the oldest');
      equal(await ids(301), ['1'], 'the sessions updated since 301');
    },
  },
  {
    law: 'list-paging',
    statement:
      'The pages of `list` hold every session once and come to an end, even if sessions are added meanwhile.',
    async check({ open, prefix }) {
      const store = await open();
      // Several sessions have the same time, so a cursor that is only a time loses or repeats some.
      const ids = Array.from({ length: 10 }, (_, i) => `${prefix}-${i}`);
      for (const [i, id] of ids.entries())
        await store.append(id, 0, [run('r', prefix, 100 + Math.floor(i / 4))]);
      const seen: string[] = [];
      let cursor: string | undefined;
      let ended = false;
      for (let page = 0; page < 20 && !ended; page++) {
        const { sessions, next } = await store.list({
          tenant: prefix,
          limit: 3,
          ...(cursor !== undefined && { cursor }),
        });
        if (sessions.length > 3) equal(sessions.length, 3, 'the length of a page of at most 3');
        seen.push(...sessions.map(({ sessionId }) => sessionId));
        ended = next === undefined;
        if (ended) break;
        cursor = next;
        // Meanwhile new sessions come in at the front, and one comes and goes.
        await store.append(`${prefix}-new-${page}`, 0, [run('r', prefix, 500 + page)]);
        await store.append(`${prefix}-gone`, 0, [run('r', prefix, 900)]);
        await store.delete(`${prefix}-gone`);
      }
      equal([...seen].sort(), ids, 'the sessions on all pages, while others are added,');
      equal(ended, true, 'whether the last page comes without `next`');
      // Without a limit there are 100 on a page. In another store if `open` makes one, for this is not about tenants.
      const [full, many] = [await open(), `${prefix}-many`];
      for (let i = 0; i <= 100; i++) await full.append(`${many}-${i}`, 0, [run('r', many, 100)]);
      const { sessions, next } = await full.list({ tenant: many });
      equal(sessions.length, 100, 'the length of the first page of 101 sessions, without a limit,');
      equal(typeof next, 'string', 'the type of `next` when one session is left');
      equal(
        (await full.list({ tenant: many, cursor: next! })).sessions.length,
        1,
        'the length of the page with that session',
      );
    },
  },
  {
    law: 'fork-copies',
    statement:
      'A fork has the tenant of its source and its entries up to the given one. A fork that is impossible is refused.',
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
      equal(
        codeOf((await settled(() => store.fork(`${prefix}-none`, 1, `${prefix}-x`))).error),
        'SESSION_UNKNOWN',
        'the error code of forking a session that does not exist',
      );
      await conflicts(() => store.fork(prefix, 1, copy), 'a fork onto a session that exists');
      for (const seq of [0, 6])
        equal(
          (await settled(() => store.fork(prefix, seq, `${prefix}-x`))).ok,
          false,
          `whether a session of 5 entries can be forked at ${seq}`,
        );
      equal(await store.head(`${prefix}-x`), 0, 'the head of a session that could not be forked');
      equal(
        (await store.read(copy, 1)).length,
        4,
        'the number of entries of the fork after other forks failed',
      );
    },
  },
  {
    law: 'fork-isolation',
    statement: 'After a fork, what happens to one of the two sessions leaves the other alone.',
    async check({ open, prefix }) {
      const store = await open();
      const copy = `copy-${prefix}`;
      await store.append(prefix, 0, [text('a'), text('b')]);
      await store.fork(prefix, 2, copy);
      await store.append(prefix, 2, [text('source')]);
      await store.append(copy, 2, [text('fork')]);
      equal(
        texts(await store.read(prefix, 1)),
        ['a', 'b', 'source'],
        'the entries of the source after an append to both',
      );
      equal(
        texts(await store.read(copy, 1)),
        ['a', 'b', 'fork'],
        'the entries of the fork after an append to both',
      );
      await store.delete(prefix);
      equal(
        texts(await store.read(copy, 1)),
        ['a', 'b', 'fork'],
        'the entries of the fork after its source was deleted',
      );
    },
  },
  {
    law: 'fork-inbox',
    statement: 'A fork takes over no inbox items, and its own count as later than those in its journal.',
    async check({ open, prefix }) {
      const store = await open();
      const copy = `copy-${prefix}`;
      await store.append(prefix, 0, [text('a')]);
      await store.post(prefix, cancel('one'));
      await store.post(prefix, cancel('two'));
      await store.append(prefix, 1, [{ ...head(), type: 'inbox', cursor: 2 }]);
      // Nobody has taken this one yet. It was sent to the source and stays there.
      await store.post(prefix, cancel('three'));
      await store.fork(prefix, 2, copy);
      await store.post(copy, cancel('for the fork'));
      await store.post(prefix, cancel('for the source'));
      // The journal of the fork says that two items were taken; its own items must count as later than those.
      equal(
        reasons(await store.take(copy, 2)),
        ['for the fork'],
        'the items of the fork after the cursor in its journal',
      );
      equal(
        reasons(await store.take(prefix, 2)),
        ['three', 'for the source'],
        'the items of the source after its cursor',
      );
    },
  },
  {
    law: 'delete-sub-agents',
    statement: 'Deleting a session also deletes the sessions of its sub-agents.',
    async check({ open, prefix }) {
      const store = await open();
      const child = `${prefix}/r_1.2.0`;
      const below = [child, `${prefix}/r_1.2.0+2~3`, `${child}/r_2.4.1`, `${prefix}/r_9.11.12`];
      for (const id of [prefix, ...below]) await store.append(id, 0, [run('r', prefix, 10), text(id)]);
      await store.delete(prefix);
      for (const id of below)
        equal(
          await store.read(id, 1),
          [],
          `the entries of ${id}, a sub-agent's session, after ${prefix} was deleted`,
        );
      equal(await sessionsOf(store, { tenant: prefix }), [], `the list after ${prefix} was deleted`);
    },
  },
  {
    law: 'delete',
    statement: 'A deleted session is gone with its entries and its inbox, and its id can be used again.',
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
      equal(
        await store.append(prefix, 0, [text('new')]),
        1,
        'what the first append after a deletion returns',
      );
      equal(
        texts(await store.read(prefix, 1)),
        ['new'],
        'the entries of a session made again after its deletion',
      );
    },
  },
] as const satisfies readonly StoreLawEntry[];
