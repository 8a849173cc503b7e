import fs from 'node:fs';
import path from 'node:path';
import { Agent, type InboxItem, type NewEntry, type Store, tool } from 'allium';
import { fakeClock, scriptedModel, testStore, toolCalls } from 'allium/testing';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectAnswersFromElsewhere } from '../../../test/answered-elsewhere.js';
import { sessionHistoryChecks } from '../../../test/session-history-checks.js';
import { startFailover } from '../test/failover.js';
import { type RedisServer, startRedis } from '../test/redis-server.js';
import { type RedisStoreOptions, redisStore } from './index.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());

const open = (options: RedisStoreOptions = {}): Store => redisStore({ url: server.url, ...options });

it('wakes a run that waits for its handler when another process answers, and lets the first answer count', async () => {
  await expectAnswersFromElsewhere(() => open(), `answered-${Date.now()}`);
});

testStore({ name: 'redisStore', open: () => open(), reopen: () => open(), it, describe });
sessionHistoryChecks('Redis', open, open);

const text = (id: string): NewEntry => ({
  v: 1,
  at: 7,
  type: 'message',
  runId: 'r',
  message: { id, role: 'user', content: [] },
});
let count = 0;
const newId = () => `session-${Date.now()}-${count++}`;

// A session as the first release left it on the server, as the commands that make it so, and in words. Kept as it is
// once that release is out; written with ALLIUM_WRITE_FIXTURES=1.
const fixture = path.join(import.meta.dirname, 'fixtures/v1.json');
const journal = JSON.parse(
  fs.readFileSync(
    path.join(import.meta.dirname, '../../allium/src/stores/kit/fixtures/v1/journal.json'),
    'utf8',
  ),
) as { sessionId: string; appends: NewEntry[][]; inbox: InboxItem[]; taken: number };

async function writeFixture(prefix: string): Promise<void> {
  const store = open({ prefix });
  let seq = 0;
  for (const entries of journal.appends) seq = await store.append(journal.sessionId, seq, entries);
  for (const item of journal.inbox) await store.post(journal.sessionId, item);
  await store.take(journal.sessionId, journal.taken);
  await store.close?.();
  const client = new Redis(server.url);
  const commands: string[][] = [];
  for (const key of (await client.keys(`{${prefix}}:*`)).sort()) {
    const type = await client.type(key);
    if (type === 'list') commands.push(['RPUSH', key, ...(await client.lrange(key, 0, -1))]);
    else if (type === 'hash')
      commands.push(['HSET', key, ...Object.entries(await client.hgetall(key)).flat()]);
    else commands.push(['ZADD', key, ...(await client.zrange(key, '0', '-1', 'WITHSCORES')).reverse()]);
  }
  await client.quit();
  fs.writeFileSync(fixture, `${JSON.stringify(commands, null, 1).replaceAll(`{${prefix}}`, '{fixture}')}\n`);
}

describe('redisStore', () => {
  it('reads and continues a session that the first release wrote', async () => {
    const prefix = newId();
    if (process.env.ALLIUM_WRITE_FIXTURES) await writeFixture(`${prefix}-new`);
    const commands = JSON.parse(fs.readFileSync(fixture, 'utf8').replaceAll('{fixture}', `{${prefix}}`)) as [
      string,
      ...string[],
    ][];
    const client = new Redis(server.url);
    for (const [command, ...values] of commands) await client.call(command, ...values);
    await client.quit();
    const { sessionId, appends, inbox, taken } = journal;
    const store = open({ prefix });
    expect(await store.read(sessionId, 1)).toEqual(
      appends.flat().map((entry, i) => ({ ...entry, seq: i + 1 })),
    );
    const { sessions } = await store.list({ tenant: 'acme' });
    expect(sessions).toEqual([
      { sessionId, tenant: 'acme', seq: 15, createdAt: 1760000000000, updatedAt: 1760000000005 },
    ]);
    expect(await store.take(sessionId, 0)).toEqual([{ n: taken + 1, item: inbox[taken] }]);
    expect(await store.append(sessionId, 15, [text('more')])).toBe(16);
    await store.close?.();
  });

  it('lets eight writers append to one session without a gap, a loss or a mixture', async () => {
    const id = newId();
    const stores = Array.from({ length: 8 }, () => open());
    let conflicts = 0;
    await Promise.all(
      stores.map(async (store, writer) => {
        for (let done = 0; done < 25; ) {
          try {
            await store.append(
              id,
              await store.head(id),
              ['a', 'b'].map((part) => text(`${writer}.${done}${part}`)),
            );
            done++;
          } catch (error) {
            expect(error).toMatchObject({ code: 'SESSION_CONFLICT' });
            conflicts++;
          }
        }
      }),
    );
    const ids = (await stores[0]!.read(id, 1)).map((entry) =>
      entry.type === 'message' ? entry.message.id : entry.type,
    );
    expect(ids).toHaveLength(8 * 25 * 2);
    expect(ids).toEqual(
      ids.filter((_, i) => i % 2 === 0).flatMap((first) => [first, `${first.slice(0, -1)}b`]),
    );
    for (let writer = 0; writer < 8; writer++) {
      const own = ids.filter((each) => each.startsWith(`${writer}.`));
      expect(own).toEqual(
        Array.from({ length: 25 }, (_, i) => [`${writer}.${i}a`, `${writer}.${i}b`]).flat(),
      );
    }
    expect(conflicts, 'conflicts: without any, nothing was tried here').toBeGreaterThan(0);
    await Promise.all(stores.map((store) => store.close?.()));
  });

  it('keeps every confirmed append when the server is killed, and none in part', async () => {
    const id = newId();
    const store = open();
    let confirmed = 0;
    for (let crash = 0; crash < 5; crash++) {
      let failed = false;
      let enough = () => {};
      const underWay = new Promise<void>((resolve) => (enough = resolve));
      const target = confirmed + 3 * (5 + crash);
      const appending = (async () => {
        while (!failed) {
          try {
            confirmed = await store.append(id, confirmed, [text('a'), text('b'), text('c')]);
          } catch {
            failed = true;
          }
          if (failed || confirmed >= target) enough();
        }
      })();
      await underWay;
      await server.crash();
      failed = true;
      await appending;
      const head = await store.head(id);
      expect(head % 3).toBe(0);
      expect(
        head === confirmed || head === confirmed + 3,
        `${head} entries found, ${confirmed} confirmed`,
      ).toBe(true);
      confirmed = head;
    }
    expect(confirmed).toBeGreaterThan(0);
    await store.close?.();
  });

  it('sends its scripts again to a server that has forgotten them', async () => {
    const store = open();
    const id = newId();
    await store.append(id, 0, [text('a')]);
    const client = new Redis(server.url);
    await client.script('FLUSH');
    expect(await store.append(id, 1, [text('b')])).toBe(2);
    await client.quit();
    await store.close?.();
  });

  it('uses a client that is given to it, with the prefix of that client, and leaves it open', async () => {
    const client = new Redis(server.url, { keyPrefix: 'app:' });
    const store = open({ client, prefix: 'mine' });
    await store.append('s', 0, [{ v: 1, at: 1, type: 'run_start', runId: 'r', plan: [], tenant: 't' }]);
    await store.post('s', { type: 'cancel' });
    await store.close?.();
    const plain = new Redis(server.url);
    expect((await plain.keys('app:*')).sort()).toEqual(
      ['all', 'i:s', 'j:s', 's:s', 't:t'].map((name) => `app:{mine}:${name}`),
    );
    await store.delete('s');
    expect(await plain.keys('app:*')).toEqual([]);
    await Promise.all([client.quit(), plain.quit()]);
  });

  it('keeps stores with different prefixes apart', async () => {
    const [one, two] = [open({ prefix: newId() }), open({ prefix: newId() })];
    await one.append('s', 0, [text('a')]);
    expect(await two.head('s')).toBe(0);
    expect((await two.list()).sessions).toEqual([]);
    await Promise.all([one.close?.(), two.close?.()]);
  });

  it('leaves the journal as it was when a script fails on the way', async () => {
    const prefix = newId();
    const store = open({ prefix });
    await store.append('s', 0, [text('a')]);
    const client = new Redis(server.url);
    await client.del(`{${prefix}}:all`);
    await client.set(`{${prefix}}:all`, 'not an index');
    await expect(store.append('s', 1, [text('b'), text('c')])).rejects.toThrow('WRONGTYPE');
    expect(await store.head('s')).toBe(1);
    await Promise.all([client.quit(), store.close?.()]);
  });

  it('refuses options and ids it cannot use', async () => {
    expect(() => redisStore({})).toThrow(
      'Expected `url` to be redis://user:password@host:port/database, got undefined.',
    );
    expect(() => open({ prefix: 'a{b}' })).toThrow(
      'Expected `prefix` to be text without braces, got "a{b}".',
    );
    expect(() => open({ prefx: 'x' } as never)).toThrow(
      'Unknown option `prefx` of redisStore(). Did you mean `prefix`?',
    );
    const store = open();
    await expect(store.head('\ud800')).rejects.toThrow(
      'Expected `sessionId` to be well-formed text without NUL characters',
    );
    await store.close?.();
  });
});

describe('a server that stands still', () => {
  /** A run whose tool brings the server to a halt; `end` ends it, and then the server goes on. */
  async function halted(options: { timeoutMs?: number; storeTimeoutMs?: number; abort?: boolean }) {
    const store = open();
    const controller = new AbortController();
    const { timeoutMs, storeTimeoutMs = 60_000 } = options;
    // Time begins to pass when the server has stopped: how long it takes to get there is the machine's affair.
    const clock = fakeClock();
    let passing: NodeJS.Timeout | undefined;
    const pause = tool({
      name: 'pause',
      description: 'Stops the server.',
      input: z.any(),
      onInDoubt: 'retry',
      execute() {
        if (first) {
          server.pause();
          passing = setInterval(() => void clock.advance(20), 5);
        }
        first = false;
        if (options.abort) clock.setTimer(() => controller.abort(), 50);
        return 'paused';
      },
    });
    let first = true;
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'pause' }, { name: 'pause' }), 'done'], { repeat: true }),
      tools: [pause],
      store,
      storeTimeoutMs,
      teardownTimeoutMs: 200,
      clock,
      ...(timeoutMs !== undefined && { limits: { timeoutMs } }),
    });
    const session = agent.session(newId());
    const error = await session.run('go', { signal: controller.signal }).catch((e: unknown) => e);
    clearInterval(passing);
    const took = clock.now();
    server.continue();
    const after = agent.session(session.id);
    const result = await after.resume({ limits: { timeoutMs: 60_000 } });
    const messages = await after.messages();
    await store.close?.();
    return { error, took, result, results: messages.filter(({ role }) => role === 'tool').length };
  }

  it.each([
    ['storeTimeoutMs', { storeTimeoutMs: 300 }, 'STORE_TIMEOUT'],
    ['limits.timeoutMs', { timeoutMs: 300 }, 'STORE_TIMEOUT'],
    ['an abort', { abort: true }, 'ABORTED'],
  ])('holds a run no longer than %s, and the session can be resumed', async (_, options, code) => {
    const { error, took, result, results } = await halted(options);
    expect(error).toMatchObject({ code });
    expect(took).toBeLessThan(20_000);
    expect(result).toMatchObject({ status: 'done', text: 'done' });
    expect(results).toBe(2);
  });
});

it('goes on after a failover that leaves its connection open, with a server that refuses to write', async () => {
  const failover = await startFailover();
  const store = redisStore({ url: failover.url });
  try {
    const agent = new Agent({ model: scriptedModel(['done'], { repeat: true }), store });
    const session = agent.session(newId());
    await session.run('go');
    await failover.fail();
    await expect(session.run('go on')).rejects.toMatchObject({ code: 'STORE_FAILED' });
    const again = () =>
      session.run('go on').then(
        ({ status }) => status,
        ({ code }) => code,
      );
    await expect.poll(again).toBe('done');
  } finally {
    await store.close?.();
    await failover.stop();
  }
});

it('says that the server has used up its memory, and goes on with the run when there is room', async () => {
  const store = open();
  const admin = new Redis(server.url);
  const calls: string[] = [];
  const book = tool({
    name: 'book',
    description: 'Books, and fills the server.',
    input: z.any(),
    async execute(_args, { toolCall }) {
      calls.push(toolCall.id);
      await admin.config('SET', 'maxmemory', '1');
      return 'booked';
    },
  });
  const model = scriptedModel(
    [({ messages }) => (messages.at(-1)?.role === 'tool' ? 'Booked.' : toolCalls({ name: 'book', id: 'c' }))],
    { repeat: true },
  );
  const session = new Agent({ model, tools: [book], store }).session(newId());
  try {
    await expect(session.run('Book.')).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('maxmemory'),
    });
  } finally {
    await admin.config('SET', 'maxmemory', '0');
  }
  expect(await session.resume()).toMatchObject({ status: 'done', text: 'Booked.' });
  expect(calls).toEqual(['c']);
  await Promise.all([admin.quit(), store.close?.()]);
});
