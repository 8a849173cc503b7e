/** One question of a sub-agent, answered in its own session and in those of its callers. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  Agent,
  type Decision,
  memoryStore,
  type PendingRequest,
  type Session,
  type Store,
  tool,
} from 'allium';
import { approval } from 'allium/middleware/approval';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { scriptedModel, toolCalls } from 'allium/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { deferred } from '../../../../../test/run-checks.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-claims-'));
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

const stores: Record<string, () => Store> = {
  memory: memoryStore,
  file: () => fileStore({ dir: path.join(folder, 'files') }),
  sqlite: () => sqliteStore({ path: path.join(folder, 'db') }),
};
const APPROVE: Decision = { type: 'approve' };
const REJECT: Decision = { type: 'reject' };

let count = 0;

/** A chain of agents, the innermost of which pays; `sessions` from the outside in, once it is asked. */
function paying(store: Store, depth = 1, live = false) {
  let paid = 0;
  const pay = tool({ name: 'pay', description: '', input: z.object({}), execute: () => `${++paid}` });
  const asked = deferred<PendingRequest>();
  const middleware = [approval()];
  let agent = new Agent({
    name: `kid-${depth}`,
    model: scriptedModel([toolCalls({ name: 'pay' }), 'Paid or not.']),
    tools: [pay],
    middleware,
  });
  for (let at = depth - 1; at >= 0; at--)
    agent = new Agent({
      name: `kid-${at}`,
      model: scriptedModel([toolCalls({ name: 'kid', args: { prompt: 'Pay.' } }), 'Done.']),
      tools: [agent.asTool({ name: 'kid', description: '' })],
      store,
      ...(live &&
        at === 0 && {
          onRequest: (request) => {
            asked.resolve(request);
            return new Promise(() => {});
          },
        }),
    });
  const session = agent.session(`s${++count}`);
  const elsewhere = new Agent({ model: scriptedModel([]), store, tools: [pay], middleware });
  const all = ({ from }: PendingRequest): Session[] => {
    const below = from!.sessionId.slice(session.id.length + 1).split('/');
    return [
      session,
      ...below.map((_, i) => elsewhere.session([session.id, ...below.slice(0, i + 1)].join('/'))),
    ];
  };
  return { session, asked: asked.promise, all, paid: () => paid };
}

async function answer(session: Session, decision: Decision): Promise<string> {
  const [request] = await session.pending();
  return session.answer(request!.id, decision).then(
    () => 'taken',
    (error) => error.code,
  );
}

describe.each(Object.entries(stores))('a question of a sub-agent, over the %s store', (_, open) => {
  it.each([
    ['outside', 'inside'],
    ['inside', 'outside'],
  ])('counts as answered %s first; a later answer %s is refused', async (first) => {
    for (const decision of [APPROVE, REJECT]) {
      const { session, all, paid } = paying(open());
      const { pending } = await session.run('Go.');
      const [outer, inner] = all(pending[0]!);
      const order = first === 'outside' ? [outer!, inner!] : [inner!, outer!];
      expect(await answer(order[0]!, decision)).toBe('taken');
      expect(await answer(order[1]!, decision === APPROVE ? REJECT : APPROVE)).toBe('REQUEST_UNKNOWN');
      expect(await session.resume()).toMatchObject({ status: 'done' });
      expect(paid()).toBe(decision === APPROVE ? 1 : 0);
    }
  });

  it('is answered once if both answer at the same moment, suspended or live', async () => {
    for (const live of [false, true]) {
      const { session, asked, all, paid } = paying(open(), 1, live);
      const run = session.run('Go.');
      const request = live ? await asked : (await run).pending[0]!;
      const [outer, inner] = all(request);
      const said = await Promise.all([answer(outer!, REJECT), answer(inner!, APPROVE)]);
      expect([...said].sort()).toEqual(['REQUEST_UNKNOWN', 'taken']);
      expect(await (live ? run : session.resume())).toMatchObject({ status: 'done' });
      expect(paid()).toBe(said[0] === 'taken' ? 0 : 1);
    }
  });
});

describe('a question three agents deep', () => {
  it.each([0, 1, 2])('is answered in session %i, and nowhere else afterwards', async (at) => {
    const { session, all, paid } = paying(memoryStore(), 2);
    const sessions = all((await session.run('Go.')).pending[0]!);
    expect(await answer(sessions[at]!, REJECT)).toBe('taken');
    for (const other of sessions) expect(await answer(other, APPROVE)).toBe('REQUEST_UNKNOWN');
    expect(await session.resume()).toMatchObject({ status: 'done' });
    expect(paid()).toBe(0);
  });
});

describe('an answer that comes with a resume', () => {
  it('is refused when somebody answered the sub-agent before, and nothing runs', async () => {
    const { session, all, paid } = paying(memoryStore());
    const { pending } = await session.run('Go.');
    const [, inner] = all(pending[0]!);
    expect(await answer(inner!, REJECT)).toBe('taken');
    const late = session.resume({ answers: { [pending[0]!.id]: APPROVE } });
    await expect(late).rejects.toMatchObject({ code: 'REQUEST_UNKNOWN', data: { late: true } });
    expect(await session.resume()).toMatchObject({ status: 'done' });
    expect(paid()).toBe(0);
  });
});
